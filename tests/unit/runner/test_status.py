"""Exit statuses: exact from the kernel, or unfolded from a launcher's exit code."""

import os
import signal
import subprocess

import pytest

from codespace.runner.status import exact_status, unfolded_status


def told_of(text: str) -> tuple[int | None, int | None]:
    """Return what a pidfd tells of a shell while it lives, and after somebody else collected it."""
    process = subprocess.Popen(["sh", "-c", f"read _; {text}"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(process.pid)
    try:
        before = exact_status(pidfd)
        process.communicate(b"\n")
        return before, exact_status(pidfd)
    finally:
        os.close(pidfd)


@pytest.mark.skipif(told_of("exit 3")[1] is None, reason="needs PIDFD_INFO_EXIT (Linux 6.15)")
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("exit 0", 0),
        ("exit 137", 137),
        ("kill -KILL $$", -signal.SIGKILL),
        ("kill -SEGV $$", -signal.SIGSEGV),
    ],
)
def test_the_kernel_tells_codes_and_signals_apart(text: str, status: int):
    assert told_of(text) == (None, status)


def test_what_is_no_process_has_no_status():
    reader, writer = os.pipe()
    assert exact_status(reader) is None
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, 0),
        (1, 1),
        (128, 128),
        (129, -1),
        (137, -9),
        (192, -64),
        (193, 193),
        (255, 255),
        (-9, -9),
    ],
)
def test_a_folded_code_is_read_as_the_signal_it_most_likely_was(code: int, status: int):
    assert unfolded_status(code) == status
