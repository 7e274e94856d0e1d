"""Which files can be read at once: small ones that the kernel finds without asking any disk.

Handing a read to a thread and back costs four times as much as such a read itself, so that it may
run on the event loop. Whatever could wait is not at hand: a network mount, a path that is not in
the kernel's cache, a large file. What a path may lead to is `directory`'s to judge, either way.
"""

import ctypes
import os
import stat
from dataclasses import dataclass, field

from codespace.domain.workspace import Root

SMALL_BYTES = 64 * 1024

_OPENAT2 = 437  # the same number on every architecture
_BENEATH_NO_LINKS_ONE_MOUNT_CACHED = 0x08 | 0x04 | 0x01 | 0x20
_CACHED = 0x20
_NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCAL_FILESYSTEMS = {
    "bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "overlay", "squashfs", "tmpfs",
    "xfs", "zfs",
}  # fmt: skip


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class AtHand:
    """Remembers of each root whether its filesystem is a local one."""

    _local: dict[Root, bool] = field(default_factory=dict[Root, bool])

    def learn(self, root: Root) -> None:
        """Find out about a root. This may wait: call it in a thread."""
        if root not in self._local:
            self._local[root] = _filesystem(root.device) in _LOCAL_FILESYSTEMS

    def holds(self, root: Root, path: str) -> bool:
        """Say whether the client's `path` is a small file of a root that was learned of.

        Never waits, and is only a hint: by the next call the file may be another.
        """
        if not self._local.get(root, False):
            return False
        directory = _open_cached(-1, root.path, _CACHED)
        if directory is None:
            return False
        try:
            node = _open_cached(directory, path, _BENEATH_NO_LINKS_ONE_MOUNT_CACHED)
        finally:
            os.close(directory)
        if node is None:
            return False
        try:
            status = os.fstat(node)
        finally:
            os.close(node)
        return stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_BYTES


def _open_cached(directory: int, path: str, resolve: int) -> int | None:
    how = _How(_NODE, 0, resolve)
    name = path.encode("utf-8", "surrogateescape")
    opened: int = _LIBC.syscall(_OPENAT2, directory, name, ctypes.byref(how), ctypes.sizeof(how))
    return opened if opened >= 0 else None
