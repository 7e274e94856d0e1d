"""Access lists as the kernel reads them, for files of tests."""

import os
import struct
from pathlib import Path

from codespace.workspace.attributes import ACCESS_LIST

OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NOBODY_IN_PARTICULAR = 2**32 - 1
SOMEBODY = 12_345
DEFAULT_LIST = "system.posix_acl_default"


def access_list(*entries: tuple[int, int]) -> bytes:
    """Return a list of kinds and permissions; named entries are about the same somebody."""
    named = (USER, GROUP)
    packed = (
        struct.pack("<HHI", kind, bits, SOMEBODY if kind in named else NOBODY_IN_PARTICULAR)
        for kind, bits in entries
    )
    return struct.pack("<I", 2) + b"".join(packed)


SOMEBODY_WRITES = access_list((OWNER, 6), (USER, 6), (OWNING_GROUP, 4), (MASK, 6), (OTHER, 0))
"""The mode says 0660, but the group may only read."""

SOMEBODY_IS_SHUT_OUT = access_list((OWNER, 6), (USER, 0), (OWNING_GROUP, 4), (MASK, 4), (OTHER, 4))


def give(path: Path, entries: bytes) -> None:
    os.setxattr(path, ACCESS_LIST, entries)


def attributes(path: Path) -> dict[str, bytes]:
    """Return all that a file carries."""
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}
