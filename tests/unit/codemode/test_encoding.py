import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode import encoding
from codespace.codemode.encoding import encoded
from codespace.codemode.tool import ToolError
from doubles.json_schemas import values

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


@given(st.recursive(values, lambda inner: st.lists(inner, max_size=4), max_leaves=10))
def test_pieces_of_any_size_make_the_same_text(value: object) -> None:
    whole = b"".join(encoding.pieces(value, 10_000))

    for most in (1, 3, 10):
        assert b"".join(encoding.pieces(value, most)) == whole


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
