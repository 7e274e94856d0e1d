"""The limits fit each other: none can be reached only by breaking another."""

from dataclasses import asdict, fields

import pytest

from codespace.domain.limits import Limits
from codespace.domain.sizes import JSON_INTEGER_MAX

LIMITS = Limits()


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_every_limit_is_positive_and_exact_in_every_clients_json(name: str) -> None:
    assert 0 < asdict(LIMITS)[name] <= JSON_INTEGER_MAX


@pytest.mark.parametrize(
    ("default", "most"),
    [
        ("read_default_bytes", "read_max_bytes"),
        ("find_default_paths", "find_max_paths"),
        ("grep_default_matches", "grep_max_matches"),
        ("patch_file_max_bytes", "patch_total_max_bytes"),
        ("argument_max_bytes", "argv_max_bytes"),
        ("output_chunk_max_bytes", "output_kept_bytes"),
        ("path_component_max_bytes", "path_max_bytes"),
        ("bash_output_max_bytes", "result_text_max_bytes"),
        ("bash_output_max_bytes", "bash_full_output_max_bytes"),
        ("patch_max_bytes", "http_body_max_bytes"),
        ("result_text_max_bytes", "result_max_bytes"),
    ],
)
def test_the_smaller_limit_is_within_the_larger(default: str, most: str) -> None:
    assert asdict(LIMITS)[default] <= asdict(LIMITS)[most]


def test_a_result_stays_below_the_one_mebibyte_that_clients_take() -> None:
    assert LIMITS.result_max_bytes < 1024 * 1024


def test_the_contracts_numbers_are_in_force() -> None:
    told = {
        "read_max_bytes": 1_048_576,
        "read_default_bytes": 524_288,
        "find_max_paths": 10_000,
        "find_default_paths": 1_000,
        "grep_max_matches": 2_000,
        "grep_default_matches": 200,
        "grep_max_context": 10,
        "result_text_max_bytes": 262_144,
        "max_processes": 8,
        "process_timeout_ms": 30_000,
        "output_kept_bytes": 262_144,
        "wait_max_ms": 30_000,
        "tty_max_size": 1_000,
        "finished_processes_kept": 64,
        "finished_process_kept_ms": 900_000,
        "bash_output_max_bytes": 51_200,
        "bash_output_max_lines": 2_000,
    }
    assert told.items() <= asdict(LIMITS).items()
