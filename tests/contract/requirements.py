"""The manifest: each sentence of the contract that a test holds, by a stable id."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

SENTENCES = Path(__file__).with_name("sentences.toml")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One claim that a client may rely on. `section` is the contract's."""

    id: str
    section: str
    sentence: str


def _read() -> tuple[Requirement, ...]:
    tables = cast("dict[str, dict[str, str]]", tomllib.loads(SENTENCES.read_text(encoding="utf-8")))
    return tuple(
        Requirement(requirement_id, section, sentence)
        for section, sentences in tables.items()
        for requirement_id, sentence in sentences.items()
    )


REQUIREMENTS = _read()
