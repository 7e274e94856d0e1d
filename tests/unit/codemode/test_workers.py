"""Few threads for many steps: each has its turns, and its own time."""

import threading
import time
from concurrent.futures import Future

import pytest

from codespace.codemode.machine_code import MachineCode
from codespace.codemode.protocol import Returned, Status
from codespace.codemode.vm import Turn, Vm
from codespace.codemode.wasm import GUEST, Machine
from codespace.codemode.workers import SHARE_SECONDS, Spent, Workers
from doubles.machines import CODE, machine, opening

ENDLESS = "while (true) {}"
DEAF = 'return new Array(2 ** 32 - 1).join("").length'


def begun(code: str, of: Machine | None = None) -> tuple[Vm, Turn]:
    vm = Vm(of or machine())
    return vm, vm.begin(opening(code))


def far() -> float:
    return time.monotonic() + 3600


def test_a_step_that_ends_is_told_with_its_time() -> None:
    _, turn = begun("let n = 0; while (n < 1e6) n++; return n")

    spent = Workers(1).finish(turn, seconds=30, deadline=far()).result(30)

    assert Returned(1_000_000) in turn.operations()
    assert 0 < spent.seconds < 30
    assert not spent.stopped


def test_each_of_many_endless_steps_gets_all_of_its_seconds_on_one_thread() -> None:
    workers, seconds = Workers(1), 3 * SHARE_SECONDS
    began = time.monotonic()
    told = [workers.finish(begun(ENDLESS)[1], seconds=seconds, deadline=far()) for _ in range(5)]
    spent = [each.result(30) for each in told]

    assert all(each.stopped and not each.overdue for each in spent)
    assert all(each.seconds >= seconds for each in spent)
    assert time.monotonic() - began >= sum(each.seconds for each in spent)


class Noting:
    """A step of some turns, that notes each of them."""

    pausable = True

    def __init__(self, notes: list[str], name: str, turns: int) -> None:
        self.notes, self.name, self.turns = notes, name, turns

    def run_until(self, until: float) -> bool:
        self.notes.append(self.name)
        self.turns -= 1
        return not self.turns

    def finish(self, deadline: float) -> None:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


class Gate(Noting):
    """A step that holds its thread until it is opened."""

    def __init__(self) -> None:
        super().__init__([], "gate", 1)
        self.opened = threading.Event()

    def run_until(self, until: float) -> bool:
        return self.opened.wait(30)


class Broken(Noting):
    def run_until(self, until: float) -> bool:
        raise LookupError


def test_the_steps_take_turns() -> None:
    order: list[str] = []
    gate, workers = Gate(), Workers(1)
    told = [workers.finish(gate, seconds=60, deadline=far())]
    for name, turns in (("a", 3), ("b", 1), ("c", 2)):
        told.append(workers.finish(Noting(order, name, turns), seconds=60, deadline=far()))
    gate.opened.set()
    for each in told:
        each.result(30)

    assert "".join(order) == "abcaca"


def test_a_step_that_had_no_turn_does_not_wait_behind_all_that_had_one() -> None:
    order: list[str] = []
    gate, workers = Gate(), Workers(1)
    later: list[Future[Spent]] = []

    class Adding(Noting):
        def run_until(self, until: float) -> bool:
            if self.turns == 2:
                later.append(workers.finish(Noting(order, "x", 1), seconds=60, deadline=far()))
            return super().run_until(until)

    steps = (gate, Adding(order, "a", 3), Noting(order, "b", 3), Noting(order, "c", 3))
    told = [workers.finish(step, seconds=60, deadline=far()) for step in steps]
    gate.opened.set()
    for each in told:
        each.result(30)

    assert later[0].done()
    assert "".join(order) == "abcabxcabc"


def test_what_is_over_its_deadline_comes_first_and_says_so() -> None:
    workers = Workers(1)
    long = [workers.finish(begun(ENDLESS)[1], seconds=1, deadline=far()) for _ in range(3)]
    late = workers.finish(begun(ENDLESS)[1], seconds=1, deadline=time.monotonic())
    spent = late.result(30)

    assert spent.stopped
    assert spent.overdue
    assert not any(each.done() for each in long)
    assert all(each.result(30).stopped for each in long)


def test_a_step_that_does_not_listen_is_killed() -> None:
    vm, turn = begun(DEAF)
    spent = Workers(1).finish(turn, seconds=0.05, deadline=far()).result(30)
    turn.output()

    assert spent.stopped
    assert vm.status is Status.LOST


@pytest.mark.parametrize("code", [ENDLESS, DEAF])
def test_without_fibers_steps_are_stopped_all_the_same(code: str) -> None:
    blocking = Machine(GUEST.read_bytes(), code=MachineCode(CODE), fibers=False)
    vm, turn = begun(code, blocking)
    spent = Workers(1).finish(turn, seconds=0.05, deadline=far()).result(30)
    turn.output()

    assert spent.stopped
    assert not spent.overdue
    assert vm.status in (Status.INTERRUPTED, Status.LOST)


def test_a_fault_is_told_to_whoever_waits_and_the_thread_goes_on() -> None:
    workers = Workers(1)
    told = workers.finish(Broken([], "broken", 1), seconds=1, deadline=far())

    with pytest.raises(LookupError):
        told.result(30)
    assert not workers.finish(begun("return 1")[1], seconds=30, deadline=far()).result(30).stopped


def test_no_thread_stands_in_the_way_of_the_end_of_a_process() -> None:
    gate = Gate()
    told = Workers(1).finish(gate, seconds=60, deadline=far())
    threads = [each for each in threading.enumerate() if each.name == "codemode"]
    gate.opened.set()
    told.result(30)

    assert threads
    assert all(each.daemon for each in threads)
