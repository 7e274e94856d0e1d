# ruff: noqa: E501 -- scripts stand on one line, as models write them
import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from codespace.codemode import protocol
from codespace.codemode.protocol import Call, Limits, Operation, Pending, Returned, Status
from codespace.codemode.snapshots import SnapshotError
from codespace.codemode.vm import MEMORY_BYTES, Entry, Vm, replay
from codespace.codemode.wasm import Instance
from codespace.domain.errors import CodeSpaceError, ErrorCode
from doubles.machines import START_MS, machine, opening, run

TESTS = Path(__file__).parents[2]

BUSY = """
const seen = [];
const work = async i => {
  const r = await tools.work({i, at: Date.now(), random: Math.random()});
  seen.push(i);
  console.log(i, r, Date.now());
  return r.text + Math.random();
};
const first = await Promise.race([1, 2, 3].map(work));
const all = await Promise.all(Array.from({length: 10}, (_, i) => work(i + 10)));
const map = new Map(all.map((text, i) => [text.slice(0, 3), {i}]));
const weak = new WeakRef({});
console.log(map, weak.deref() === undefined, new Float64Array([NaN, -0]));
all.sort(() => Math.random() - 0.5);
return {first, all, seen, now: Date.now(), big: 2n ** 80n};
"""


def settle(number: int) -> bytes:
    return protocol.resolve(number, {"text": f"r{number}", "rows": [{"id": i} for i in range(5)]})


def drive(vm: Vm, data: bytes) -> tuple[list[Entry], list[str]]:
    """Drive a script, settling the newest call first and never two in one step."""
    journal: list[Entry] = []
    outputs: list[str] = []
    waiting: list[int] = []
    now = START_MS
    while True:
        turn = vm.begin(data)
        turn.finish(time.monotonic() + 30)
        output = turn.output()
        journal.append(turn.entry)
        outputs.append(hashlib.sha256(output).hexdigest())
        waiting += [o.call_no for o in protocol.decode(output) if isinstance(o, Call)]
        if vm.status is not Status.IDLE:
            return journal, outputs
        now += 3.5
        data = protocol.step_input(now, [settle(waiting.pop())])


def in_another_process(journal: list[Entry], snapshot: bytes | None = None) -> dict[str, object]:
    """Replay in a fresh process."""
    task = {
        "snapshot": base64.b64encode(snapshot).decode() if snapshot else None,
        "journal": [[base64.b64encode(e.data).decode(), e.tick_limit] for e in journal],
    }
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, str(TESTS / "programs" / "replaying.py")],
        input=json.dumps(task),
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return cast("dict[str, object]", json.loads(done.stdout))


def test_the_guest_imports_nothing() -> None:
    assert machine().module.imports == []


def test_the_guest_exports_its_memory_and_two_functions() -> None:
    assert sorted(e.name or "" for e in machine().module.exports) == ["inbox", "memory", "step"]


def test_a_replay_in_a_fresh_process_gives_the_same_bytes_and_the_same_memory() -> None:
    vm = Vm(machine())
    journal, outputs = drive(vm, opening(BUSY, tools={"work": str}))
    assert vm.status is Status.DONE
    again = in_another_process(journal)
    assert again == {"outputs": outputs, "memory": vm.memory_hash(), "status": Status.DONE}


def test_another_seed_gives_other_random_numbers() -> None:
    values = {str(run("return Math.random()", seed=seed).value) for seed in range(20)}
    assert len(values) == 20


def test_a_snapshot_with_calls_pending_goes_on_in_another_process() -> None:
    vm = Vm(machine())
    vm.step(opening(BUSY, tools={"work": str}))
    assert vm.pending == 3
    snapshot = vm.snapshot()
    journal, outputs = drive_on(vm, [1, 2, 3])
    again = in_another_process(journal, snapshot)
    assert again == {"outputs": outputs, "memory": vm.memory_hash(), "status": Status.DONE}
    assert len(snapshot) < 20_000


def drive_on(vm: Vm, waiting: list[int]) -> tuple[list[Entry], list[str]]:
    journal: list[Entry] = []
    outputs: list[str] = []
    now = START_MS + 1000
    while vm.status is Status.IDLE:
        now += 2
        turn = vm.begin(protocol.step_input(now, [settle(waiting.pop())]))
        turn.finish(time.monotonic() + 30)
        output = turn.output()
        journal.append(turn.entry)
        outputs.append(hashlib.sha256(output).hexdigest())
        waiting += [o.call_no for o in protocol.decode(output) if isinstance(o, Call)]
    return journal, outputs


