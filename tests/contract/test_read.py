import base64
import hashlib
import random

import pytest

from codespace.domain.errors import ErrorCode
from contract.session import Space

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024
DEFAULT_BYTES = 512 * 1024


@pytest.mark.requirement("read.fields")
async def test_a_whole_file_is_answered_with_every_field_but_next_offset(space: Space) -> None:
    space.write("hello.txt", "hello\n")
    reply = await space.call("read", path="hello.txt")
    assert reply.body == {
        "path": "hello.txt",
        "content": "hello\n",
        "encoding": "utf-8",
        "version": hashlib.sha256(b"hello\n").hexdigest(),
        "size": 6,
        "truncated": False,
    }


@pytest.mark.requirement("read.fields", "read.version", "read.offset")
async def test_a_piece_is_answered_with_the_whole_files_version_and_where_to_go_on(
    space: Space,
) -> None:
    space.write("digits.txt", "0123456789")
    reply = await space.call("read", path="digits.txt", offset=2, max_bytes=3)
    assert reply.body == {
        "path": "digits.txt",
        "content": "234",
        "encoding": "utf-8",
        "version": hashlib.sha256(b"0123456789").hexdigest(),
        "size": 10,
        "truncated": True,
        "next_offset": 5,
    }


async def test_an_empty_file_is_a_result(space: Space) -> None:
    space.write("empty.txt")
    reply = await space.call("read", path="empty.txt")
    assert (reply["content"], reply["size"], reply["truncated"]) == ("", 0, False)
    assert reply["version"] == hashlib.sha256(b"").hexdigest()


async def test_an_offset_behind_the_end_is_empty_and_not_truncated(space: Space) -> None:
    space.write("short.txt", "short")
    for offset in (5, 6, 10**15):
        reply = await space.call("read", path="short.txt", offset=offset)
        assert (reply["content"], reply["truncated"], reply["size"]) == ("", False, 5)
        assert "next_offset" not in reply


@pytest.mark.requirement("read.max-bytes")
async def test_one_mebibyte_is_the_most_that_a_call_returns(space: Space) -> None:
    space.write("large.txt", b"a" * (MIB + 1))
    for refused in (MIB + 1, 0, -1):
        reply = await space.refused(
            ErrorCode.INVALID_ARGUMENT, "read", path="large.txt", max_bytes=refused
        )
        assert reply["details", "path"] == "max_bytes"
    least = await space.call("read", path="large.txt", max_bytes=1)
    assert (least["content"], least["next_offset"]) == ("a", 1)


@pytest.mark.requirement("read.default-size")
async def test_a_call_returns_512_kib_by_default(space: Space) -> None:
    space.write("large.txt", b"a" * (DEFAULT_BYTES + 1))
    reply = await space.call("read", path="large.txt")
    assert len(reply.text("content")) == DEFAULT_BYTES
    assert reply["next_offset"] == DEFAULT_BYTES
    space.write("fits.txt", b"a" * DEFAULT_BYTES)
    reply = await space.call("read", path="fits.txt")
    assert len(reply.text("content")) == DEFAULT_BYTES
    assert reply["truncated"] is False


@pytest.mark.requirement("read.next-offset", "read.characters-are-whole")
async def test_pieces_put_together_are_the_file_and_no_character_is_split(space: Space) -> None:
    text = "".join(random.Random(7).choices("aé€😀\n", k=60))
    space.write("mixed.txt", text)
    for max_bytes in (1, 2, 3, 5, 64):
        pieces: list[str] = []
        offset = 0
        while True:
            reply = await space.call("read", path="mixed.txt", offset=offset, max_bytes=max_bytes)
            assert reply["encoding"] == "utf-8"
            pieces.append(reply.text("content"))
            if not reply["truncated"]:
                break
            offset = reply.number("next_offset")
        assert "".join(pieces) == text


@pytest.mark.requirement("read.base64")
async def test_bytes_that_are_not_utf_8_come_as_base64(space: Space) -> None:
    data = bytes(range(256))
    space.write("blob.bin", data)
    reply = await space.call("read", path="blob.bin")
    assert reply["encoding"] == "base64"
    assert base64.b64decode(reply.text("content"), validate=True) == data
    assert reply["version"] == hashlib.sha256(data).hexdigest()
    piece = await space.call("read", path="blob.bin", offset=200, max_bytes=10)
    assert base64.b64decode(piece.text("content"), validate=True) == data[200:210]
    assert piece["next_offset"] == 210


@pytest.mark.requirement("read.next-offset", "read.base64")
async def test_a_binary_file_read_in_pieces_is_the_file(space: Space) -> None:
    data = random.Random(3).randbytes(5_000) + "äöü".encode() + b"\xff"
    space.write("blob.bin", data)
    found, offset = b"", 0
    while offset < len(data):
        reply = await space.call("read", path="blob.bin", offset=offset, max_bytes=777)
        content = reply.text("content")
        piece = (
            base64.b64decode(content) if reply["encoding"] == "base64" else content.encode("utf-8")
        )
        found += piece
        offset += len(piece)
        assert reply["truncated"] is (offset < len(data))
    assert found == data


async def test_nul_carriage_return_and_byte_order_mark_arrive_as_they_are(space: Space) -> None:
    data = "\ufeffa\r\nb\rc\0d\u2028e"
    space.write("odd.txt", data)
    assert (await space.call("read", path="odd.txt"))["content"] == data


@pytest.mark.requirement("paths.relative")
async def test_a_path_is_cleaned_and_answered_relative_to_the_root(space: Space) -> None:
    space.write("a/ä b/c.txt", "x")
    for path in ("a/ä b/c.txt", "./a//ä b/./c.txt"):
        assert (await space.call("read", path=path))["path"] == "a/ä b/c.txt"


async def test_characters_that_are_special_elsewhere_are_ordinary_in_a_path(space: Space) -> None:
    for name in ("back\\slash", "per%2ecent", "C:", "~", "a\nb", "...", " ", "*"):
        space.write(name, name)
        reply = await space.call("read", path=name)
        assert (reply["path"], reply["content"]) == (name, name)


@pytest.mark.requirement("errors.results-are-the-same", "errors.large-text-is-a-summary")
async def test_a_result_is_told_twice_unless_it_is_large(space: Space) -> None:
    space.write("small.txt", "s" * 100_000)
    space.write("large.txt", "l" * 300_000)
    for path, whole in (("small.txt", True), ("large.txt", False)):
        answer = await space.session.ask("read", {"workspace_id": space.id, "path": path})
        text = answer.content[0].model_dump()["text"]
        assert (len(text) > 1_000) is whole
        assert ("\n" in text) is False
