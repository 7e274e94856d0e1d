import logging

import pytest

from codespace.codemode.tool_bugs import internal


def test_the_log_has_what_the_script_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = internal("find", RuntimeError("password=hunter2"))

    assert error.code == "INTERNAL"
    assert "hunter2" not in error.message
    assert "RuntimeError" in error.message
    assert "hunter2" in caplog.text
    assert error.message.rpartition(" ")[2].rstrip(".") in caplog.text
