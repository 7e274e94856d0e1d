"""Lines of JSON-RPC: what is one, what is answered instead, and the transport on real pipes."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from codespace.adapters import stdio
from codespace.adapters.stdio import NotAMessageError, line_of, parse

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def error_of(line: bytes) -> types.ErrorData:
    with pytest.raises(NotAMessageError) as caught:
        parse(line)
    answer = caught.value.answer.message
    assert isinstance(answer, types.JSONRPCError)
    assert answer.id is None
    return answer.error


def params_of(line: bytes) -> object:
    message = parse(line).message
    assert isinstance(message, types.JSONRPCRequest)
    return message.params


def request(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + b"}"


def test_a_request_is_a_message() -> None:
    message = parse(PING).message
    assert isinstance(message, types.JSONRPCRequest)
    assert (message.id, message.method) == (1, "ping")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"jsonrpc":"2.0","method":"n"}', types.JSONRPCNotification),
        (b'{"jsonrpc":"2.0","id":"a","result":{}}', types.JSONRPCResponse),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', types.JSONRPCError),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', types.JSONRPCError),
    ],
)
def test_what_a_client_sends_is_told_apart(line: bytes, kind: type) -> None:
    assert isinstance(parse(line).message, kind)


@pytest.mark.parametrize(
    "line",
    [
        b"nope",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing',
        b"\xff\xfe",
        b'{"a":"\xff"}',
        b"{'a': 1}",
        b"\x00",
        request(b"[" * 200_000 + b"]" * 200_000),
        request(b'{"x":' + b"9" * 5_000 + b"}"),
    ],
)
def test_what_is_not_json_is_a_parse_error(line: bytes) -> None:
    assert error_of(line).code == -32700


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"[" + PING + b"]",
        b"1",
        b'"text"',
        b"null",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        request(b"[1]"),
        request(b'"text"'),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(line: bytes) -> None:
    assert error_of(line).code == -32600


@pytest.mark.parametrize("name", [b'"id"', b'"\\u0069d"'])
@pytest.mark.parametrize(
    "value", [b"1.5", b"1.0", b"1e2", b"true", b"false", b"null", b"[]", b"[1]", b"{}", b'{"a":1}']
)
def test_a_request_with_an_id_that_is_none_is_answered_and_not_taken_for_a_notification(
    name: bytes, value: bytes
) -> None:
    for more in (b"", b',"params":{"x":"\\ud800"}'):
        line = b'{"jsonrpc":"2.0",' + name + b":" + value + b',"method":"ping"' + more + b"}"
        assert error_of(line).code == -32600


@pytest.mark.parametrize(("text", "value"), [(b"0", 0), (b"-1", -1), (b'"a"', "a"), (b'""', "")])
def test_an_id_is_text_or_a_whole_number(text: bytes, value: object) -> None:
    message = parse(b'{"jsonrpc":"2.0","id":' + text + b',"method":"ping"}').message
    assert isinstance(message, types.JSONRPCRequest)
    assert message.id == value


def test_an_id_further_down_does_not_make_a_request_of_a_notification() -> None:
    line = b'{"jsonrpc":"2.0","method":"n","params":{"id":1.5}}'
    assert isinstance(parse(line).message, types.JSONRPCNotification)


def test_a_refusal_repeats_nothing_of_the_line() -> None:
    for line in (b"hunter2 is no json", b'{"password":"hunter2"}'):
        assert "hunter2" not in error_of(line).model_dump_json()


def test_half_a_character_is_let_through_for_the_tool_to_refuse() -> None:
    assert params_of(request(b'{"path":"\\ud800"}')) == {"path": "\ud800"}


def test_numbers_that_json_does_not_have_are_let_through_for_the_tool_to_refuse() -> None:
    assert str(params_of(request(b'{"x":NaN}'))) == "{'x': nan}"


def test_of_two_equal_keys_the_last_counts() -> None:
    assert params_of(request(b'{"x":1,"x":2}')) == {"x": 2}


@pytest.mark.parametrize("depth", [100, 300, 700])
def test_deep_nesting_is_a_message_or_no_json_but_never_a_crash(depth: int) -> None:
    assert params_of(request(b'{"x":' + b"[" * depth + b"]" * depth + b"}")) is not None


@given(st.binary(max_size=60))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    code: object = None
    try:
        parse(line)
    except NotAMessageError as refusal:
        code = json.loads(line_of(refusal.answer))["error"]["code"]
    assert code in (None, -32700, -32600)


def test_a_message_is_one_line_of_plain_json() -> None:
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "é\n\u2028"})
    line = line_of(SessionMessage(answer))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": 1, "result": {"text": "é\n\u2028"}}


def test_half_a_character_in_a_repeated_id_is_repeated() -> None:
    answer = types.JSONRPCResponse(jsonrpc="2.0", id="\ud800", result={"text": "é"})
    line = line_of(SessionMessage(answer))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": "\ud800", "result": {"text": "é"}}


@dataclass(slots=True)
class Pipes:
    """The client's ends of a transport's pipes, and the transport's streams."""

    to_server: int
    from_server: asyncio.StreamReader
    streams: stdio.Streams

    def send(self, data: bytes) -> None:
        os.write(self.to_server, data)

    def hang_up(self) -> None:
        os.close(self.to_server)
        self.to_server = -1

    async def answer(self) -> object:
        with anyio.fail_after(5):
            return json.loads(await self.from_server.readline())

    async def message(self) -> types.JSONRPCMessage:
        with anyio.fail_after(5):
            received = await self.streams.incoming.receive()
        assert isinstance(received, SessionMessage)
        return received.message


