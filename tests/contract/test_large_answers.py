"""What a call returns by default reaches the SDK's client, over every transport and revision."""

import hashlib

import pytest

from contract.session import Space

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("read.default-reaches-clients", "transports.same-tools")
async def test_large_files_of_every_kind_arrive_by_default(cell_space: Space) -> None:
    contents = {
        "text.txt": b"plain text \n" * 50_000,
        "control.txt": b"\x01" * 600_000,
        "quotes.txt": b'"\\' * 300_000,
        "blob.bin": b"\xff\xfe\x00" * 200_000,
        "euro.txt": "€".encode() * 200_000,
        "astral.txt": "😀".encode() * 150_000,
    }
    for path, data in contents.items():
        cell_space.write(path, data)
        reply = await cell_space.call("read", path=path)
        assert reply["size"] == len(data) == 600_000
        assert reply["version"] == hashlib.sha256(data).hexdigest()
        assert reply["truncated"] is True
        assert 50_000 < reply.number("next_offset") <= 512 * 1024


async def test_the_longest_lists_of_find_and_grep_arrive(cell_space: Space) -> None:
    for number in range(2_500):
        (cell_space.root / f"{number:04}-{'n' * 240}").write_bytes(b"needle \x01" + b"\x02" * 480)
    found = await cell_space.call("find", limit=10_000)
    matches = await cell_space.call("grep", pattern="needle", limit=2_000, context=10)
    for reply, items in ((found, "paths"), (matches, "matches")):
        assert 200 < len(reply.list(items)) <= 2_500
        assert reply["truncated"] is (len(reply.list(items)) < 2_500)


async def test_the_largest_piece_of_output_arrives(cell_space: Space) -> None:
    process_id = await cell_space.start_shell("head -c 300000 /dev/zero")
    await cell_space.ended(process_id)
    assert len(await cell_space.output(process_id)) == 256 * 1024
    reply = await cell_space.call("bash", command="head -c 300000 /dev/zero | tr '\\0' '\\1'")
    assert reply["output"] == "\x01" * 50 * 1024
