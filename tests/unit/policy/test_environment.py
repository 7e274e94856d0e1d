"""The environment of commands: minimal, the operator's additions, and never the gateway's own."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.policy.environment import DEFAULT_PATH, CommandEnvironment, select


def test_a_command_sees_the_minimal_variables_and_no_others():
    variables = CommandEnvironment(home="/home/me").variables(tty=False)
    assert variables == {
        "PATH": DEFAULT_PATH,
        "HOME": "/home/me",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",
    }


def test_a_terminal_adds_its_type():
    environment = CommandEnvironment(home="/")
    added = environment.variables(tty=True).items() - environment.variables(tty=False).items()
    assert added == {("TERM", "xterm-256color")}


def test_what_the_operator_passes_wins():
    passed = {"PATH": "/opt/bin", "TERM": "dumb", "CI": ""}
    variables = CommandEnvironment(home="/", passed=passed).variables(tty=True)
    assert passed.items() <= variables.items()


def test_a_returned_environment_is_the_callers_own():
    environment = CommandEnvironment(home="/")
    environment.variables(tty=False)["PATH"] = "changed"
    assert environment.variables(tty=False)["PATH"] == DEFAULT_PATH


@pytest.mark.parametrize("name", ["", "A=B", "=", "A\0B", "\ud800"])
def test_a_name_that_no_environment_can_hold_is_refused(name: str):
    with pytest.raises(CodeSpaceError) as caught:
        CommandEnvironment(home="/", passed={name: "value"})
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("value", ["a\0b", "\udcff"])
def test_a_value_that_no_environment_can_hold_is_refused_and_not_repeated(value: str):
    with pytest.raises(CodeSpaceError) as caught:
        CommandEnvironment(home="/", passed={"SECRET": "hunter2" + value})
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details == {"variable": "SECRET"}
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    "make",
    [
        lambda: CommandEnvironment(home="/\0"),
        lambda: CommandEnvironment(home="/", path="\0"),
        lambda: CommandEnvironment(home="/", temporary_directory="\0"),
    ],
)
def test_a_nul_in_a_minimal_variable_is_refused(make: Callable[[], CommandEnvironment]):
    with pytest.raises(CodeSpaceError) as caught:
        make()
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "name", ["CODESPACE_HTTP_TOKEN", "CODESPACE_CONFIG", "codespace_http_token"]
)
def test_the_gateways_own_variables_cannot_be_passed(name: str):
    with pytest.raises(CodeSpaceError) as given_directly:
        CommandEnvironment(home="/", passed={name: "secret"})
    with pytest.raises(CodeSpaceError) as selected:
        select([name], {name: "secret"})
    for caught in (given_directly, selected):
        assert caught.value.code is ErrorCode.INVALID_ARGUMENT
        assert "secret" not in caught.value.message


def test_selecting_takes_the_named_variables_that_are_there():
    available = {"LANG": "de_DE.UTF-8", "CODESPACE_HTTP_TOKEN": "secret", "HOME": "/root"}
    assert select(["LANG", "HOME", "ABSENT"], available) == {"LANG": "de_DE.UTF-8", "HOME": "/root"}


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_what_is_accepted_can_be_given_to_a_process(passed: dict[str, str]):
    try:
        variables = CommandEnvironment(home="/", passed=passed).variables(tty=False)
    except CodeSpaceError:
        return
    for name, value in variables.items():
        assert name
        assert "=" not in name
        assert "\0" not in name + value
        assert (name + value).encode()
        assert not name.startswith("CODESPACE_")
