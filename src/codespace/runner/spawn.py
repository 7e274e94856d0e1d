"""Starts the programs that own commands: descriptors, working directory, and the process itself.

Called on the event loop's own thread only: a launcher dies with the thread that started it, and
the loop's is the one that lasts. What happens to a command afterwards is the trees' affair.
"""

import os
import subprocess  # noqa: TID251 -- the owner of the ban
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from codespace.runner import keeper
from codespace.runner.api import StartRequest
from codespace.runner.launchers import end_launcher, mark
from codespace.runner.pump import enlarge
from codespace.runner.sandbox import (
    GATE_NULL,
    GATE_PIPE,
    GATE_TERMINAL,
    containment_arguments,
    gated,
)
from codespace.runner.terminal import open_terminal


@dataclass(frozen=True, slots=True)
class Command:
    """A checked request: its program is found and `directory` is an open, verified root."""

    request: StartRequest
    program: str
    directory: int

    @property
    def argv(self) -> list[str]:
        """The command line with the program as it was found."""
        return [self.program, *self.request.argv[1:]]


@dataclass(frozen=True, slots=True)
class Spawned:
    """A started owner of a command and our ends of its descriptors.

    Attributes:
        process: the launcher or keeper.
        pidfd: stands for it, readable at its end.
        output: stdout and stderr of the command.
        stdin: its input, or `None` for /dev/null.
        order: what we tell the owner; for a launcher with a pipe the same as `stdin`.
        news: what the owner tells us.
    """

    process: subprocess.Popen[bytes]
    pidfd: int
    output: int
    stdin: int | None
    order: int
    news: int


def spawn_in_namespace(command: Command, launcher: str) -> Spawned:
    """Start bubblewrap with the command behind its gate.

    Raises:
        OSError: nothing was started and no descriptor is left.
    """
    request = command.request
    with ExitStack() as ours, ExitStack() as theirs:
        output, their_output, terminal = _output(tty=request.tty, ours=ours, theirs=theirs)
        gate, order = _pipe(ours=ours, theirs=theirs, we_write=True)
        info, news = _pipe(ours=ours, theirs=theirs, we_write=False)
        gate_text, stdin = GATE_NULL, None
        if request.tty:
            gate_text, stdin = GATE_TERMINAL, terminal
        elif request.stdin == "pipe":
            gate_text, stdin = GATE_PIPE, order
        line = [mark(), *containment_arguments(info), *gated(gate_text, command.argv)]
        process = _start(command, line, (gate, their_output, info), executable=launcher)
        pidfd = _stand_for(process)
        ours.pop_all()
        return Spawned(process, pidfd, output, stdin, order, news)


def spawn_with_keeper(command: Command) -> Spawned:
    """Start the keeper, which starts the command.

    Raises:
        OSError: nothing was started and no descriptor is left.
    """
    request = command.request
    with ExitStack() as ours, ExitStack() as theirs:
        output, their_output, terminal = _output(tty=request.tty, ours=ours, theirs=theirs)
        life, order = _pipe(ours=ours, theirs=theirs, we_write=True)
        status, news = _pipe(ours=ours, theirs=theirs, we_write=False)
        if request.tty:
            their_input, stdin = their_output, terminal
        elif request.stdin == "pipe":
            their_input, stdin = _pipe(ours=ours, theirs=theirs, we_write=True)
        else:
            their_input, stdin = subprocess.DEVNULL, None
        line = [
            *(sys.executable, "-I", "-S", str(Path(keeper.__file__).resolve())),
            # Not in place of the interpreter's name: by that it finds its own library.
            *(mark(), str(life), str(status), "tty" if request.tty else "pipe"),
            *command.argv,
        ]
        process = _start(command, line, (their_input, their_output, life, status))
        pidfd = _stand_for(process)
        ours.pop_all()
        return Spawned(process, pidfd, output, stdin, order, news)


def _start(
    command: Command,
    line: Sequence[str],
    descriptors: tuple[int, ...],
    *,
    executable: str | None = None,
) -> subprocess.Popen[bytes]:
    stdin, output, *passed = descriptors
    return subprocess.Popen(  # noqa: S603 -- starting what a client asks for is the job
        line,
        executable=executable,
        stdin=stdin,
        stdout=output,
        stderr=output,
        # The descriptor, not the path: the root cannot be exchanged in between.
        cwd=f"/proc/self/fd/{command.directory}",
        env=dict(command.request.environment),
        pass_fds=passed,
        start_new_session=True,
    )


def _stand_for(process: subprocess.Popen[bytes]) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        end_launcher(process.pid)
        process.wait()
        raise


def _output(*, tty: bool, ours: ExitStack, theirs: ExitStack) -> tuple[int, int, int | None]:
    """Return our end and the command's, and with a terminal a second descriptor of our end."""
    if not tty:
        their_end, our_end = _pipe(ours=ours, theirs=theirs, we_write=False)
        enlarge(our_end)
        return our_end, their_end, None
    our_end, their_end = open_terminal()
    ours.callback(os.close, our_end)
    theirs.callback(os.close, their_end)
    second = os.dup(our_end)
    ours.callback(os.close, second)
    return our_end, their_end, second


def _pipe(*, ours: ExitStack, theirs: ExitStack, we_write: bool) -> tuple[int, int]:
    """Return the other side's end and ours of a new pipe."""
    reader, writer = os.pipe()
    their_end, our_end = (reader, writer) if we_write else (writer, reader)
    ours.callback(os.close, our_end)
    theirs.callback(os.close, their_end)
    return their_end, our_end
