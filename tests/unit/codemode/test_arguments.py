"""Large values become the same JSON as small ones, and hold up nobody."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codespace.codemode import arguments
from codespace.codemode.arguments import PIECE, encoded_args, pieces, weight
from doubles.loop_lag import watched

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=40,
)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "PIECE", 3)


@pytest.mark.usefixtures("small_pieces")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(JSON)
def test_the_pieces_are_the_json_of_the_whole(value: object) -> None:
    assert json.loads("".join(pieces(value))) == value


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


def test_a_look_at_a_huge_value_is_short() -> None:
    assert weight([0]) == 2
    assert weight([[]] * 10_000_000) <= 2 * PIECE + 2
    assert weight("x" * 10_000_000) > PIECE


@pytest.mark.anyio
async def test_a_large_value_lets_the_event_loop_work() -> None:
    async with watched() as lag:
        text = await encoded_args([[] for _ in range(400_000)])

    assert len(json.loads(text)) == 400_000
    assert lag.naps > 5