def test_a_snapshot_of_another_guest_or_a_damaged_one_is_refused() -> None:
    snapshot = Vm(machine()).snapshot()
    with pytest.raises(SnapshotError, match="another build"):
        Vm.restore(machine(), snapshot[:4] + b"\0" * 32 + snapshot[36:])
    with pytest.raises(SnapshotError, match="damaged"):
        Vm.restore(machine(), snapshot[:-1] + b"?")
    with pytest.raises(SnapshotError, match="damaged"):
        Vm.restore(machine(), snapshot[:20])


def test_an_interrupted_step_stops_a_replay_at_the_same_place() -> None:
    code = "let n = 0;\nfunction spin() {\n  while (true) { n++; if (n % 50000 === 0) console.log(n) }\n}\nspin();"
    vm = Vm(machine())
    turn = vm.begin(opening(code))
    turn.finish(time.monotonic() + 0.05)
    output = turn.output()
    assert vm.status is Status.INTERRUPTED
    assert turn.entry.tick_limit > 0
    again = Vm(machine())
    repeat = again.begin(turn.entry.data, tick_limit=turn.entry.tick_limit)
    repeat.finish(time.monotonic() + 30)
    assert repeat.output() == output
    assert again.memory_hash() == vm.memory_hash()


def test_an_interrupt_among_microtasks_is_replayed_too() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("let n = 0;\nwhile (true) { await null; n++ }"))
    turn.finish(time.monotonic() + 0.05)
    output = turn.output()
    again = Vm(machine())
    repeat = again.begin(turn.entry.data, tick_limit=turn.entry.tick_limit)
    repeat.finish(time.monotonic() + 30)
    assert repeat.output() == output
    assert again.memory_hash() == vm.memory_hash()


def test_large_inputs_and_outputs_are_replayed_to_the_same_memory() -> None:
    rows = [{"id": i, "name": f"row {i}"} for i in range(40_000)]
    code = "const r = await tools.rows({}); console.log('x'.repeat(2e6)); return (await tools.rows({r})).length"
    outcome = run(code, {"rows": lambda _: rows}, limits=Limits(arguments_bytes=2**24))
    assert outcome.value == 40_000
    again = replay(machine(), outcome.journal)
    assert again.memory_hash() == outcome.vm.memory_hash()


def test_sixteen_mebibytes_of_rows_fit_into_the_default_memory() -> None:
    rows = [{"id": i, "text": "y" * 300} for i in range(50_000)]
    code = "const r = await tools.rows({}); return r.filter(x => x.id % 2).length"
    assert run(code, {"rows": lambda _: rows}).value == 25_000


def test_one_step_with_many_records_is_as_good_as_many_steps() -> None:
    code = "const r = await Promise.race([tools.a(1), tools.b(2)]);\nreturn [r, await tools.a(3)]"
    tools = {"a": str, "b": str}
    one, many = Vm(machine()), Vm(machine())
    data = opening(code, tools=tools)
    one.step(data)
    many.step(data)
    records = [protocol.resolve(2, "b"), protocol.resolve(1, "a"), protocol.resolve(3, "c")]
    together = one.step(protocol.step_input(START_MS, records))
    apart: list[Operation] = []
    for record in records:
        apart += many.step(protocol.step_input(START_MS, [record]))
    assert together == apart
    assert Returned(["b", "c"]) in together


def test_replay_returns_a_vm_that_can_go_on() -> None:
    outcome = run("const a = await tools.one({});\nreturn a", {"one": lambda _: 5})
    vm = replay(machine(), outcome.journal[:1])
    assert vm.status is Status.IDLE
    assert Returned(5) in vm.step(outcome.journal[1].data)


def test_a_slice_gives_the_thread_back_while_the_script_runs_on() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("for (let i = 0; i < 3e6; i++);\nreturn 1"))
    polls = 1
    while not turn.poll():
        polls += 1
    assert turn.operations() == [Returned(1)]
    assert polls > 1


def test_a_step_begun_in_one_thread_ends_in_another() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("let s = 0;\nfor (let i = 0; i < 1e6; i++) s += i;\nreturn s"))
    turn.poll()
    worker = threading.Thread(target=turn.finish, args=(time.monotonic() + 30,))
    worker.start()
    worker.join(30)
    assert turn.operations() == [Returned(499999500000)]


