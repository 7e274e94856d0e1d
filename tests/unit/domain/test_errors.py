"""Errors as values: what a client sees of them, and that nothing is lost on the way."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode, from_body

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_a_body_has_only_code_and_message_when_there_is_no_more_to_say() -> None:
    error = CodeSpaceError(ErrorCode.TIMEOUT, "Try again.")
    assert error.body() == {"code": "TIMEOUT", "message": "Try again."}


def test_a_body_has_details_and_operation_where_there_are_some() -> None:
    error = CodeSpaceError(
        ErrorCode.INVALID_PATCH, "Mend it.", details={"section": 1}, operation_id="op-1"
    )
    assert error.body() == {
        "code": "INVALID_PATCH",
        "message": "Mend it.",
        "details": {"section": 1},
        "operation_id": "op-1",
    }


def test_empty_details_are_left_out() -> None:
    assert "details" not in CodeSpaceError(ErrorCode.TIMEOUT, "Wait.", details={}).body()


def test_an_error_keeps_its_own_copy_of_its_details() -> None:
    details: dict[str, object] = {"path": "a"}
    error = CodeSpaceError(ErrorCode.FILE_NOT_FOUND, "No file.", details=details)
    details["path"] = "b"
    assert error.details == {"path": "a"}


def test_tying_an_error_to_an_operation_changes_nothing_else() -> None:
    error = CodeSpaceError(ErrorCode.VERSION_CONFLICT, "It changed.", details={"path": "a"})
    tied = error.of_operation("op-7")
    assert tied.body() == {**error.body(), "operation_id": "op-7"}
    assert error.operation_id is None


def test_the_text_of_an_error_names_its_code() -> None:
    assert str(CodeSpaceError(ErrorCode.TIMEOUT, "Wait.")) == "TIMEOUT: Wait."


@given(
    code=st.sampled_from(ErrorCode),
    message=st.text(),
    details=st.none() | st.dictionaries(st.text(), JSON_VALUES, max_size=3),
    operation_id=st.none() | st.text(min_size=1),
)
def test_an_error_survives_its_way_through_json(
    code: ErrorCode, message: str, details: dict[str, object] | None, operation_id: str | None
) -> None:
    error = CodeSpaceError(code, message, details=details, operation_id=operation_id)
    again = from_body(json.loads(json.dumps(error.body())))
    assert again.body() == error.body()
    assert again.code is code


def test_a_body_with_an_unknown_code_is_no_error_of_ours() -> None:
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        from_body({"code": "NO_SUCH_CODE", "message": "x"})


def test_every_code_is_its_own_name() -> None:
    assert all(code.name == code.value for code in ErrorCode)
