import pytest

from codespace.codemode.checking import Checker
from codespace.codemode.delivery import ready
from codespace.codemode.protocol import resolve, resolve_json
from codespace.codemode.tool import ToolError


@pytest.mark.anyio
async def test_a_text_goes_as_it_is_and_all_else_as_json() -> None:
    assert (await ready(3, '{"a": 1}', checker=None, most=100)).record == resolve(3, '{"a": 1}')
    assert (await ready(3, {"a": 1}, checker=None, most=100)).record == resolve_json(3, b'{"a":1}')


@pytest.mark.anyio
@pytest.mark.parametrize("result", ["x" * 101, ["x" * 101]])
async def test_a_result_that_is_too_large_is_refused(result: object) -> None:
    with pytest.raises(ToolError) as refusal:
        await ready(1, result, checker=None, most=100)

    assert refusal.value.code == "LIMIT_EXCEEDED"


@pytest.mark.anyio
async def test_what_the_script_gets_is_judged_and_delivered_all_the_same() -> None:
    checker = Checker({"type": "array", "items": {"type": "integer"}})

    assert (await ready(1, (1, 2), checker=checker, most=100)).misfit is None
    found = await ready(1, [1, "a"], checker=checker, most=100)
    assert found.misfit is not None
    assert found.misfit.path == "1"
    assert found.record == resolve_json(1, b'[1,"a"]')
