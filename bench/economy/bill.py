"""What a form of a workload costs a model, and the agent that works with single calls."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

Json = Mapping[str, object]
Caller = Callable[[str, Json], Awaitable["Answer"]]
"""Calls one tool."""

CALLS_A_TURN = 10
"""So many calls that do not need one another are sent in one turn: more than most agents do."""
CHARS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer: the JSON that the model gets to read, and whether it is an error."""

    body: Json
    is_error: bool = False


@dataclass(slots=True)
class Bill:
    """What went through the model's context.

    Attributes:
        read: characters of JSON that tools answered with.
        read_bytes: the same in UTF-8.
        written: characters of JSON that the model wrote as arguments.
        calls: tool calls that the model made.
        turns: times that the model was asked, to get those calls out of it.
        seconds: from the first call to the last answer; a model's own time is not in it.
    """

    read: int = 0
    read_bytes: int = 0
    written: int = 0
    calls: int = 0
    turns: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """The estimate of the tokens read."""
        return self.read // CHARS_A_TOKEN

    @property
    def written_tokens(self) -> int:
        """The estimate of the tokens written."""
        return self.written // CHARS_A_TOKEN

    def add(self, arguments: Json, answer: Json) -> None:
        """Note one call."""
        text = compact(answer)
        self.read += len(text)
        self.read_bytes += len(text.encode())
        self.written += len(compact(arguments))
        self.calls += 1


@dataclass(slots=True)
class Agent:
    """Stands for a model that calls tools one by one: it reads each answer in full.

    What a model would work out from the answers, the workload works out in Python.
    """

    call: Caller
    bill: Bill = field(default_factory=Bill)

    async def one(self, tool: str, arguments: Json) -> Json:
        """Make one call, in a turn of its own; it must not fail."""
        (answer,) = await self.several(tool, [arguments])
        if answer.is_error:
            raise RuntimeError(f"{tool} failed: {compact(answer.body)[:300]}")
        return answer.body

    async def several(self, tool: str, requests: Sequence[Json]) -> list[Answer]:
        """Make calls that do not need one another's answers, some in each turn."""
        started = time.perf_counter()
        answers: list[Answer] = []
        for at in range(0, len(requests), CALLS_A_TURN):
            batch = requests[at : at + CALLS_A_TURN]
            answers += await self._turn(tool, batch)
        for request, answer in zip(requests, answers, strict=True):
            self.bill.add(request, answer.body)
        self.bill.seconds += time.perf_counter() - started
        return answers

    async def _turn(self, tool: str, batch: Sequence[Json]) -> list[Answer]:
        self.bill.turns += 1
        found: dict[int, Answer] = {}

        async def call(place: int) -> None:
            found[place] = await self.call(tool, batch[place])

        async with anyio.create_task_group() as tasks:
            for place in range(len(batch)):
                tasks.start_soon(call, place)
        return [found[place] for place in range(len(batch))]


def compact(value: object) -> str:
    """Return a value as the JSON that a model reads."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
