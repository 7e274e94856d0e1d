import pytest
import wasmtime

from codespace.codemode.native import extern, has_fibers

MODULE = bytes(wasmtime.wat2wasm('(module (func (export "f")))'))


def test_this_build_of_wasmtime_has_fibers() -> None:
    assert has_fibers()


def test_an_export_is_found_by_its_name_or_missed() -> None:
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    instance = wasmtime.Instance(store, wasmtime.Module(engine, MODULE), [])
    assert extern(store, instance, b"f").kind == 0
    with pytest.raises(LookupError):
        extern(store, instance, b"g")
