import os
import subprocess
import sys
from pathlib import Path

import pytest

from codespace.codemode import protocol
from codespace.codemode.machine_code import MachineCode
from codespace.codemode.pool import has_pool
from codespace.codemode.protocol import Returned
from codespace.codemode.vm import Vm
from codespace.codemode.wasm import GUEST, Machine
from doubles.machines import CODE, START_MS, machine, opening

DEAF = 'return new Array(2 ** 32 - 1).join("").length'
"""It is asked to stop, does not, and is killed where it stands."""


def few(places: int) -> Machine:
    return Machine(GUEST.read_bytes(), code=MachineCode(CODE), places=places)


def test_this_build_of_wasmtime_has_a_pool() -> None:
    assert has_pool(1)
    assert machine().places > 0


def test_where_the_pool_is_full_a_vm_has_memory_of_its_own() -> None:
    small = few(2)
    vms = [Vm(small) for _ in range(5)]
    for vm in vms:
        vm.step(opening("return await tools.a({})", tools={"a": str}))
    for number, vm in enumerate(vms):
        answer = protocol.step_input(START_MS, [protocol.resolve(1, number)])
        assert Returned(number) in vm.step(answer)
    assert len({vm.memory_hash() for vm in vms}) == len(vms)


@pytest.mark.parametrize("cache", [CODE, None])
def test_memory_of_its_own_has_the_same_machine_code(cache: Path | None) -> None:
    full = Machine(GUEST.read_bytes(), code=MachineCode(cache), places=1)
    compiled = full.module.serialize()
    assert full.spare.places == 0
    assert full.spare.module.serialize() == compiled


@pytest.mark.parametrize(
    "code",
    [
        "const left = 'x'.repeat(1e6).split(''); return await tools.a({size: left.length})",
        "const deep = () => deep() + 1; return deep()",
        "const left = []; for (;;) left.push(new Uint8Array(1e6).fill(7))",
        "while (true) {}",
        DEAF,
    ],
)
def test_a_place_gives_the_next_script_nothing_of_the_one_before(code: str) -> None:
    lone = few(1)
    fresh = Vm(lone)
    empty = fresh.memory_hash()
    fresh.step(opening(code, tools={"a": str}), seconds=0.2)
    fresh.close()
    after = Vm(lone)
    assert after.memory_hash() == empty
    assert Returned(3) in after.step(opening("return 1 + 2"))
    assert "spare" not in vars(lone)  # it had the one place


def test_address_space_that_is_not_to_be_had_is_done_without() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30));"
        "from codespace.codemode.wasm import Machine; from codespace.codemode.vm import Vm;"
        "from doubles.machines import CODE, opening; machine = Machine.load(cache=CODE);"
        "print(machine.places, Vm(machine).step(opening('return 1 + 2')))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert told.stdout == f"0 {[Returned(3)]}\n", told.stderr
