"""Asks the real TypeScript compiler about texts, many in one process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from programs.foreign import run_node


def complaints(texts: Sequence[str], home: Path) -> list[list[str]]:
    """Return what the compiler has against each of `texts`; an empty list is praise."""
    ended = run_node("typescript.mjs", home=home, given=json.dumps(list(texts)))
    assert ended.code == 0, ended.errors
    return cast("list[list[str]]", json.loads(ended.out))
