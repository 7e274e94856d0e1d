import pytest

from codespace.codemode.store import MemoryStore, StoreFullError


@pytest.mark.anyio
async def test_changes_are_kept_and_none_deletes() -> None:
    store = MemoryStore()

    await store.write({"a": "1", "b": "[2]"}, most_chars=100)
    await store.write({"a": None, "c": "3"}, most_chars=100)

    assert await store.read() == {"b": "[2]", "c": "3"}


@pytest.mark.anyio
async def test_what_does_not_fit_changes_nothing() -> None:
    store = MemoryStore()
    await store.write({"a": "12345"}, most_chars=10)

    with pytest.raises(StoreFullError):
        await store.write({"a": "1", "b": "x" * 10}, most_chars=10)

    assert await store.read() == {"a": "12345"}


@pytest.mark.anyio
async def test_a_reader_has_its_own_copy() -> None:
    store = MemoryStore()
    before = await store.read()

    await store.write({"a": "1"}, most_chars=10)

    assert before == {}
