"""Which files can be read at once: small ones that the kernel finds without asking a disk.

To hand a read to a thread and back costs several times as much as such a read itself, so that it
may run on the event loop. What could wait is not at hand: a network mount, a path that is not in
the kernel's cache, a large file. What may be read is `directory`'s to judge, either way.
"""

import ctypes
import os
import stat

from codespace.domain.workspace import Root

SMALL_BYTES = 64 * 1024

_OPENAT2 = 437  # the same on every architecture
_NODE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CACHED = 0x20
_BENEATH_WITHOUT_LINKS_OR_MOUNTS = 0x08 | 0x04 | 0x01
_STATFS_WORDS = 32  # more than the structure has
_LOCAL_FILESYSTEMS = {
    0xEF53,  # ext2, ext3, ext4
    0x58465342,  # xfs
    0x9123683E,  # btrfs
    0xF2F52010,  # f2fs
    0x2FC12FC1,  # zfs
    0x01021994,  # tmpfs
    0x794C7630,  # overlayfs
}


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_HOW_BYTES = ctypes.sizeof(_How)


class AtHand:
    """Knows of each root that it was told of whether its filesystem is a local one."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._to_root = _How(_NODE, 0, _CACHED)
        self._to_file = _How(_NODE, 0, _CACHED | _BENEATH_WITHOUT_LINKS_OR_MOUNTS)
        self._local: dict[Root, bool] = {}

    def learn(self, root: Root) -> None:
        """Find out about a root. This may wait: call it in a thread."""
        if root not in self._local:
            found = (ctypes.c_long * _STATFS_WORDS)()
            failed = self._libc.statfs(os.fsencode(root.path), found)
            self._local[root] = not failed and found[0] in _LOCAL_FILESYSTEMS

    def holds(self, root: Root, path: str) -> bool:
        """Say whether the client's `path` is a small file of a root that was learned of.

        Never waits. It is a hint and no permission: by the next call the file may be another.
        """
        if not self._local.get(root, False):
            return False
        directory = self._open(0, os.fsencode(root.path), self._to_root)
        if directory < 0:
            return False
        try:
            return self._is_small(directory, path.encode("utf-8", "surrogateescape"))
        finally:
            os.close(directory)

    def _is_small(self, directory: int, path: bytes) -> bool:
        node = self._open(directory, path, self._to_file)
        if node < 0:
            return False
        try:
            status = os.fstat(node)
        finally:
            os.close(node)
        return stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_BYTES

    def _open(self, directory: int, path: bytes, how: _How) -> int:
        return self._libc.syscall(_OPENAT2, directory, path, ctypes.byref(how), _HOW_BYTES)
