"""The pseudo-terminal of a command: its size, its line discipline, and what a line may hold."""

import fcntl
import os
import re
import struct
import termios

ROWS = 24
COLUMNS = 80

_LOCAL_FLAGS = 3
_CONTROL_CHARACTERS = 6
_END_OF_FILE = b"\x04"
# Newline, return and ^D hand the line over; ^C, ^U and ^\ throw it away.
_ENDS_LINE = re.compile(rb"[\n\r\x03\x04\x15\x1c]")


def open_terminal() -> tuple[int, int]:
    """Return the two sides of a new terminal: ours and the command's. Neither is inheritable."""
    ours, theirs = os.openpty()
    set_size(ours, ROWS, COLUMNS)
    return ours, theirs


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size; the system tells the foreground processes with SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def is_canonical(terminal: int) -> bool:
    """Tell whether the terminal collects lines, which the system cuts at a fixed length."""
    try:
        return bool(termios.tcgetattr(terminal)[_LOCAL_FLAGS] & termios.ICANON)
    except termios.error:  # nobody is left on the other side
        return False


def end_of_file(terminal: int) -> bytes:
    """Return the character that means end of file on this terminal now."""
    try:
        character = termios.tcgetattr(terminal)[_CONTROL_CHARACTERS][termios.VEOF]
    except termios.error:
        return _END_OF_FILE
    return character if isinstance(character, bytes) else _END_OF_FILE


class TypedLine:
    """How long the line is that was typed so far and not yet handed to the command."""

    def __init__(self) -> None:
        self.length = 0

    def longest_with(self, data: bytes) -> int:
        """Return the length of the longest line there would be with `data` typed next."""
        first, *others = _ENDS_LINE.split(data)
        return max(self.length + len(first), *map(len, others), 0)

    def add(self, data: bytes) -> None:
        """Note that `data` was typed."""
        pieces = _ENDS_LINE.split(data)
        self.length = len(pieces[-1]) + (self.length if len(pieces) == 1 else 0)
