"""A VM's memory as a few kilobytes: the pages that differ from the image, XORed with it (pure)."""

import hashlib
import struct
import zlib
from collections.abc import Iterator

MAGIC = b"CSM1"
BLOCK = 4096
WASM_PAGE = 65536
_HEAD = struct.Struct("<4s32s32sII")


class SnapshotError(Exception):
    """The snapshot is of another build of the guest, or it is damaged."""


def pack(digest: bytes, image: bytes, memory: bytes) -> bytes:
    """Return the snapshot of `memory`, which began as `image` of the guest `digest`."""
    blocks = [at for at in range(0, len(memory), BLOCK) if _differs(image, memory, at)]
    body = b"".join(_xor(_block(image, at), memory[at : at + BLOCK]) for at in blocks)
    places = struct.pack(f"<{len(blocks)}I", *blocks)
    packed = zlib.compress(places + body, 1)
    head = _HEAD.pack(
        MAGIC, digest, hashlib.sha256(packed).digest(), len(memory) // WASM_PAGE, len(blocks)
    )
    return head + packed


def unpack(digest: bytes, image: bytes, snapshot: bytes) -> tuple[int, Iterator[tuple[int, bytes]]]:
    """Return how many wasm pages the memory has, and its parts that differ from `image`.

    Raises:
        SnapshotError: another build of the guest took it, or it is damaged.
    """
    if len(snapshot) < _HEAD.size:
        raise SnapshotError("The snapshot is damaged; replay the run from its journal.")
    magic, taken_of, check, pages, count = _HEAD.unpack_from(snapshot)
    packed = snapshot[_HEAD.size :]
    if magic != MAGIC or check != hashlib.sha256(packed).digest():
        raise SnapshotError("The snapshot is damaged; replay the run from its journal.")
    if taken_of != digest:
        raise SnapshotError("The snapshot is of another build of the guest.")
    body = zlib.decompress(packed)
    places = struct.unpack_from(f"<{count}I", body)
    return pages, _parts(image, places, body[4 * count :])


def _parts(image: bytes, places: tuple[int, ...], body: bytes) -> Iterator[tuple[int, bytes]]:
    for number, at in enumerate(places):
        yield at, _xor(_block(image, at), body[number * BLOCK : (number + 1) * BLOCK])


def _differs(image: bytes, memory: bytes, at: int) -> bool:
    return memory[at : at + BLOCK] != _block(image, at)


def _block(image: bytes, at: int) -> bytes:
    return image[at : at + BLOCK] if at < len(image) else bytes(BLOCK)


def _xor(a: bytes, b: bytes) -> bytes:
    number = int.from_bytes(a, "little") ^ int.from_bytes(b, "little")
    return number.to_bytes(BLOCK, "little")
