import time

from codespace.codemode import protocol
from codespace.codemode.running import Ended
from codespace.codemode.wasm import Instance
from doubles.machines import START_MS, machine, opening

MEMORY = 64 * 1024 * 1024


def give(instance: Instance, data: bytes) -> None:
    """Write the input of a step that fits into the place that a new guest has for it."""
    assert len(data) <= instance.shared.in_cap
    instance.write_input(data, instance.shared.in_ptr)


def nothing() -> None:
    """Interrupt nobody."""


def test_a_call_that_ends_has_no_trap_and_stays_ended() -> None:
    instance = Instance(machine(), memory_bytes=MEMORY)
    give(instance, opening("return 1"))
    running = instance.begin_step()
    running.finish(time.monotonic() + 30, nothing)
    assert running.ended == Ended("")
    assert running.poll()


def test_a_trap_is_told_in_one_line() -> None:
    instance = Instance(machine(), memory_bytes=MEMORY)
    give(instance, protocol.step_input(START_MS, [b"\x63\0\0\0" + bytes(9)]))
    running = instance.begin_step()
    running.finish(time.monotonic() + 30, nothing)
    assert running.ended is not None
    assert running.ended.trap == "wasm trap: wasm `unreachable` instruction executed"


def test_a_killed_call_says_so_and_a_second_kill_changes_nothing() -> None:
    instance = Instance(machine(), memory_bytes=MEMORY)
    give(instance, opening("while (true) {}"))
    running = instance.begin_step()
    assert not running.poll()
    running.kill()
    ended = running.ended
    running.kill()
    assert running.ended is ended
    assert ended is not None
    assert "did not stop" in ended.trap


def test_the_interrupt_comes_once_and_the_kill_after_it() -> None:
    instance = Instance(machine(), memory_bytes=MEMORY)
    give(instance, opening("while (true) {}"))
    asked: list[float] = []
    running = instance.begin_step()
    running.finish(time.monotonic(), lambda: asked.append(time.monotonic()))
    assert len(asked) == 1
    assert running.ended is not None
    assert "did not stop" in running.ended.trap
