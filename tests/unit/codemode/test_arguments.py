"""Large values become the same JSON as small ones, and hold up nobody."""

import json
import math

import pytest

from codespace.codemode.arguments import encoded_args
from codespace.codemode.encoding import PIECE


@pytest.mark.anyio
@pytest.mark.parametrize("bad", [{1}, math.nan, math.inf, object(), {(1,): 2}])
async def test_what_is_no_json_is_refused_also_deep_in_a_large_value(bad: object) -> None:
    for value in (bad, [*range(PIECE), [bad]], {"a": [0] * PIECE, "b": {"c": bad}}):
        with pytest.raises(ValueError, match="args must be a JSON value"):
            await encoded_args(value)


@pytest.mark.anyio
async def test_a_value_that_holds_itself_is_refused() -> None:
    small: list[object] = []
    small.append(small)
    large: list[object] = [*range(PIECE)]
    large.append(large)

    for value in (small, large):
        with pytest.raises(ValueError, match="args must be a JSON value"):
            await encoded_args(value)


@pytest.mark.anyio
async def test_nothing_is_an_empty_object_and_text_stays_text() -> None:
    assert await encoded_args(None) == b"{}"
    assert json.loads(await encoded_args("é" * 1_000_000)) == "é" * 1_000_000
    assert json.loads(await encoded_args((1, (2, 3)))) == [1, [2, 3]]
