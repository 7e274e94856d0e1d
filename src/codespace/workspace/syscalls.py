"""The system calls that change a workspace, as a value: a test can make any one of them fail."""

import ctypes
import errno
import os


class Syscalls:
    """The real calls. Names are relative to a directory's descriptor; failures are `OSError`."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def create(self, name: str, mode: int, *, dir_fd: int) -> int:
        """Create a file that does not exist yet, for writing; `mode` is subject to the umask."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=dir_fd)

    def write(self, fd: int, data: memoryview) -> int:
        """Write some of `data`; return how many bytes."""
        return os.write(fd, data)

    def chown(self, fd: int, uid: int, gid: int) -> None:
        """Give a file its owner."""
        os.fchown(fd, uid, gid)

    def chmod(self, fd: int, mode: int) -> None:
        """Give a file its permission bits."""
        os.fchmod(fd, mode)

    def set_attribute(self, fd: int, name: str, value: bytes) -> None:
        """Give a file an extended attribute."""
        os.setxattr(fd, name, value)

    def remove_attribute(self, fd: int, name: str) -> None:
        """Take an extended attribute from a file."""
        os.removexattr(fd, name)

    def sync(self, fd: int) -> None:
        """Make one file or directory durable."""
        os.fsync(fd)

    def sync_filesystem(self, fd: int) -> None:
        """Make everything durable on the filesystem that holds `fd`."""
        syncfs = getattr(self._libc, "syncfs", None)
        if syncfs is None:
            os.sync()
        elif syncfs(fd) != 0:
            number = ctypes.get_errno() or errno.EIO
            raise OSError(number, os.strerror(number))

    def rename(self, source: str, destination: str, *, dir_fd: int) -> None:
        """Put one name in the place of another within a directory, atomically."""
        os.rename(source, destination, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def unlink(self, name: str, *, dir_fd: int) -> None:
        """Remove a file's name."""
        os.unlink(name, dir_fd=dir_fd)

    def mkdir(self, name: str, *, dir_fd: int) -> None:
        """Make a directory; its mode is what the umask leaves."""
        os.mkdir(name, 0o777, dir_fd=dir_fd)

    def rmdir(self, name: str, *, dir_fd: int) -> None:
        """Remove an empty directory."""
        os.rmdir(name, dir_fd=dir_fd)

    def status(self, name: str, *, dir_fd: int) -> os.stat_result:
        """Return the state of what stands at a name, a link included."""
        return os.lstat(name, dir_fd=dir_fd)
