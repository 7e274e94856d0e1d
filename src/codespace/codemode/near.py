"""Names that nobody knows, answered with the one that was probably meant (pure)."""

from collections.abc import Iterable


def refuse_unknown(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Let only known names pass.

    Raises:
        TypeError: one is unknown; it names the nearest that is known.
    """
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"there is no {kind} {name!r}; {_hint(name, names)}")


def _hint(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 -- its import takes as long as a run

    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
