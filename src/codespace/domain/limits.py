"""Every limit of the contract in one value, so that `workspace_info` can tell the truth."""

from dataclasses import dataclass

from codespace.domain.sizes import KIB, MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes are bytes, times are milliseconds, counts are plain numbers."""

    read_max_bytes: int = MIB
    read_default_bytes: int = 512 * KIB
    find_max_paths: int = 10_000
    find_default_paths: int = 1_000
    grep_max_matches: int = 2_000
    grep_default_matches: int = 200
    grep_max_context: int = 10
    grep_max_text_chars: int = 500
    grep_timeout_ms: int = 20_000
    path_max_bytes: int = 4_096
    path_component_max_bytes: int = 255
    pattern_max_chars: int = 4_096
    patch_max_bytes: int = 8 * MIB
    patch_max_files: int = 1_000
    patch_file_max_bytes: int = 64 * MIB
    patch_total_max_bytes: int = 256 * MIB
    operation_key_max_chars: int = 200
    result_text_max_bytes: int = 256 * KIB
    result_max_bytes: int = 900 * KIB
    http_body_max_bytes: int = 32 * MIB
    argv_max_count: int = 4_096
    argument_max_bytes: int = 128 * KIB - 1
    argv_max_bytes: int = 512 * KIB
    max_processes: int = 8
    process_start_ms: int = 10_000
    process_timeout_ms: int = 30_000
    terminate_grace_ms: int = 2_000
    output_kept_bytes: int = 256 * KIB
    output_chunk_max_bytes: int = 64 * KIB
    wait_max_ms: int = 30_000
    stdin_max_bytes: int = MIB
    stdin_timeout_ms: int = 5_000
    tty_line_max_bytes: int = 4_095
    tty_max_size: int = 1_000
    finished_processes_kept: int = 64
    finished_process_kept_ms: int = 15 * 60 * 1_000
    bash_output_max_bytes: int = 50 * KIB
    bash_output_max_lines: int = 2_000
    bash_full_output_max_bytes: int = 64 * MIB
    active_approvals_max: int = 100
    work_title_max_chars: int = 200
    works_open_max: int = 10_000
    intent_max_chars: int = 64 * KIB
    intents_max: int = 1_000
    works_listed_max: int = 500
    inbox_body_max_bytes: int = MIB
