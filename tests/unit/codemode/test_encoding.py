import json
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codespace.codemode import encoding
from codespace.codemode.encoding import PIECE, encoded, weight
from codespace.codemode.json_text import text_of_json
from codespace.codemode.tool import ToolError
from doubles.json_schemas import values
from doubles.loop_lag import watched

ROWS = [
    {"id": number, "name": f"item {number}", "tags": ["a", None, 1.5]} for number in range(4000)
]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [],
        "text",
        ROWS,
        {"rows": ROWS, "more": {str(n): n for n in range(5000)}},
        (1, (2,)),
    ],
)
async def test_a_value_becomes_its_json(value: object) -> None:
    assert json.loads(await encoded(value)) == json.loads(json.dumps(value))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "PIECE", 3)


@pytest.mark.usefixtures("small_pieces")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.recursive(values, lambda inner: st.lists(inner, max_size=4), max_leaves=10))
def test_the_pieces_are_the_text_of_the_whole(value: object) -> None:
    assert "".join(encoding.pieces(value, text_of_json)) == text_of_json(value)


@pytest.mark.anyio
@pytest.mark.parametrize("value", [{1, 2}, {"a": object()}, [b"x"] * 5000])
async def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ToolError, match="INVALID_RESULT"):
        await encoded(value)


@pytest.mark.anyio
async def test_a_circle_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(ToolError, match="INVALID_RESULT"):
        await encoded(cast("object", circle))


def test_a_look_at_a_huge_value_is_short() -> None:
    assert weight([0]) == 2
    assert weight([[0]] * 10_000_000) <= 3 * PIECE + 2
    assert weight("x" * 10_000_000) > PIECE


def test_no_piece_of_a_long_text_is_long() -> None:
    found = list(encoding.pieces({"content": "é" * 4_000_000}, text_of_json))
    assert json.loads("".join(found)) == {"content": "é" * 4_000_000}
    assert max(map(len, found)) <= PIECE * encoding.CHARS


@pytest.mark.anyio
async def test_a_large_value_lets_the_event_loop_work() -> None:
    value = [[0] for _ in range(400_000)]

    async with watched() as lag:
        text = await encoded(value)

    assert json.loads(text) == value
    assert lag.naps > 5
