import threading

import pytest

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.workspace.deadline import Deadline


def test_what_is_left_is_less_than_what_was_given() -> None:
    assert 0 < Deadline.after(60_000).remaining() <= 60


def test_past_it_the_client_is_told_the_limit_and_what_to_do() -> None:
    late = Deadline.after(0, sentence="It took longer than {limit} ms; ask for less.")
    with pytest.raises(CodeSpaceError) as caught:
        late.remaining()
    assert caught.value.body() == {
        "code": "TIMEOUT",
        "message": "It took longer than 0 ms; ask for less.",
        "details": {"limit": 0},
    }


def test_nothing_is_left_once_nobody_waits() -> None:
    abandoned = threading.Event()
    deadline = Deadline.after(60_000, abandoned=abandoned)
    abandoned.set()
    with pytest.raises(CodeSpaceError) as caught:
        deadline.remaining()
    assert caught.value.code is ErrorCode.TIMEOUT
