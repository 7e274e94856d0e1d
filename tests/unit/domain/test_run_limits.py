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
