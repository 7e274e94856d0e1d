from pathlib import Path

import pytest
import wasmtime

from codespace.codemode.machine_code import MachineCode

WASM = wasmtime.wat2wasm('(module (func (export "f") (result i32) i32.const 7))')


def load(folder: Path | None) -> int:
    engine = wasmtime.Engine()
    module = MachineCode(folder).load(engine, bytes(WASM), "options")
    store = wasmtime.Store(engine)
    function = wasmtime.Instance(store, module, []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    return function(store)


def test_machine_code_is_kept_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert load(folder) == 7
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1
    assert load(folder) == 7


def test_damaged_machine_code_is_compiled_anew(tmp_path: Path) -> None:
    load(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"nonsense")
    assert load(tmp_path) == 7
    assert file.stat().st_size > 100


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    assert load(folder) == 7
    assert list(folder.iterdir()) == []


def test_a_file_that_others_can_write_is_not_run(tmp_path: Path) -> None:
    load(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"nonsense")
    file.chmod(0o666)
    assert load(tmp_path) == 7
    assert file.stat().st_mode & 0o077 == 0


def test_without_a_folder_nothing_is_kept() -> None:
    assert load(None) == 7


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert load(tmp_path / "file" / "cache") == 7
