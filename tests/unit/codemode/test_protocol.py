# ruff: noqa: E501 -- scripts stand on one line, as models write them
import struct

import pytest

from codespace.codemode import protocol
from codespace.codemode.protocol import (
    Ask,
    Call,
    Failed,
    Level,
    Limits,
    Lost,
    Op,
    Pending,
    Problem,
    Question,
    Returned,
    Stored,
    Text,
    Unhandled,
)


def test_a_record_has_a_head_a_payload_and_a_nul() -> None:
    assert protocol.record(Op.RUN, b"x") == struct.pack("<III", 6, 0, 1) + b"x\0"


def test_a_step_begins_with_its_clock() -> None:
    assert protocol.step_input(2.5, [b"ab"]) == struct.pack("<d", 2.5) + b"ab"


def test_strings_go_as_they_are_and_other_values_as_json() -> None:
    assert protocol.resolve(3, '{"a":1}') == protocol.record(Op.RESOLVE_TEXT, b'{"a":1}', number=3)
    assert protocol.resolve(3, {"a": 1}) == protocol.record(Op.RESOLVE, b'{"a":1}', number=3)


@pytest.mark.parametrize("text", ["a\ud800b", "\udc00"])
def test_a_lone_surrogate_becomes_the_replacement_character(text: str) -> None:
    assert "\ufffd" in protocol.utf8(text).decode()
    assert "\ufffd" in protocol.encode({"k": text}).decode()


def test_the_seed_is_cut_to_what_the_guest_takes() -> None:
    assert protocol.start(2**70 + 5, Limits()) == protocol.start(5, Limits())


def test_every_operation_is_read() -> None:
    problem = Problem("Error", "m", 1, 2, "s", 3, "C", "")
    output = b"""[["call",1,0,2,3],["call",2,1,2,3,{"a":1},{"o":1}],["ask",2147483649,"searchTools","q"],
    ["text",2,"hi"],["store","k",1],["store","gone"],["return"],["return",5],["pending",1,2,3],["lost",4],
    ["error","Error","m",1,2,"s",3,"C",""],["unhandled","Error","m",1,2,"s",3,"C",""]]"""
    assert protocol.decode(output) == [
        Call(1, 0, 2, 3, {}, None),
        Call(2, 1, 2, 3, {"a": 1}, {"o": 1}),
        Ask(protocol.ASK_BASE + 1, Question.SEARCH, ["q"]),
        Text(Level.INFO, "hi"),
        Stored("k", deleted=False, value=1),
        Stored("gone", deleted=True, value=None),
        Returned(None, given=False),
        Returned(5),
        Pending(1, 2, 3),
        Lost(4),
        Failed(problem),
        Unhandled(problem),
    ]
