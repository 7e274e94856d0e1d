"""A watched descriptor: told when it is readable, and closed or handed over exactly once."""

import os

import anyio
import pytest

from codespace.domain.errors import ErrorCode
from codespace.runner.tree import Watched, did_not_start

pytestmark = pytest.mark.anyio


async def test_it_tells_when_there_is_something_to_read():
    reader, writer = os.pipe()
    told = anyio.Event()
    watched = Watched(reader, told.set)
    assert watched.read() is None
    os.write(writer, b"news")
    with anyio.fail_after(10):
        await told.wait()
    assert watched.read() == b"news"
    os.close(writer)
    assert watched.read() == b""
    watched.close()


async def test_closing_is_good_more_than_once():
    reader, writer = os.pipe()
    watched = Watched(reader, lambda: None)
    assert watched.is_open
    watched.close()
    watched.close()
    assert not watched.is_open
    assert watched.read() is None
    with pytest.raises(ValueError, match="let go"):
        _ = watched.descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reader)
    os.close(writer)


async def test_a_released_descriptor_stays_open_for_its_next_owner():
    reader, writer = os.pipe()
    watched = Watched(reader, lambda: None)
    assert watched.release() == reader
    watched.close()
    os.write(writer, b"x")
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    os.close(writer)


async def test_a_terminal_that_is_closed_on_the_other_side_reads_as_its_end():
    ours, theirs = os.openpty()
    watched = Watched(ours, lambda: None)
    os.close(theirs)
    assert watched.read() == b""
    watched.close()


def test_what_did_not_start_is_certainly_not_running():
    assert did_not_start().code is ErrorCode.PROCESS_SPAWN_FAILED
