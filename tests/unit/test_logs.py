"""What goes to stderr: our own words and places, nobody's data."""

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import anyio
import pytest
from starlette.requests import ClientDisconnect

from codespace.logs import SafeFormatter, configure

SECRET = "hunter2-hunter2"


@dataclass(frozen=True, slots=True)
class Logging:
    """Logging that goes to a text of our own."""

    stream: io.StringIO

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logging]:
    # A server that ran in this process has turned its access log off for good.
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("codespace", "mcp")}
    stream = io.StringIO()
    configure("INFO", stream)
    yield Logging(stream)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def fail(text: str) -> None:
    raise ValueError(text)


def log_a_failure(name: str, message: str) -> None:
    try:
        fail(SECRET)
    except ValueError:
        logging.getLogger(name).exception(message)


def test_our_own_message_is_written_with_its_arguments(logs: Logging) -> None:
    logging.getLogger("codespace.gateway").info("call tool=%s ms=%d", "read", 3)
    assert logs.text.endswith("INFO codespace.gateway call tool=read ms=3\n")


def test_an_exception_is_its_type_and_its_place_but_not_its_text(logs: Logging) -> None:
    log_a_failure("codespace.gateway", "call failed")
    assert "call failed" in logs.text
    assert "ValueError" in logs.text
    assert "in fail" in logs.text
    assert SECRET not in logs.text


def test_an_exceptions_causes_and_notes_are_not_written_either(logs: Logging) -> None:
    try:
        try:
            fail(SECRET)
        except ValueError as error:
            other = RuntimeError(SECRET)
            other.add_note(SECRET)
            raise other from error
    except RuntimeError:
        logging.getLogger("codespace").exception("call failed")
    assert SECRET not in logs.text
    assert "RuntimeError" in logs.text


@pytest.mark.parametrize("name", ["mcp.server", "asyncio", "codespacelike", "uvicorn.access"])
def test_another_librarys_text_is_withheld_but_its_place_is_told(logs: Logging, name: str) -> None:
    logging.getLogger(name).error("arguments were %s", SECRET)
    log_a_failure(name, SECRET)
    assert SECRET not in logs.text
    assert name in logs.text
    assert "at test_logs:" in logs.text
    assert "ValueError" in logs.text


def test_what_the_web_server_says_of_itself_is_written(logs: Logging) -> None:
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert "Invalid HTTP request received." in logs.text


def test_text_that_another_formatter_left_on_the_record_is_not_written() -> None:
    with pytest.raises(ValueError, match=SECRET) as caught:
        fail(SECRET)
    record = logging.LogRecord(
        "codespace",
        logging.ERROR,
        __file__,
        1,
        "failed",
        (),
        (caught.type, caught.value, caught.tb),
    )
    assert SECRET in logging.Formatter().format(record)
    assert SECRET not in SafeFormatter().format(record)


def test_another_formatter_still_sees_the_whole_record() -> None:
    record = logging.LogRecord("mcp", logging.ERROR, __file__, 1, "a %s", ("b",), None)
    SafeFormatter().format(record)
    assert record.getMessage() == "a b"


def test_a_record_with_no_exception_to_tell_of_is_written_all_the_same(logs: Logging) -> None:
    logging.getLogger("codespace").error("nothing raised", exc_info=(None, None, None))
    assert "nothing raised" in logs.text


def test_only_what_is_asked_for_is_written(logs: Logging) -> None:
    logging.getLogger("codespace").debug("too quiet")
    logging.getLogger("asyncio").info("too quiet")
    logging.getLogger("mcp.server").warning("too quiet")
    assert logs.text == ""


def test_configuring_twice_writes_each_line_once(logs: Logging) -> None:
    configure("INFO", logs.stream)
    logging.getLogger("codespace").info("once")
    assert logs.text.count("once") == 1


def test_logs_go_to_stderr_and_never_to_stdout(
    logs: Logging, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("INFO")
    logging.getLogger("codespace").info("a line")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "a line" in printed.err


@pytest.mark.parametrize(
    "error",
    [
        anyio.ClosedResourceError(),
        ClientDisconnect(),
        ExceptionGroup("", [anyio.BrokenResourceError(), ExceptionGroup("", [ClientDisconnect()])]),
    ],
)
def test_a_session_that_a_client_ended_is_no_error_of_the_sdk(
    error: Exception, logs: Logging
) -> None:
    logging.getLogger("mcp.server.streamable_http").error("x", exc_info=error)
    assert logs.text == ""
    logging.getLogger("codespace.gateway").error("x", exc_info=error)
    assert logs.text != ""


def test_a_fault_beside_an_ended_session_is_an_error(logs: Logging) -> None:
    error = ExceptionGroup("", [anyio.ClosedResourceError(), KeyError()])
    logging.getLogger("mcp.server.streamable_http").error("x", exc_info=error)
    assert "KeyError" not in logs.text
    assert "ERROR mcp.server.streamable_http" in logs.text
