import hashlib
import time
from pathlib import Path

from codespace.codemode import protocol
from codespace.codemode.machine_code import MachineCode
from codespace.codemode.protocol import Returned, Status
from codespace.codemode.vm import Vm
from codespace.codemode.wasm import GUEST, Instance, Machine
from codespace.domain.limits import MIB
from doubles.machines import CODE, START_MS, machine, opening


def blocking() -> Machine:
    return Machine(GUEST.read_bytes(), code=MachineCode(CODE), fibers=False)


def test_the_guest_is_the_one_that_the_repository_pins() -> None:
    pinned = Path(__file__).parents[3] / "src" / "codespace" / "codemode" / "guest" / "guest.sha256"
    assert hashlib.sha256(GUEST.read_bytes()).hexdigest() == pinned.read_text().split()[3]


def test_fibers_are_there_on_this_machine() -> None:
    assert machine().fibers


def test_without_fibers_scripts_run_all_the_same() -> None:
    vm = Vm(blocking())
    turn = vm.begin(opening("return (await tools.a({})) + 1", tools={"a": str}))
    assert not turn.poll()
    turn.finish(time.monotonic() + 30)
    assert turn.poll()
    assert vm.status is Status.IDLE
    assert Returned(8) in vm.step(protocol.step_input(START_MS, [protocol.resolve(1, 7)]))


def test_without_fibers_an_endless_script_is_stopped() -> None:
    vm = Vm(blocking())
    vm.step(opening("while (true) {}"), seconds=0.1)
    assert vm.status is Status.INTERRUPTED


def test_without_fibers_a_deaf_engine_is_killed() -> None:
    vm = Vm(blocking())
    vm.step(opening('return new Array(2 ** 32 - 1).join("").length'), seconds=0.1)
    assert vm.status is Status.LOST


def test_both_ways_of_running_leave_the_same_memory() -> None:
    one, other = Vm(machine()), Vm(blocking())
    for vm in (one, other):
        vm.step(opening("console.log(Math.random()); await tools.a({})", tools={"a": str}))
    assert one.memory_hash() == other.memory_hash()


def test_a_thousand_vms_wait_in_little_memory() -> None:
    vms = [Vm(machine()) for _ in range(200)]
    for vm in vms:
        vm.step(opening("return await tools.a({})", tools={"a": str}))
    for vm in vms:
        assert Returned(1) in vm.step(protocol.step_input(START_MS, [protocol.resolve(1, 1)]))


def test_a_script_that_waits_has_few_pages_of_its_own() -> None:
    instance = Instance(machine(), memory_bytes=64 * MIB)
    instance.write_input(opening("await tools.a({b: 1})", tools={"a": str}), instance.shared.in_ptr)
    instance.begin_step().finish(time.monotonic() + 30, lambda: None)
    before, after = machine().image, instance.read_memory()
    pages = range(0, len(after), 4096)
    changed = [at for at in pages if after[at : at + 4096] != before[at : at + 4096]]
    assert len(changed) <= 30  # 26; with the image's holes left open there would be 40
