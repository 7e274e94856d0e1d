"""What a person reads of works and instructions: everything, and nothing hidden."""

import pytest

from codespace.cli.inbox_view import intent_lines, list_lines, visible, work_line
from codespace.domain.tool import Json

WORK: Json = {
    "work_id": "work-1",
    "workspace_id": "demo",
    "title": "tidy\x1b[2J up",
    "state": "active",
    "queued": 2,
    "claimed": 0,
}
INTENT: Json = {
    "intent_id": "int-1",
    "revision": 3,
    "state": "blocked",
    "kind": "note",
    "delivery": "next_work",
    "body": "one\ntwo",
    "note": "no\u200b access",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("é 😀 中", "é 😀 中"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u200bb\u202ec\ufeff", "a\\u200bb\\u202ec\\ufeff"),
        ("a\r\n\tb\0", "a\\r\\n\\tb\\x00"),
        ("\u2028", "\\u2028"),
    ],
)
def test_nothing_is_hidden(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_ends_of_a_text_stay() -> None:
    assert visible("a\n\rb", lines=True) == "a\n\\rb"


def test_a_work_is_one_line() -> None:
    assert work_line(WORK) == "work-1  demo  active, 2 queued  tidy\\x1b[2J up"
    assert work_line({**WORK, "title": "", "queued": 0}) == "work-1  demo  active"


def test_an_instruction_is_a_line_its_text_and_its_end() -> None:
    lines = ["int-1  revision 3  blocked  note  next_work", "    one", "    two"]
    assert list(intent_lines(INTENT)) == [*lines, "    > no\\u200b access"]
    assert list(intent_lines({**INTENT, "note": None})) == lines
    listed = list(list_lines({"work": WORK, "intents": [INTENT]}))
    assert listed == [work_line(WORK), *lines, "    > no\\u200b access"]
