import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.codemode.json_text import encode, utf8

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_json_text_is_what_the_library_writes_without_blanks(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert encode(value) == utf8(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_written_as_the_engine_reads_them(value: float) -> None:
    assert encode([value]) == json.dumps([value]).encode()


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert encode("a\ud800b") == '"a\ufffdb"'.encode()


def test_what_is_no_json_value_is_refused() -> None:
    with pytest.raises(TypeError):
        encode({"a": object()})


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        encode(circle)