@asynccontextmanager
async def pumped() -> AsyncGenerator[Pipes]:
    source, to_server = os.pipe()
    from_server, sink = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_server, "rb", 0)
    )
    async with stdio._pumped(source, sink) as streams:  # pyright: ignore[reportPrivateUsage] -- the pumps, on other pipes than the process's own
        pipes = Pipes(to_server, reader, streams)
        yield pipes
        if pipes.to_server >= 0:
            pipes.hang_up()
    transport.close()


@pytest.mark.anyio
async def test_lines_become_messages_whatever_pieces_they_come_in() -> None:
    async with pumped() as pipes:
        pipes.send(PING[:10])
        pipes.send(PING[10:] + b"\n\n  \r\n" + PING.replace(b"1,", b"2,") + b"\r\n")
        ids = [(await pipes.message()).model_dump()["id"] for _ in range(2)]
        assert ids == [1, 2]


@pytest.mark.anyio
async def test_a_last_line_without_its_end_counts() -> None:
    async with pumped() as pipes:
        pipes.send(PING)
        pipes.hang_up()
        assert (await pipes.message()).model_dump()["id"] == 1
        with pytest.raises(anyio.EndOfStream):
            await pipes.streams.incoming.receive()


@pytest.mark.anyio
async def test_a_line_that_is_no_message_is_answered_and_the_next_is_read() -> None:
    async with pumped() as pipes:
        pipes.send(b"nope\n" + PING + b"\n")
        assert await pipes.answer() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "The message is not valid JSON."},
        }
        assert (await pipes.message()).model_dump()["id"] == 1


@pytest.mark.anyio
async def test_a_clients_own_error_is_not_sent_back_to_it() -> None:
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}\n'
    async with pumped() as pipes:
        pipes.send(error + b"nope\n")
        assert isinstance(await pipes.message(), types.JSONRPCError)
        assert "not valid JSON" in str(await pipes.answer())


@pytest.mark.anyio
async def test_answers_leave_in_order_as_lines() -> None:
    async with pumped() as pipes:
        for number in range(3):
            answer = types.JSONRPCResponse(jsonrpc="2.0", id=number, result={})
            await pipes.streams.outgoing.send(SessionMessage(answer))
        ids = [await pipes.answer() for _ in range(3)]
        assert ids == [{"jsonrpc": "2.0", "id": number, "result": {}} for number in range(3)]


@pytest.mark.anyio
async def test_a_line_beyond_the_limit_is_answered_and_ends_the_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stdio, "LINE_MAX_BYTES", 1_000)
    async with pumped() as pipes:
        pipes.send(b"x" * 5_000 + b"\n" + PING + b"\n")
        assert "too long" in str(await pipes.answer())
        with pytest.raises(anyio.EndOfStream):
            await pipes.streams.incoming.receive()


@pytest.mark.anyio
async def test_what_comes_while_the_gateway_ends_breaks_nothing() -> None:
    async with pumped() as pipes:
        await pipes.streams.incoming.aclose()
        pipes.send(PING + b"\n" + PING + b"\n")
        await anyio.wait_all_tasks_blocked()
        answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
        await pipes.streams.outgoing.send(SessionMessage(answer))
        assert await pipes.answer() == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.anyio
async def test_a_client_that_no_longer_reads_breaks_nothing() -> None:
    source, to_server = os.pipe()
    from_server, sink = os.pipe()
    os.close(from_server)
    async with stdio._pumped(source, sink) as streams:  # pyright: ignore[reportPrivateUsage] -- as above
        answer = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
        with anyio.move_on_after(5):
            while True:
                try:
                    await streams.outgoing.send(answer)
                except anyio.BrokenResourceError:
                    break
        os.write(to_server, PING + b"\n")
        os.close(to_server)
        with anyio.fail_after(5):
            assert isinstance(await streams.incoming.receive(), SessionMessage)
