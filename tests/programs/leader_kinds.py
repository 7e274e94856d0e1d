"""A command that leaves one kind of descendant: `leader_kinds.py KIND TOKEN`.

It says READY once the descendant lives and then stays; kinds that begin with `gone-` leave at once.
Every descendant carries TOKEN in its command line.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

KINDS = ("plain", "nohup", "setsid", "daemon", "deaf", "stopped", "hopper")
GONE = "gone-"


def sleeper(token: str) -> list[str]:
    return ["sleep", f"3600.{token}"]


def fork(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(70)
    return pid


def sleep(token: str) -> None:
    line = sleeper(token)
    os.execvp(line[0], line)


def deaf(token: str) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sleep(token)


def daemon(token: str) -> None:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.chdir("/")
    os.closerange(3, 256)
    os.execve("/bin/sleep", sleeper(token), {})


def stopped(token: str) -> None:
    os.setsid()
    sleep(token)


def hopper(token: str) -> None:
    # A new process in a new session, again and again; the parent is always gone.
    code = (
        "import os, select\n"
        "while True:\n"
        " os.fork() and os._exit(0)\n"
        " os.setsid()\n"
        " select.select([], [], [], .0005)"
    )
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", code, token])


def leave(kind: str, token: str) -> None:
    if kind == "nohup":
        subprocess.Popen(["nohup", *sleeper(token)], stdin=subprocess.DEVNULL)
    elif kind == "setsid":
        subprocess.Popen(["setsid", *sleeper(token)])
    elif kind == "daemon":
        os.waitpid(fork(lambda: daemon(token)), 0)
    elif kind == "stopped":
        pid = fork(lambda: stopped(token))
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
    else:
        acts = {"plain": sleep, "deaf": deaf, "hopper": hopper}
        fork(lambda: acts[kind](token))


def main() -> None:
    kind, token = sys.argv[1:3]
    if kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave(kind.removeprefix(GONE), token)
    print("READY", flush=True)
    if not kind.startswith(GONE):
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
