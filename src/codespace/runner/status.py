"""How a process ended: the exact status from the kernel, and its meaning for a client."""

import fcntl
import os
import struct

_PIDFD_GET_INFO = 0xC040_FF0B
_PIDFD_INFO_EXIT = 1 << 3
_INFO_BYTES = 64
_EXIT_STATUS_OFFSET = 60
_SHELL_SIGNAL_BASE = 128
_HIGHEST_SIGNAL = 64


def exact_status(pidfd: int) -> int | None:
    """Return the exit status of an ended process that need not be our child.

    As `os.waitstatus_to_exitcode`: a negative number is a signal. `None` where the kernel cannot
    tell (before Linux 6.15).
    """
    info = bytearray(_INFO_BYTES)
    struct.pack_into("Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    (known,) = struct.unpack_from("Q", info)
    if not known & _PIDFD_INFO_EXIT:
        return None
    (status,) = struct.unpack_from("i", info, _EXIT_STATUS_OFFSET)
    return os.waitstatus_to_exitcode(status)


def unfolded_status(code: int) -> int:
    """Return the likeliest meaning of a launcher's own exit code, where 128+N means signal N."""
    number = code - _SHELL_SIGNAL_BASE
    return -number if 0 < number <= _HIGHEST_SIGNAL else code
