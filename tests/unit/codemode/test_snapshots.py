import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.snapshots import BLOCK, SnapshotError, pack, unpack

DIGEST = b"d" * 32
IMAGE = bytes(range(256)) * 512


def restored(image: bytes, snapshot: bytes) -> bytes:
    pages, parts = unpack(DIGEST, image, snapshot)
    memory = bytearray(image.ljust(pages * 65536, b"\0"))
    for at, part in parts:
        memory[at : at + len(part)] = part
    return bytes(memory)


@given(st.lists(st.tuples(st.integers(0, 3 * 65536 - 1), st.integers(0, 255)), max_size=30))
def test_whatever_changed_comes_back(changes: list[tuple[int, int]]) -> None:
    memory = bytearray(IMAGE.ljust(3 * 65536, b"\0"))
    for at, value in changes:
        memory[at] = value
    assert restored(IMAGE, pack(DIGEST, IMAGE, bytes(memory))) == bytes(memory)


def test_an_unchanged_memory_is_a_hundred_bytes() -> None:
    assert len(pack(DIGEST, IMAGE, IMAGE)) < 100


def test_one_changed_byte_costs_one_block_well_packed() -> None:
    memory = bytearray(IMAGE)
    memory[BLOCK * 3 + 5] ^= 1
    assert len(pack(DIGEST, IMAGE, bytes(memory))) < 150


@pytest.mark.parametrize("damage", [slice(0, 4), slice(40, 44), slice(80, 84)])
def test_damage_is_found(damage: slice) -> None:
    memory = bytearray(IMAGE)
    memory[9] ^= 1
    snapshot = bytearray(pack(DIGEST, IMAGE, bytes(memory)))
    snapshot[damage] = b"\xff" * (damage.stop - damage.start)
    with pytest.raises(SnapshotError):
        unpack(DIGEST, IMAGE, bytes(snapshot))


def test_another_guest_is_refused() -> None:
    with pytest.raises(SnapshotError, match="another build"):
        unpack(b"e" * 32, IMAGE, pack(DIGEST, IMAGE, IMAGE))
