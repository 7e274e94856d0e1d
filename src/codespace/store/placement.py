"""Which directories a path leads through, by their identity on disk and not by their names.

So a file of the gateway's own is found below a directory however it is spelled, linked or mounted.
What follows from that is the caller's to say.
"""

from collections.abc import Iterator
from pathlib import Path

from codespace.policy.separation import Identity

_ROOT = Path("/")
_LINKS_MAX = 40  # the kernel's own limit; a path with more opens nothing


def identity(path: str | Path) -> Identity | None:
    """Return what a path leads to, through links, too; `None` when there is nothing to be seen."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def way(path: str) -> frozenset[Identity]:
    """Return all that a path leads through, itself included, also by way of symbolic links.

    Whoever can write in one of these can make the path lead elsewhere.
    """
    seen = map(identity, _places(Path.cwd() / path))
    return frozenset(found for found in seen if found is not None)


def _places(path: Path) -> Iterator[Path]:
    here, ahead, links = _ROOT, _steps(path), 0
    yield here
    while ahead:
        step = ahead.pop()
        place = here.parent if step == ".." else here / step
        target = _target(place)
        if target is None:
            here = place
            yield here
            continue
        links += 1
        if links > _LINKS_MAX:
            return
        here = _ROOT if target.is_absolute() else here
        ahead += _steps(target)


def _steps(path: Path) -> list[str]:
    """Return the names in a path, the first one last."""
    return [part for part in reversed(path.parts) if part != path.root]


def _target(place: Path) -> Path | None:
    try:
        return place.readlink()
    except (OSError, ValueError):
        return None
