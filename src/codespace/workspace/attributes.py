"""What a file carries beside its bytes, mode and owner: its access list, its extended attributes.

With an access list, the group bits of the mode are a bound on all its entries and no longer what
the group may do: a file that loses its list must lose bits, too.
"""

import errno
import os
import struct
from dataclasses import dataclass, replace

from codespace.domain.sizes import KIB
from codespace.workspace.syscalls import Syscalls

ACCESS_LIST = "system.posix_acl_access"

_KINDS = ("security.", "user.")
_OF_THE_CONTENT = ("security.capability", "security.evm", "security.ima")
_VALUES_MAX_BYTES = 64 * KIB
_NOT_HERE = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENODATA)

_HEAD = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_VERSION = 2
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_ALL = 0o7
_GROUP_BITS = 0o070
_OTHER_BITS = 0o007


@dataclass(frozen=True, slots=True)
class Attributes:
    """An access list as the kernel writes it, and the other attributes by name."""

    access_list: bytes | None = None
    others: tuple[tuple[str, bytes], ...] = ()

    def without_privilege(self) -> "Attributes":
        """Return those that hold for new content, too: no capabilities, no signatures."""
        kept = tuple(item for item in self.others if item[0] not in _OF_THE_CONTENT)
        return replace(self, others=kept)

    def mode_alone(self, mode: int) -> int:
        """Return the most of `mode` that lets nobody do more once the access list is gone."""
        if self.access_list is None:
            return mode
        entries = _entries(self.access_list)
        bound = entries.get(_MASK, _ALL)
        named = entries.get(_USER, _ALL) & entries.get(_GROUP, _ALL)
        group = entries.get(_OWNING_GROUP, 0) & bound & named
        other = entries.get(_OTHER, 0) & bound & named
        return mode & ~(_GROUP_BITS | _OTHER_BITS) | group << 3 & mode | other & mode


NO_ATTRIBUTES = Attributes()


def attributes_of(fd: int) -> Attributes:
    """Return what an open file carries. Values beyond 64 KiB in all are left out."""
    try:
        names = os.listxattr(fd)
    except OSError:  # a filesystem without any
        return NO_ATTRIBUTES
    if not names:
        return NO_ATTRIBUTES
    access_list = (_value(fd, ACCESS_LIST) or b"") if ACCESS_LIST in names else None
    others: list[tuple[str, bytes]] = []
    left = _VALUES_MAX_BYTES
    for name in sorted(name for name in names if name.startswith(_KINDS)):
        value = _value(fd, name)
        if value is not None and len(value) <= left:
            left -= len(value)
            others.append((name, value))
    return Attributes(access_list, tuple(others))


def put_others(calls: Syscalls, fd: int, attributes: Attributes) -> None:
    """Give a new file the attributes, and take the access list that its directory gave it.

    What may not be set here is left out.

    Raises:
        OSError: another failure.
    """
    if ACCESS_LIST in _names(fd):
        calls.remove_attribute(fd, ACCESS_LIST)
    for name, value in attributes.others:
        try:
            calls.set_attribute(fd, name, value)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise


def put_access_list(calls: Syscalls, fd: int, attributes: Attributes) -> None:
    """Give a file its access list, which sets its mode, too; without it, the mode stays."""
    if attributes.access_list:
        try:
            calls.set_attribute(fd, ACCESS_LIST, attributes.access_list)
        except OSError:  # the mode was chosen for this case
            return


def _names(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError:
        return []


def _value(fd: int, name: str) -> bytes | None:
    try:
        return os.getxattr(fd, name)
    except OSError:
        return None


def _entries(access_list: bytes) -> dict[int, int]:
    """Return the permissions by kind of entry: what all entries of the kind permit.

    A list that cannot be understood permits nothing to anybody but the owner.
    """
    found: dict[int, int] = {}
    body = access_list[_HEAD.size :]
    if len(body) % _ENTRY.size or access_list[: _HEAD.size] != _HEAD.pack(_VERSION):
        return found
    for kind, permissions, _ in _ENTRY.iter_unpack(body):
        found[kind] = found.get(kind, _ALL) & permissions
    return found
