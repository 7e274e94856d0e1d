"""A command in a PID namespace of its own, made by bubblewrap: when PID 1 dies, all of it does.

The order of events is: the launcher names PID 1, the gate acknowledges, we say go. The leader's
end makes the launcher end, and that, or a kill, ends PID 1. Only when both are gone is it over.
"""

import contextlib
import json
import logging
import os
import signal
from typing import cast

import anyio

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.workspace import Root
from codespace.runner.command import is_root, root_refusal
from codespace.runner.keeper import ask_to_end, descendants, signal_quietly
from codespace.runner.launchers import end_launcher, stop_launcher
from codespace.runner.sandbox import ACKNOWLEDGEMENT, mend_for
from codespace.runner.spawn import Spawned
from codespace.runner.status import exact_status, unfolded_status
from codespace.runner.tree import OnEnd, Watched, did_not_start

_COMPLAINT_BYTES = 4_096

_log = logging.getLogger(__name__)


class NamespaceTree:
    """Owns the launcher, PID 1 of its namespace, and the leader."""

    def __init__(self, spawned: Spawned, root: Root, on_end: OnEnd) -> None:
        self._spawned = spawned
        self._root = root
        self._on_end = on_end
        self._launcher = Watched(spawned.pidfd, self._on_launcher_end)
        self._info = Watched(spawned.news, self._on_info)
        self._gate = Watched(spawned.output, self._on_gate)
        self._order: int | None = spawned.order
        self._init: Watched | None = None
        self._init_pid = 0
        self._leader: int | None = None
        self._said = bytearray()
        self._information = bytearray()
        self._acknowledged = False
        self._killed = False
        self._launcher_stopped = False
        self._over = False
        self._settled = anyio.Event()

    async def begin(self) -> None:
        """Return once the gate was told to let the command through."""
        await self._settled.wait()
        if self._killed:
            raise did_not_start()
        if self._over:
            raise self._complaint()
        # Alone below PID 1 and still in the gate: this is what becomes the command.
        leader = next(descendants(self._init_pid), None)
        if leader is None:
            raise did_not_start()
        self._check_directory(leader)
        self._hold_leader(leader)
        self._say_go()

    def ask_to_end(self) -> None:
        """Send SIGTERM to all in the namespace but PID 1, and let them outlive the leader."""
        if self._init is None or not self._init.is_open:
            return
        # The launcher would end with the leader, and all others with it. PID 1 alone ends with
        # the last of them.
        self._launcher_stopped = True
        _send(self._launcher.descriptor, signal.SIGSTOP)
        ask_to_end(self._init_pid)

    def kill(self) -> None:
        """Kill PID 1, or the launcher while there is none."""
        if self._over:
            return
        self._killed = True
        if self._init is None:
            self._kill_half_made()
        elif self._init.is_open:
            _send(self._init.descriptor, signal.SIGKILL)
        elif self._launcher.is_open:  # it is stopped, or it hangs
            _send(self._launcher.descriptor, signal.SIGKILL)

    def _kill_half_made(self) -> None:
        launcher = self._spawned.process.pid
        for child in stop_launcher(launcher)[:1]:
            self._hold_init(child)
            signal_quietly(child, signal.SIGKILL)
        signal_quietly(launcher, signal.SIGKILL)

    def _hold_init(self, pid: int) -> bool:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # no descriptor left, or dead already
            return False
        self._init_pid = pid
        self._init = Watched(pidfd, self._on_init_end)
        return True

    def _on_info(self) -> None:
        data = self._info.read()
        if data is None:
            return
        self._information += data
        if not data or self._learn_init():
            self._info.close()
            self._settle()

    def _learn_init(self) -> bool:
        try:
            known = cast("dict[str, int]", json.loads(self._information))
        except ValueError:  # it comes in pieces
            return False
        if self._init is None and not self._hold_init(known["child-pid"]):
            signal_quietly(known["child-pid"], signal.SIGKILL)
            end_launcher(self._spawned.process.pid)
        return True

    def _on_gate(self) -> None:
        data = self._gate.read()
        if data is None:
            return
        self._said += data[:_COMPLAINT_BYTES]
        self._acknowledged = ACKNOWLEDGEMENT in self._said
        if not data or self._acknowledged:
            self._gate.release()
            self._settle()

    def _settle(self) -> None:
        if self._acknowledged and self._init is not None:
            self._settled.set()

    def _check_directory(self, leader: int) -> None:
        # The launcher went there by its path, in a new mount namespace. The gate holds it there,
        # so what is compared is what the command gets.
        try:
            status = os.stat(f"/proc/{leader}/cwd")  # noqa: PTH116 -- a link that only the kernel resolves
        except OSError as error:
            raise did_not_start() from error
        if not is_root(status, self._root):
            raise root_refusal(None)

    def _hold_leader(self, leader: int) -> None:
        with contextlib.suppress(OSError):  # then the launcher's own exit code has to do
            self._leader = os.pidfd_open(leader)

    def _say_go(self) -> None:
        try:
            os.write(self._spawned.order, b"\n")
        except OSError as error:
            raise did_not_start() from error
        self._close_order()

    def _close_order(self) -> None:
        order, self._order = self._order, None
        # With a pipe it is the command's standard input, and somebody else's from the start.
        if order is not None and order != self._spawned.stdin:
            os.close(order)

    def _on_launcher_end(self) -> None:
        if self._spawned.process.poll() is None:
            return
        self._launcher.close()
        self._on_info()
        if self._init is not None and self._init.is_open:
            _send(self._init.descriptor, signal.SIGKILL)
        self._finish_if_over()

    def _on_init_end(self) -> None:
        if self._init is not None:
            self._init.close()
        if (self._launcher_stopped or self._killed) and self._launcher.is_open:
            _send(self._launcher.descriptor, signal.SIGKILL)
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        alive = self._launcher.is_open or (self._init is not None and self._init.is_open)
        if alive or self._over:
            return
        self._over = True
        self._collect_init()
        self._on_gate()  # a complaint may have come together with the end
        self._gate.release()
        self._info.close()
        self._close_order()
        status = self._status()
        self._settled.set()
        self._on_end(status)

    def _collect_init(self) -> None:
        # Its parent, the launcher, may go first. Whoever adopts is its parent then: where that is
        # this process, nobody else would ever collect it.
        if self._init_pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._init_pid, os.WNOHANG)

    def _status(self) -> int | None:
        leader, self._leader = self._leader, None
        folded = self._spawned.process.returncode
        if leader is None:
            return unfolded_status(folded)
        exact = exact_status(leader)
        os.close(leader)
        return unfolded_status(folded) if exact is None else exact

    def _complaint(self) -> CodeSpaceError:
        said = bytes(self._said).decode(errors="replace").strip()
        _log.error("the launcher did not start a command", extra={"reason": said})
        return CodeSpaceError(
            ErrorCode.PROCESS_SPAWN_FAILED,
            f"The command's containment did not come up, so nothing was started. {mend_for(said)}",
        )


def _send(pidfd: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)
