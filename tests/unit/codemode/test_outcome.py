import json

from codespace.codemode.outcome import (
    KEYS_MAX,
    PROBLEMS_MAX,
    CallCounts,
    CallRecord,
    CallState,
    ErrorKind,
    ImageItem,
    Outcome,
    RunError,
    RunProblem,
    RunStatus,
    TextItem,
    Truncation,
    count,
    listed,
)


def test_the_envelope_has_every_field_also_when_nothing_happened() -> None:
    assert Outcome(RunStatus.COMPLETED).to_json() == {
        "run_id": None,
        "status": "completed",
        "value": None,
        "returned": False,
        "output": [],
        "calls": {"total": 0, "ok": 0, "failed": 0, "cancelled": 0, "unknown": 0},
        "problems": [],
        "waiting": None,
        "error": None,
        "truncated": None,
        "store": [],
        "wall_ms": 0.0,
        "engine_ms": 0.0,
    }


def test_the_envelope_tells_everything() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    outcome = Outcome(
        RunStatus.FAILED,
        output=(TextItem("a"), ImageItem(image), TextItem("b")),
        calls=CallCounts(2, 1, 1),
        problems=(RunProblem("BUSY", "Try later.", 2, "get", 7, handled=False),),
        error=RunError(ErrorKind.SCRIPT, "ToolError", "Try later.", 7, 3, "at …"),
        truncated=Truncation(9, 5, "/outputs/1.txt"),
        store=("k",),
        wall_ms=1.26,
        run_id="run-1",
    )

    told = outcome.to_json()

    assert json.loads(json.dumps(told)) == told
    assert told["output"] == [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    assert told["problems"] == [
        {
            "call_no": 2,
            "tool": "get",
            "code": "BUSY",
            "message": "Try later.",
            "handled": False,
            "line": 7,
        }
    ]
    assert told["error"] == {
        "kind": "script",
        "name": "ToolError",
        "message": "Try later.",
        "line": 7,
        "column": 3,
        "stack": "at …",
    }
    assert told["truncated"] == {
        "chars": 9,
        "kept_chars": 5,
        "path": "/outputs/1.txt",
        "value": None,
    }
    assert told["wall_ms"] == 1.3
    assert outcome.text == "a\nb"


def test_calls_are_counted_by_their_end() -> None:
    states = [CallState.OK, CallState.OK, CallState.FAILED, CallState.CANCELLED, CallState.UNKNOWN]
    records = [CallRecord(number, "t", 1, 1, state) for number, state in enumerate(states, 1)]

    assert count(records) == CallCounts(total=5, ok=2, failed=1, cancelled=1, unknown=1)


def test_problems_beyond_the_list_are_counted_by_their_code() -> None:
    many = [RunProblem("A" if number % 2 else "B", "…") for number in range(PROBLEMS_MAX + 10)]

    shown = listed(many)

    assert len(shown) == PROBLEMS_MAX + 1
    assert shown[-1].code == "MORE_PROBLEMS"
    assert shown[-1].message == "10 more problems are not listed: 5 B, 5 A."
    assert listed(many[:5]) == many[:5]


def test_an_envelope_names_so_many_keys_and_counts_the_rest() -> None:
    keys = tuple(f"key-{number}" for number in range(KEYS_MAX + 3))
    envelope = Outcome(RunStatus.COMPLETED, store=keys).to_json()
    assert envelope["store"] == list(keys[:KEYS_MAX])
    assert "3 more keys" in json.dumps(envelope["problems"])
    whole = Outcome(RunStatus.COMPLETED, store=keys[:KEYS_MAX]).to_json()
    assert whole["problems"] == []
