"""The store of scripts over the gateway's real database."""

from collections.abc import Iterator

import pytest

from codespace.codemode import ErrorKind, RunStatus, Sandbox, Tool
from codespace.codemode.store import StoreFullError
from codespace.codemode.tool import Arguments
from codespace.domain.ids import WorkspaceId
from codespace.gateway.script_values import KeptValues, owner_of
from codespace.store.engine import Store
from codespace.store.values import ScriptValues

pytestmark = pytest.mark.anyio


@pytest.fixture
def values() -> Iterator[ScriptValues]:
    store = Store()
    yield ScriptValues(store)
    store.close()


async def test_what_one_run_stores_the_next_one_loads(values: ScriptValues) -> None:
    kept = KeptValues(values, "me")
    async with Sandbox(store=kept) as sandbox:
        await sandbox.run("store('a', {n: 2n ** 64n}); store('b', 1)")
        await sandbox.run("store('b', undefined)")
    async with Sandbox(store=kept) as sandbox:
        outcome = await sandbox.run("return [load('a'), load('b') === undefined]")
    assert outcome.value == [{"n": 2**64}, True]
    assert values.read("me") == {"a": '{"n":18446744073709551616}'}


async def test_owners_see_nothing_of_each_other(values: ScriptValues) -> None:
    one, other = KeptValues(values, "one"), KeptValues(values, "other")
    await one.write({"k": "1"}, most_chars=10)
    assert await other.read() == {}
    await other.write({"k": None}, most_chars=10)
    assert await one.read() == {"k": "1"}


async def test_each_workspace_has_an_owner_of_its_own() -> None:
    names = ["a", "b", "a/b", "b/workspace/a"]
    owners = {owner_of(WorkspaceId(name)) for name in names}
    assert len(owners) == len(names)


async def test_too_much_is_refused_and_nothing_of_it_is_kept(values: ScriptValues) -> None:
    kept = KeptValues(values, "me")
    await kept.write({"k": '"1234"'}, most_chars=10)
    with pytest.raises(StoreFullError):
        await kept.write({"k": None, "more": '"123456789"'}, most_chars=10)
    assert await kept.read() == {"k": '"1234"'}


async def test_a_run_fails_when_others_took_its_room_meanwhile(values: ScriptValues) -> None:
    async def others(arguments: Arguments) -> object:
        return values.write("me", {"theirs": '"' + "y" * 20 + '"'}, most_chars=40)

    kept = KeptValues(values, "me")
    async with Sandbox([Tool("others", others)], store=kept, store_total_chars=40) as sandbox:
        ended = await sandbox.run("store('mine', 'x'.repeat(30)); return await tools.others({})")
    assert (ended.status, ended.value, ended.store) == (RunStatus.FAILED, True, ())
    assert ended.error is not None
    assert ended.error.kind is ErrorKind.LIMIT
    assert "store_total_chars" in ended.error.message
    assert set(values.read("me")) == {"theirs"}
