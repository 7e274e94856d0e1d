"""A directory tree as a value: set up from a case, and taken again to compare."""

import base64
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Node = tuple[str, int, int, bytes]
"""Kind, permission bits, time of the last change in ns, and the content or the link's target."""


@dataclass(frozen=True, slots=True)
class Case:
    """One patch case, as `tests/cases/patch` holds them."""

    name: str
    raw: Mapping[str, object]

    @property
    def patch(self) -> str:
        return str(self.raw["patch"])

    @property
    def expect(self) -> Mapping[str, object]:
        return cast("Mapping[str, object]", self.raw["expect"])

    def texts(self, key: str, of: Mapping[str, object] | None = None) -> Mapping[str, str | None]:
        return cast("Mapping[str, str | None]", (of or self.raw).get(key, {}))

    def names(self, key: str, of: Mapping[str, object] | None = None) -> Sequence[str]:
        return cast("Sequence[str]", (of or self.raw).get(key, []))

    def lay_out(self, root: Path) -> None:
        for name in self.names("dirs"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, data in contents(self, self.raw).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        for name, target in self.texts("symlinks").items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(str(target))
        for name in self.names("fifos"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            os.mkfifo(root / name)


def contents(case: Case, of: Mapping[str, object]) -> dict[str, bytes]:
    """Return the regular files that `of` (a case or its expectation) lists."""
    texts = {
        name: text.encode() for name, text in case.texts("files", of).items() if text is not None
    }
    coded = {
        name: base64.b64decode(text)
        for name, text in case.texts("files_b64", of).items()
        if text is not None
    }
    return texts | coded


def regular_files(root: Path) -> dict[str, bytes]:
    """Return every regular file below `root`."""
    return {name: node[3] for name, node in snapshot(root).items() if node[0] == "file"}


def snapshot(root: Path) -> dict[str, Node]:
    """Return all that stands below `root`, with modes and times."""
    nodes: dict[str, Node] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        kind, content = "directory", b""
        if stat.S_ISREG(status.st_mode):
            kind, content = "file", path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            kind, content = "link", os.fsencode(path.readlink())
        elif not stat.S_ISDIR(status.st_mode):
            kind = "special"
        name = str(path.relative_to(root))
        nodes[name] = (kind, stat.S_IMODE(status.st_mode), status.st_mtime_ns, content)
    return nodes
