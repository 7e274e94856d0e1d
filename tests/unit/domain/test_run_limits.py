from dataclasses import fields

import pytest

from codespace.domain.run_limits import LimitOptions, RunLimits


def test_every_limit_can_be_given_by_its_name() -> None:
    assert {field.name for field in fields(RunLimits)} == set(LimitOptions.__annotations__)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "4"])
def test_a_limit_must_be_a_positive_integer(value: object) -> None:
    given = {"concurrency": value}

    with pytest.raises(ValueError, match="concurrency"):
        RunLimits(**given)  # pyright: ignore[reportArgumentType] -- the misuse is the point


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"max_calls": 2**32}, "max_calls"),
        ({"store_value_chars": 2**30 + 1}, "store_value_chars"),
        ({"memory_mib": 1}, "memory_mib"),
        ({"memory_mib": 4_097}, "memory_mib"),
    ],
)
def test_a_limit_that_no_run_could_have_is_refused(given: LimitOptions, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        RunLimits(**given)