def test_a_vm_that_does_not_stop_is_killed_and_another_lives() -> None:
    other = Vm(machine())
    other.step(opening("const r = await tools.a({});\nreturn r + 1", tools={"a": str}))
    vm = Vm(machine())
    operations = vm.step(opening('return new Array(2 ** 32 - 1).join("").length'), seconds=0.1)
    assert (operations, vm.status) == ([], Status.LOST)
    assert "did not stop" in vm.lost
    assert Returned(2) in other.step(protocol.step_input(START_MS, [protocol.resolve(1, 1)]))
    with pytest.raises(RuntimeError):
        vm.begin(opening("return 1"))


def test_a_turn_that_nobody_finishes_is_killed_with_its_vm() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("while (true) {}"))
    assert not turn.poll()
    del turn, vm
    assert run("return 1").value == 1


def test_a_closed_vm_ends_its_open_turn_and_takes_a_late_interrupt() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("while (true) {}"))
    turn.poll()
    vm.close()
    vm.interrupt()
    assert turn.poll()
    assert turn.operations() == []
    assert vm.status is Status.LOST


def test_a_killed_turn_loses_its_vm() -> None:
    vm = Vm(machine())
    turn = vm.begin(opening("while (true) {}"))
    turn.poll()
    turn.kill()
    assert (turn.operations(), vm.status) == ([], Status.LOST)


def test_an_input_that_does_not_fit_is_refused_and_the_vm_is_as_it_was() -> None:
    vm = Vm(machine(), memory_bytes=16 * 1024 * 1024)
    vm.step(opening("return (await tools.big({})).length", tools={"big": str}))
    with pytest.raises(CodeSpaceError) as caught:
        vm.begin(protocol.step_input(START_MS, [protocol.resolve(1, "x" * 16_000_000)]))
    assert caught.value.code is ErrorCode.LIMIT_EXCEEDED
    assert Returned(3) in vm.step(protocol.step_input(START_MS, [protocol.resolve(1, "abc")]))


def test_a_large_input_gives_its_memory_back() -> None:
    vm = Vm(machine())
    vm.step(
        opening(
            "for (;;) { const r = await tools.big({}); if (r === 'end') return 1 }",
            tools={"big": str},
        )
    )
    for number in range(1, 12):
        data = protocol.step_input(START_MS, [protocol.resolve(number, "x" * 8_000_000)])
        vm.step(data)
    assert vm.status is Status.IDLE
    assert Returned(1) in vm.step(protocol.step_input(START_MS, [protocol.resolve(12, "end")]))


def test_the_host_can_end_a_waiting_run_and_hears_where_it_waited() -> None:
    vm = Vm(machine())
    vm.step(
        opening(
            "async function get() {\n  return await tools.slow({});\n}\nawait get();",
            tools={"slow": str},
        )
    )
    operations = vm.step(protocol.step_input(START_MS, [protocol.end()]))
    assert vm.status is Status.ENDED
    assert Pending(1, 2, 22) in operations
    outcome = next(o for o in operations if isinstance(o, protocol.Failed))
    assert outcome.problem.line == 2


def test_strings_grown_in_fifty_rounds_do_not_confuse_the_allocator() -> None:
    code = """
    for (let round = 0; round < 50; round++) {
      let s = "";
      for (let i = 0; i < 2000; i++) s += "ab\\n";
      if (s.length !== 6000) throw new Error("wrong length");
      await tools.next({round});
    }
    return "sound"
    """
    assert run(code, {"next": lambda _: None}).value == "sound"


def test_the_clock_moves_only_with_a_step() -> None:
    code = """
    const a = Date.now(); for (let i = 0; i < 100000; i++); const b = Date.now();
    await tools.next({}); return [b - a, Date.now() - a, a]
    """
    assert run(code, {"next": lambda _: None}).value == [0, 10, START_MS]


def test_the_clock_never_goes_back() -> None:
    vm = Vm(machine())
    vm.step(
        opening("const a = Date.now(); await tools.a({}); return Date.now() - a", tools={"a": str})
    )
    assert Returned(0) in vm.step(protocol.step_input(1.0, [protocol.resolve(1, 1)]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("out_ptr", 2**32 - 1), ("out_len", 2**32 - 1), ("in_ptr", 2**32 - 1), ("status", 99)],
)
def test_a_guest_whose_own_state_is_broken_is_lost_and_nothing_outside_is_read(
    field: str, value: int
) -> None:
    instance = Instance(machine(), memory_bytes=MEMORY_BYTES)
    setattr(instance.shared, field, value)
    vm = Vm(machine(), instance=instance)
    assert (vm.status, vm.lost) == (Status.LOST, "the guest's own state is broken")
