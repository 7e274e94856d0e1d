"""Which directories and files of the operator's must be apart, so that policy stays the operator's.

Decides on identities that somebody else has looked up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Identity = tuple[int, int]
"""Of a file or directory on disk: device and inode."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A workspace's directory: what it is, all that the way to it leads through, and its policy."""

    name: str
    identity: Identity | None
    way: frozenset[Identity]
    writable: bool


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file of the gateway's own, by the setting that names it.

    `secret` is false for what clients may see, though not change.
    """

    setting: str
    path: str
    way: frozenset[Identity]
    secret: bool = True


def problems(grounds: Sequence[Ground], files: Sequence[OwnFile]) -> Iterator[str]:
    """Say, by setting, what would let clients widen their rights or get in each other's way.

    - One directory has one lease, so it is registered once.
    - Whoever writes in a workspace could change, or redirect, a second one below it.
    - Whoever reads a workspace could read the ledger or the token in it; whoever writes there could
      replace them, and the configuration as well.
    """
    for number, inner in enumerate(grounds):
        for outer in grounds[:number]:
            if inner.identity is not None and inner.identity == outer.identity:
                yield (
                    f"workspaces.{inner.name}.root: is the same directory as that of"
                    f" {outer.name!r}; register each directory once"
                )
    yield from _nested(grounds)
    yield from _exposed(grounds, files)


def _nested(grounds: Sequence[Ground]) -> Iterator[str]:
    for inner in grounds:
        for outer in grounds:
            apart = outer.identity not in inner.way or outer.identity == inner.identity
            if outer.writable and not apart:
                yield (
                    f"workspaces.{inner.name}.root: lies in the workspace {outer.name!r}, whose"
                    " clients could change or redirect it; register only one of the two, or make"
                    f" {outer.name!r} read-only"
                )


def _exposed(grounds: Sequence[Ground], files: Sequence[OwnFile]) -> Iterator[str]:
    for file in files:
        for ground in grounds:
            if ground.identity in file.way and (file.secret or ground.writable):
                yield (
                    f"{file.setting}: {file.path!r} lies in the workspace {ground.name!r}, whose"
                    " clients could read or replace it; keep it outside of every workspace, for"
                    " instance in ~/.config/codespace or ~/.local/state/codespace"
                )
