"""(f) From nothing to the first answers over stdio, and the memory of an idle server."""

import json
import sys
import time
from collections.abc import Iterator
from statistics import median

from calls import ARGUMENTS, BARE
from figures import Plan, Row, resident_mib
from references import beside_python
from wire import StdioClient, tool_body

BODY = {"path": "notes.txt", "content": "a note\n", "encoding": "utf-8"}


def measure(plan: Plan) -> Iterator[Row]:
    """Start both servers in turn, and look at each before it ends."""
    root = plan.folder("startup")
    (root / "notes.txt").write_text("a note\n", encoding="utf-8")
    payload = plan.scratch / "startup.json"
    payload.write_text(json.dumps(BODY), encoding="utf-8")
    commands = [
        [beside_python("codespace"), "serve", str(root)],
        [sys.executable, BARE, str(payload)],
    ]
    looks: list[list[tuple[float, ...]]] = [[], []]
    for turn in range(-1, plan.rounds(15, 3)):
        for index in (0, 1) if turn % 2 else (1, 0):
            look = first_answers(commands[index])
            if turn >= 0:
                looks[index].append(look)
    ours, bare = ([median(column) for column in zip(*side, strict=True)] for side in looks)
    note = "bare SDK server"
    yield Row("f", "start to initialize", "ms", ours[0], bare[0], None, note)
    yield Row("f", "start to the first tool call", "ms", ours[1], bare[1], None, note)
    yield Row("f", "memory, idle", "MiB", ours[2], bare[2], None, note)


def first_answers(command: list[str]) -> tuple[float, float, float]:
    """Return ms to the answer of initialize, ms to that of a call, and the MiB resident."""
    started = time.perf_counter()
    with StdioClient(command) as client:
        client.initialize()
        opened = time.perf_counter()
        tool_body(client.call("read", ARGUMENTS))
        answered = time.perf_counter()
        resident = resident_mib(client.process.pid)
    return (opened - started) * 1e3, (answered - started) * 1e3, resident
