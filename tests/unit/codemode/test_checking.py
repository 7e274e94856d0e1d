import pytest

from codespace.codemode.checking import LARGE, LARGE_FOR_QUICK, Checker, is_large
from doubles.loop_lag import watched


def test_large_is_told_without_looking_at_everything() -> None:
    cycle: list[object] = []
    cycle.append(cycle)

    assert not is_large({"a": [1, 2, {"b": None}]})
    assert not is_large(list(range(LARGE - 1)))
    assert is_large(list(range(LARGE + 1)))
    assert is_large({"a": [[number] for number in range(LARGE)]})
    assert is_large(cycle)


@pytest.mark.anyio
async def test_a_misfit_is_found_where_the_quick_check_says_no() -> None:
    checker = Checker({"properties": {"a": {"type": "string"}}})

    assert checker.accepts({"a": "x"})
    assert not checker.accepts({"a": 1})
    assert [each.path for each in await checker.misfits({"a": 1})] == ["a"]
    assert list(await checker.misfits({"a": "x"})) == []


@pytest.mark.anyio
async def test_a_large_value_is_judged_beside_the_event_loop() -> None:
    checker = Checker({"items": {"oneOf": [{"type": "integer"}, {"type": "string"}]}})
    await checker.misfits([])

    async with watched() as lag:
        assert list(await checker.misfits([*range(5_000), None]))

    assert lag.naps > 0


@pytest.mark.anyio
async def test_a_hostile_schema_holds_up_nobody() -> None:
    twice = {"items": {"$ref": "#/$defs/a"}}
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "anyOf": [twice, twice]}}}
    checker = Checker(schema)
    await checker.misfits([])
    value: object = None
    for _ in range(60):
        value = [value]

    async with watched() as lag:
        await checker.misfits(value)

    assert lag.naps > 10


@pytest.mark.anyio
@pytest.mark.parametrize("parts", [1, LARGE_FOR_QUICK, 300_000])
async def test_a_value_of_any_size_is_accepted_beside_the_event_loop(parts: int) -> None:
    checker = Checker({"type": "array", "items": {"type": "integer"}})

    async with watched() as lag:
        assert await checker.accepts_any([1] * parts)
        assert not await checker.accepts_any([1] * parts + [None])

    assert lag.naps or parts <= LARGE_FOR_QUICK
