import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.json_pieces import PIECE, Pieces, decoded

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


def run(pieces: Pieces) -> tuple[object, int, list[int]]:
    stops: list[int] = []
    while True:
        try:
            stops.append(next(pieces))
        except StopIteration as end:
            return *end.value, stops


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@given(values, st.integers(0, 40))
def test_it_is_what_json_says_it_is(value: object, size: int) -> None:
    # Each part is as long as a piece, so that arrays and objects do not fit into one.
    text = compact([value, "x" * PIECE, {"a": value, "b" * PIECE: [value]}, "y" * size])
    found, end, _ = run(decoded(text))
    assert compact(found) == text
    assert end == len(text)


@pytest.mark.parametrize(
    "value",
    [
        [{"id": number, "name": f"row {number}"} for number in range(20_000)],
        {f"key {number}": [number] for number in range(20_000)},
        [[[[[list(range(60_000))]]]]],
        {"a": {"b": {"c": [[number] * 9_000 for number in range(10)]}}},
    ],
)
def test_it_stops_after_every_few_thousand_characters(value: object) -> None:
    text = compact(value)
    found, end, stops = run(decoded(text))
    assert found == value
    gaps = [after - before for before, after in zip([0, *stops], [*stops, end], strict=True)]
    assert max(gaps) < 2 * PIECE


@pytest.mark.parametrize("ending", ["", ",", "]", ":1}", ",]", "x]", '"a"}', "1 2]"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_what_is_no_json_is_refused(opening: str, ending: str) -> None:
    text = f'{opening}"{"x" * PIECE}"{ending}'
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"expected|Expecting|Extra|no name"):
            run(decoded(text))
    else:
        assert run(decoded(text))[0] == json.loads(text)
