"""Goes through a VM's journal in a process of its own, and prints what it saw as JSON.

Input: {"snapshot": base64 or null, "journal": [[base64 of the input, tick limit], …]}.
"""

import base64
import hashlib
import json
import sys
import time

from codespace.codemode.vm import Vm
from doubles.machines import machine


def main() -> None:
    """Replay standard input."""
    task = json.load(sys.stdin)
    vm = Vm(machine())
    if task["snapshot"]:
        vm = Vm.restore(machine(), base64.b64decode(task["snapshot"]))
    outputs: list[str] = []
    for data, tick_limit in task["journal"]:
        turn = vm.begin(base64.b64decode(data), tick_limit=tick_limit)
        turn.finish(time.monotonic() + 30)
        outputs.append(hashlib.sha256(turn.output()).hexdigest())
    print(json.dumps({"outputs": outputs, "memory": vm.memory_hash(), "status": vm.status}))


main()
