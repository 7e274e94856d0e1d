"""An envelope as it is read: plain success is short, and nothing else is left out."""

from codespace.codemode.json_values import as_text
from codespace.codemode.outcome import (
    CallCounts,
    ErrorKind,
    ImageItem,
    Outcome,
    RunError,
    RunProblem,
    RunStatus,
    TextItem,
    Truncation,
)
from codespace.codemode.reading import STACK_LINES, blocks, read_out

DONE = RunStatus.COMPLETED
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def read(outcome: Outcome) -> list[str]:
    return read_out(outcome.to_json()).splitlines()


def test_plain_success_is_the_value_alone() -> None:
    assert read(Outcome(DONE, value={"é": [1]})) == ['{"é": [1]}']
    assert read(Outcome(DONE, value=0)) == ["0"]
    assert read(Outcome(DONE, returned=True)) == ["null"]


def test_want_of_a_return_is_not_read_as_null() -> None:
    (line,) = read(Outcome(DONE))
    assert "nothing was returned" in line
    assert "`return`" in line
    assert read(Outcome(DONE, output=(TextItem("a"),))) == ["a"]


def test_output_comes_before_the_value_and_no_value_is_no_line() -> None:
    printed = (TextItem("one\ntwo"),)
    assert read(Outcome(DONE, value=1, output=printed)) == ["one", "two", "1"]
    assert read(Outcome(DONE, output=printed)) == ["one", "two"]


def test_blocks_keep_images_in_their_place_and_text_names_them() -> None:
    outcome = Outcome(DONE, value=1, output=(TextItem("a"), ImageItem(IMAGE), TextItem("b")))
    assert blocks(outcome.to_json()) == [
        {"type": "text", "text": "a"},
        IMAGE,
        {"type": "text", "text": "b"},
        {"type": "text", "text": "1"},
    ]
    assert read(outcome) == ["a", "[image]", "b", "1"]


def test_there_is_always_a_block() -> None:
    (only,) = blocks(Outcome(DONE).to_json())
    assert as_text(only["text"])
    (image,) = blocks(Outcome(DONE, output=(ImageItem(IMAGE),)).to_json())
    assert image == IMAGE


def test_a_run_under_way_says_how_to_go_on() -> None:
    counts = CallCounts(total=5, ok=2, failed=1)
    (line,) = read(Outcome(RunStatus.RUNNING, run_id="run-1", calls=counts))
    assert "run-1" in line
    assert "5 total, 2 ok, 1 failed;" in line
    assert "codemode_status" in line
    assert "codemode_cancel" in line


def test_a_run_that_was_cancelled_says_so_with_its_calls() -> None:
    counts = CallCounts(total=3, ok=1, cancelled=2)
    assert read(Outcome(RunStatus.CANCELLED, calls=counts)) == [
        "[cancelled; calls: 3 total, 1 ok, 2 cancelled]"
    ]


def test_a_failure_has_its_place_and_the_top_of_its_stack() -> None:
    stack = "".join(f"    at f{number}\n" for number in range(20))
    error = RunError(ErrorKind.SCRIPT, "TypeError", "no", 3, 7, stack)
    lines = read(Outcome(RunStatus.FAILED, output=(TextItem("before"),), error=error))
    assert lines[:3] == ["before", "[failed; calls: 0 total]", "TypeError: no (line 3, column 7)"]
    assert lines[3:] == [f"    at f{number}" for number in range(STACK_LINES)]


def test_a_failure_without_a_place_names_none() -> None:
    error = RunError(ErrorKind.ENGINE, "EngineError", "broke")
    assert read(Outcome(RunStatus.FAILED, error=error))[-1] == "EngineError: broke"


def test_each_problem_is_a_line_with_what_is_known_of_it() -> None:
    problems = (
        RunProblem("TIMEOUT", "Late.", 4, "read", 9, handled=True),
        RunProblem("CANCELLED", "Ended.", 5, "bash", handled=False),
        RunProblem("MORE", "Others."),
    )
    assert read(Outcome(DONE, value=1, problems=problems)) == [
        "1",
        "[problem call 4 of read at line 9: TIMEOUT: Late., caught by the script]",
        "[problem call 5 of bash: CANCELLED: Ended., not caught]",
        "[problem MORE: Others.]",
    ]


def test_a_cut_says_how_much_is_shown_and_where_the_rest_is() -> None:
    cut = Outcome(DONE, output=(TextItem("a"),), truncated=Truncation(900, 1, "out/1.txt"))
    assert read(cut)[-1] == "[cut: 1 of 900 characters are shown; the whole is in out/1.txt]"
    lost = Outcome(DONE, output=(TextItem("a"),), truncated=Truncation(900, 1, None))
    assert read(lost)[-1] == "[cut: 1 of 900 characters are shown]"


def test_a_value_that_was_cut_away_is_not_shown_as_null() -> None:
    assert read(Outcome(DONE, truncated=Truncation(900, 0, None))) == [
        "[cut: 0 of 900 characters are shown]"
    ]


def test_an_error_without_a_name_or_a_message_is_what_it_has() -> None:
    def said(name: str, message: str, line: int = 0, column: int = 0) -> str:
        error = RunError(ErrorKind.SCRIPT, name, message, line, column)
        return read(Outcome(RunStatus.FAILED, error=error))[1]

    assert said("", "plain") == "plain"
    assert said("Error", "") == "Error"
    assert (
        said("SyntaxError", "The line is wrong.", 3) == "SyntaxError: The line is wrong. (line 3)"
    )
    assert said("Error", "m", 3, 4) == "Error: m (line 3, column 4)"


def failed(*problems: RunProblem, message: str = "Do it so.") -> list[str]:
    error = RunError(ErrorKind.SCRIPT, "ToolError", message, line=3)
    return read(Outcome(RunStatus.FAILED, error=error, problems=problems))[1:]


def test_a_refusal_that_ended_the_run_is_not_told_twice() -> None:
    refused = RunProblem("NOPE", "Do it so.", 1, "patch", 3, handled=False)
    assert failed(refused) == [
        "ToolError: Do it so. (line 3)",
        "[problem call 1 of patch at line 3: NOPE: the error above, not caught]",
    ]


def test_a_refusal_that_did_not_end_the_run_keeps_its_words() -> None:
    refused = RunProblem("NOPE", "Do it so.", 1, "patch", 3, handled=False)
    others = [
        refused._replace(message="Do it otherwise."),
        refused._replace(line=4),
        refused._replace(handled=True),
        refused._replace(handled=None),
    ]
    told = failed(*others)[1:]
    assert ["the error above" in line for line in told] == [False] * 4
    assert "the error above" not in "".join(read(Outcome(DONE, problems=(refused,))))
