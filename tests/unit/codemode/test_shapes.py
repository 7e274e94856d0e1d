import pytest

from codespace.codemode.shapes import FIELDS_MAX, merged, shape_of
from codespace.codemode.typescript import write


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b": [True, None]}, "{ a: number; b: (boolean | null)[] }"),
        ([{"a": 1}, {"a": "x", "b": 2}], "{ a: number | string; b?: number }[]"),
        ([], "unknown[]"),
        ([[], [1]], "number[][]"),
        ({str(number): number for number in range(FIELDS_MAX + 1)}, "{ [key: string]: number }"),
        ((1, 2), "number[]"),
        (object(), "unknown"),
        ([[[[[[1]]]]]], "unknown[][][][][]"),
    ],
)
def test_a_result_shows_its_shape(value: object, text: str) -> None:
    assert write(shape_of(value)) == text


def test_two_results_make_one_shape_that_admits_both() -> None:
    first, second = shape_of({"items": [], "next": None}), shape_of({"items": [1], "total": 3})

    assert write(merged(first, second)) == "{ items: number[]; next?: null; total?: number }"
    assert merged(first, second) == merged(merged(first, second), first)
