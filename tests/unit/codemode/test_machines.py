from pathlib import Path

from codespace.codemode.machines import default_cache, machine, workers


def test_a_process_has_one_engine_for_a_folder(tmp_path: Path) -> None:
    assert machine(tmp_path) is machine(tmp_path)


def test_machine_code_is_kept_below_the_users_home() -> None:
    folder = default_cache()

    assert folder is None or folder.is_relative_to(Path.home())


def test_a_process_has_one_set_of_threads_for_long_steps() -> None:
    assert workers() is workers()
