"""An answer that is complete stands."""

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from codespace.adapters.late import LateSends

START: Message = {"type": "http.response.start", "status": 202, "headers": []}
PART: Message = {"type": "http.response.body", "body": b"a", "more_body": True}
END: Message = {"type": "http.response.body", "body": b"b"}


async def answers_of(messages: list[Message], error: Exception | None) -> list[Message]:
    """Return what leaves of the messages of an application that raises after them."""
    left: list[Message] = []

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if error is not None:
            raise error

    async def send(message: Message) -> None:
        left.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    await LateSends(application)({"type": "http"}, receive, send)
    return left


@pytest.mark.anyio
async def test_a_second_answer_does_not_leave() -> None:
    assert await answers_of([START, PART, END, START, END], None) == [START, PART, END]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [anyio.ClosedResourceError(), anyio.BrokenResourceError()])
async def test_a_session_that_ended_after_the_answer_raises_nothing(error: Exception) -> None:
    assert await answers_of([START, END], error) == [START, END]


@pytest.mark.anyio
async def test_a_session_that_ended_before_the_answer_raises() -> None:
    with pytest.raises(anyio.ClosedResourceError):
        await answers_of([START, PART], anyio.ClosedResourceError())


@pytest.mark.anyio
async def test_any_other_error_raises() -> None:
    with pytest.raises(KeyError):
        await answers_of([START, END], KeyError())
