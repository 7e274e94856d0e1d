"""Requests and answers survive the way there and back; what does not fit is refused."""

import dataclasses
import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ProcessId
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.runner.api import (
    Containment,
    OutputChunk,
    ProcessState,
    RunnerFacts,
    StartRequest,
)
from codespace.runner.frames import ProtocolError
from codespace.runner.messages import (
    Answer,
    Cancel,
    Cancelled,
    Close,
    Done,
    Fields,
    Json,
    Read,
    Request,
    Resize,
    Status,
    Terminate,
    Write,
    answer_json,
    answer_of,
    facts_json,
    facts_of,
    limits_json,
    limits_of,
    request_json,
    request_of,
)

text = st.text(st.characters(exclude_categories=()), max_size=30)
number = st.integers(-(2**63), 2**63)
maybe = st.none() | number
ids = text.map(ProcessId)

requests = st.one_of(
    st.builds(
        StartRequest,
        ids,
        st.builds(Root, text, number, number),
        st.lists(text).map(tuple),
        st.dictionaries(text, text),
        tty=st.booleans(),
        paced=st.booleans(),
        stdin=st.sampled_from(["pipe", "null"]),
        time_limit_ms=number,
    ),
    st.builds(Read, ids, number, number, number),
    st.builds(Status, ids, number),
    st.builds(Write, ids, st.binary(), st.booleans()),
    st.builds(Resize, ids, number, number),
    st.builds(Terminate, ids),
    st.builds(Close),
    st.builds(Cancel),
)
answers = st.one_of(
    st.builds(OutputChunk, number, text, st.booleans(), st.booleans(), number),
    st.builds(
        ProcessState,
        st.booleans(),
        number,
        number,
        st.booleans(),
        st.sampled_from([None, "exited", "timeout", "terminated", "unknown"]),
        maybe,
        maybe,
    ),
    st.builds(Done),
    st.builds(Cancelled),
)


def sent(message: Json) -> Json:
    """Return what comes out of a frame that the message was put into."""
    return cast("Json", json.loads(json.dumps(message)))


@given(number, requests)
def test_a_request_arrives_as_it_was(known_by: int, request: Request) -> None:
    assert request_of(sent(request_json(known_by, request))) == (known_by, request)


@given(number, answers)
def test_an_answer_arrives_as_it_was(known_by: int, answer: Answer) -> None:
    assert answer_of(sent(answer_json(known_by, answer))) == (known_by, answer)


def test_a_refusal_arrives_with_its_code_sentence_and_details() -> None:
    refusal = CodeSpaceError(ErrorCode.TIMEOUT, "Send the rest.", details={"written": 7})
    known_by, arrived = answer_of(sent(answer_json(3, refusal)))
    assert isinstance(arrived, CodeSpaceError)
    assert (known_by, arrived.body()) == (3, refusal.body())


READ = request_json(1, Read(ProcessId("p"), 0, 1, 2))
START = request_json(1, StartRequest(ProcessId("p"), Root("/", 1, 2), ("a",), {"A": "b"}))
WRITE = request_json(1, Write(ProcessId("p"), b"x", close=False))


@pytest.mark.parametrize(
    "message",
    [
        {},
        {**READ, "id": "1"},
        {**READ, "id": True},
        {**READ, "id": 1.0},
        {**READ, "do": "open"},
        {**READ, "do": ["read"]},
        {**READ, "process_id": 5},
        {**READ, "wait_ms": None},
        {key: value for key, value in READ.items() if key != "cursor"},
        {**START, "argv": "ls"},
        {**START, "argv": [1]},
        {**START, "environment": ["A"]},
        {**START, "environment": {"A": 1}},
        {**START, "root": "/"},
        {**START, "root": {"path": "/", "device": "1", "inode": 2}},
        {**START, "tty": 1},
        {**START, "stdin": "file"},
        {**WRITE, "data": "no base64!"},
        {**WRITE, "data": "ü"},
    ],
)
def test_a_request_that_does_not_fit_is_refused(message: Json) -> None:
    with pytest.raises(ProtocolError):
        request_of(message)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"id": 1},
        {"id": 1, "done": 1},
        {"id": 1, "chunk": "text"},
        {"id": 1, "chunk": {"text": "x"}},
        {"id": 1, "state": {"running": False}},
        {
            "id": 1,
            "state": {
                **dataclasses.asdict(ProcessState(False, 0, 0, True)),  # noqa: FBT003 -- as it is sent
                "termination": "magic",
            },
        },
        {"id": 1, "error": {"code": "NO_SUCH_CODE", "message": "x"}},
        {"id": 1, "error": {"code": "TIMEOUT"}},
        {"id": 1, "error": "TIMEOUT"},
    ],
)
def test_an_answer_that_does_not_fit_is_refused(message: Json) -> None:
    with pytest.raises(ProtocolError):
        answer_of(message)


def test_limits_arrive_each_as_it_is_and_those_of_another_version_are_refused() -> None:
    limits = dataclasses.replace(Limits(), max_processes=3, terminate_grace_ms=1)
    given = sent(limits_json(limits))
    assert limits_of(Fields(given)) == limits
    for other in ({**given, "new_limit": 1}, {"max_processes": 3}, {**given, "max_processes": "3"}):
        with pytest.raises(ProtocolError):
            limits_of(Fields(other))


@pytest.mark.parametrize(
    "facts",
    [RunnerFacts(Containment.PID_NAMESPACE), RunnerFacts(Containment.KEEPER, "for the test")],
)
def test_facts_arrive_as_they_are(facts: RunnerFacts) -> None:
    assert facts_of(Fields(sent(facts_json(facts)))) == facts


@pytest.mark.requirement("runner.execution-requests-only")
def test_what_goes_to_the_worker_is_execution_and_nothing_else() -> None:
    # A new field is a decision: no token, no work, operation or approval id may slip in.
    assert set(START) == {
        "id",
        "do",
        "process_id",
        "root",
        "argv",
        "environment",
        "tty",
        "paced",
        "stdin",
        "time_limit_ms",
    }
