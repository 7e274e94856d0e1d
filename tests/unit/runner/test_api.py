"""The port itself: a runner is told how to execute, and nothing that would let it decide."""

import dataclasses

from codespace.runner.api import OutputChunk, ProcessState, StartRequest


def names(value: type) -> set[str]:
    return {field.name for field in dataclasses.fields(value)}


def test_a_request_carries_execution_and_nothing_else():
    # A new field is a decision: no token, no work, operation or approval id may slip in.
    assert names(StartRequest) == {
        "process_id",
        "root",
        "argv",
        "environment",
        "tty",
        "paced",
        "stdin",
        "time_limit_ms",
    }


def test_answers_carry_output_and_state_and_nothing_else():
    assert names(OutputChunk) == {"cursor", "text", "eof", "output_lost", "retained_from"}
    assert names(ProcessState) == {
        "running",
        "output_total",
        "output_retained_from",
        "eof",
        "termination",
        "exit_code",
        "signal",
    }
