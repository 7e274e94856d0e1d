import math

from codespace.codemode.json_values import (
    DEPTH_MAX,
    as_list,
    as_object,
    as_object_or_none,
    as_several,
    as_text,
    has_only_numbers_of_json,
    is_too_deep,
)


def test_only_the_right_kind_is_taken() -> None:
    assert [as_object({"a": 1}), as_object([1]), as_object(None)] == [{"a": 1}, {}, {}]
    assert [as_object_or_none({}), as_object_or_none("x")] == [{}, None]
    assert [list(as_list([1])), list(as_list("ab"))] == [[1], []]
    assert [list(as_several([1, 2])), list(as_several("ab"))] == [[1, 2], ["ab"]]
    assert [as_text("a"), as_text(5)] == ["a", ""]


def test_depth_is_counted_over_arrays_and_objects_and_not_over_their_size() -> None:
    value: object = [1] * 10_000
    for _ in range(DEPTH_MAX - 1):
        value = {"a": [], "b": value}
    assert not is_too_deep(value)
    assert is_too_deep([value])
    assert not is_too_deep("text")
    assert not is_too_deep(None)


def test_nan_and_infinity_are_found_wherever_they_are() -> None:
    assert has_only_numbers_of_json({"a": [1, 2.5, {"b": None}], "c": "NaN"})
    for number in (math.nan, math.inf, -math.inf):
        assert not has_only_numbers_of_json(number)
        assert not has_only_numbers_of_json([{"a": [number]}])
