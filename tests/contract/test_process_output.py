"""`read_process`: the window, its cursors, and characters that are never split."""

import time

import anyio
import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio

KEPT = 256 * 1024


@pytest.mark.requirement("read-process.fields", "read-process.eof", "read-process.one-stream")
async def test_both_streams_are_read_as_one_to_the_end(cell_space: Space) -> None:
    process_id = await cell_space.start_shell("echo out; echo err >&2; echo out again; exit 3")
    await cell_space.ended(process_id)
    reply = await cell_space.session.call("read_process", process_id=process_id)
    assert reply.body == {
        "process_id": process_id,
        "cursor": 18,
        "chunk": "out\nerr\nout again\n",
        "eof": True,
        "output_lost": False,
        "retained_from": 0,
    }


@pytest.mark.requirement("read-process.cursor")
async def test_cursors_count_bytes_and_any_may_be_asked_for_again(space: Space) -> None:
    process_id = await space.start("printf", "äöü|123")
    await space.ended(process_id)
    for cursor, chunk in ((0, "äöü|123"), (2, "öü|123"), (7, "123"), (10, "")):
        reply = await space.session.call("read_process", process_id=process_id, cursor=cursor)
        assert (reply["chunk"], reply["cursor"], reply["eof"]) == (chunk, 10, True)
    beyond = await space.session.call("read_process", process_id=process_id, cursor=10**12)
    assert (beyond["chunk"], beyond["cursor"], beyond["eof"]) == ("", 10, True)
    reply = await space.session.refused(
        ErrorCode.INVALID_ARGUMENT, "read_process", process_id=process_id, cursor=-1
    )
    assert reply["details", "path"] == "cursor"


@pytest.mark.requirement("read-process.window", "read-process.lost")
async def test_the_last_256_kib_are_kept_and_the_loss_is_told(space: Space) -> None:
    process_id = await space.start_shell("seq -f %09.0f 1 50000")
    state = await space.ended(process_id)
    assert state["output_total"] == 500_000
    assert state["output_retained_from"] == 500_000 - KEPT
    whole = "".join(f"{number:09}\n" for number in range(1, 50_001))
    first = await space.session.call("read_process", process_id=process_id, cursor=0)
    assert first["output_lost"] is True
    assert first["retained_from"] == 500_000 - KEPT
    assert await space.output(process_id) == whole[-KEPT:]
    later = await space.session.call("read_process", process_id=process_id, cursor=499_990)
    assert (later["chunk"], later["output_lost"]) == ("000050000\n", True)


@pytest.mark.requirement("read-process.utf-8")
async def test_bytes_that_are_not_utf_8_become_replacement_characters(space: Space) -> None:
    process_id = await space.start("printf", r"a\377b\303\050c\342\202")
    assert await space.output(process_id) == "a\ufffdb\ufffd(c\ufffd"


@pytest.mark.requirement("read-process.characters-are-whole")
async def test_a_character_that_arrives_in_two_pieces_is_told_whole(space: Space) -> None:
    script = r"printf 'a\342\202'; read line; printf '\254b'; read line; printf '\342'"
    process_id = await space.start_shell(script)
    await space.until_said(process_id, "a")
    reply = await space.session.call("read_process", process_id=process_id)
    assert (reply["chunk"], reply["cursor"], reply["eof"]) == ("a", 1, False)
    await space.session.call("write_stdin", process_id=process_id, data="\n")
    reply = await space.session.call(
        "read_process", process_id=process_id, cursor=1, wait_ms=30_000
    )
    assert (reply["chunk"], reply["cursor"]) == ("€b", 5)
    await space.session.call("write_stdin", process_id=process_id, data="\n", close=True)
    await space.ended(process_id)
    reply = await space.session.call("read_process", process_id=process_id, cursor=5)
    assert (reply["chunk"], reply["cursor"], reply["eof"]) == ("\ufffd", 6, True)


@pytest.mark.requirement("read-process.characters-are-whole", "read-process.cursor")
async def test_a_long_output_of_wide_characters_is_put_together_without_loss(
    space: Space,
) -> None:
    process_id = await space.start_shell("for i in $(seq 20000); do printf 'x€😀'; done")
    state = await space.ended(process_id)
    assert state["output_total"] == 160_000
    assert await space.output(process_id) == "x€😀" * 20_000


@pytest.mark.requirement("read-process.eof")
async def test_eof_needs_the_end_of_the_process_and_the_last_byte(space: Space) -> None:
    process_id = await space.start_shell("head -c 100000 /dev/zero; read line")
    await anyio.sleep(0)
    text, cursor = "", 0
    while len(text) < 100_000:
        reply = await space.session.call(
            "read_process", process_id=process_id, cursor=cursor, wait_ms=30_000
        )
        assert reply["eof"] is False
        text, cursor = text + reply.text("chunk"), reply.number("cursor")
    reply = await space.session.call("read_process", process_id=process_id, cursor=cursor)
    assert (reply["chunk"], reply["eof"]) == ("", False)
    await space.session.call("write_stdin", process_id=process_id, data="", close=True)
    await space.ended(process_id)
    assert (await space.session.call("read_process", process_id=process_id))["eof"] is False
    last = await space.session.call("read_process", process_id=process_id, cursor=cursor)
    assert (last["chunk"], last["eof"]) == ("", True)


@pytest.mark.requirement("read-process.wait")
async def test_a_wait_ends_as_soon_as_there_is_something_new(space: Space) -> None:
    process_id = await space.start_shell("read line; echo $line; read line")
    replies: list[str] = []

    async def wait() -> None:
        reply = await space.session.call("read_process", process_id=process_id, wait_ms=30_000)
        replies.append(reply.text("chunk"))

    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await space.session.call("write_stdin", process_id=process_id, data="hello\n")
    assert "hello\n".startswith(replies[0])
    assert replies[0]
    assert time.monotonic() - began < 25, "the wait was not cut short"
    now = await space.session.call("read_process", process_id=process_id, cursor=6, wait_ms=1)
    assert (now["chunk"], now["cursor"], now["eof"]) == ("", 6, False)
    for wait_ms in (-1, 30_001):
        await space.session.refused(
            ErrorCode.INVALID_ARGUMENT, "read_process", process_id=process_id, wait_ms=wait_ms
        )
    await space.call("terminate_process", process_id=process_id)


@pytest.mark.requirement("read-process.wait", "read-process.eof")
async def test_a_wait_ends_with_the_process(space: Space) -> None:
    process_id = await space.start("sleep", "60")
    replies: list[object] = []

    async def wait() -> None:
        reply = await space.session.call("read_process", process_id=process_id, wait_ms=30_000)
        replies.append(reply["eof"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await space.session.call("terminate_process", process_id=process_id)
    assert replies == [True]


async def test_two_readers_get_the_same(space: Space) -> None:
    process_id = await space.start_shell("seq 1 1000")
    await space.ended(process_id)
    outputs = [await space.output(process_id) for _ in range(2)]
    assert outputs[0] == outputs[1] == "".join(f"{number}\n" for number in range(1, 1_001))
