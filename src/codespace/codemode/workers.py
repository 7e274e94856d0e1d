"""The threads that end long steps: few of them, so that each script has them in its turn.

Where more scripts want to compute than there are threads, one that has had its share waits behind
the others. Waiting is not computing, be it for a thread or for a processor: it is not counted.
"""

import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from codespace.codemode.running import GRACE_SECONDS

SHARE_SECONDS = 0.02
LINGER_SECONDS = 1.0


class Step(Protocol):
    """A step that has begun, and has not ended."""

    @property
    def pausable(self) -> bool:
        """Whether it can give its thread back before it ends."""
        ...

    def run_until(self, until: float) -> bool:
        """Run until then, of `time.monotonic`, at most; True when it has ended."""
        ...

    def finish(self, deadline: float) -> None:
        """Run to the end, stopped at `deadline`."""
        ...

    def interrupt(self) -> None:
        """Ask it to stop."""
        ...

    def kill(self) -> None:
        """End it where it stands."""
        ...


class Spent(NamedTuple):
    """What a step took: `seconds` of computing; and whether it was stopped, and by what."""

    seconds: float
    stopped: bool = False
    overdue: bool = False
    """It was stopped by its deadline, not by the seconds that it was given."""


class Workers:
    """At most `most` steps run at a time; the others wait for their turns.

    The threads end when nothing has come for a while, and hold up no end of the process.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._alive = self._idle = 0
        self._waiting: deque[_Job] = deque()
        self._prefers_fresh = False
        self._news = threading.Condition()

    def finish(self, step: Step, *, seconds: float, deadline: float) -> Future[Spent]:
        """Run a step to its end.

        It is interrupted when it has computed for `seconds`, or at `deadline` of
        `time.monotonic`; if that does not help, it is killed.
        """
        job = _Job(step, seconds, deadline)
        job.told.set_running_or_notify_cancel()  # nobody can take it back
        with self._news:
            self._waiting.append(job)
            if len(self._waiting) <= self._idle:
                self._news.notify()
            elif self._alive < self._most:
                self._alive += 1
                threading.Thread(target=self._serve, name="codemode", daemon=True).start()
        return job.told

    def _serve(self) -> None:
        job = self._next(None)
        while job is not None:
            job = self._next(None if _turn(job) else job)

    def _next(self, last: "_Job | None") -> "_Job | None":
        with self._news:
            if last is not None:
                self._waiting.append(last)
            if not self._waiting:
                self._idle += 1
                self._news.wait(LINGER_SECONDS)
                self._idle -= 1
            if not self._waiting:
                self._alive -= 1
                return None
            now = time.monotonic()
            chosen = next((each for each in self._waiting if each.deadline <= now), None)
            if chosen is None:
                chosen = self._fresh() or self._waiting[0]
            self._waiting.remove(chosen)
            return chosen

    def _fresh(self) -> "_Job | None":
        # Every second turn is for a step that has had none: most are short, and would else wait
        # behind all that compute.
        self._prefers_fresh = not self._prefers_fresh
        if not self._prefers_fresh:
            return None
        return next((each for each in self._waiting if each.is_fresh), None)


class _Job:
    def __init__(self, step: Step, seconds: float, deadline: float) -> None:
        self.step, self.deadline = step, deadline
        self.told: Future[Spent] = Future()
        self.is_fresh = True
        self._allowed = seconds
        self._took = 0.0
        self._stopped = self._overdue = False

    def take_turn(self) -> bool:
        """Run for a share; True when the step has ended."""
        self.is_fresh = False
        if not self.step.pausable:
            return self._run_whole()
        began, now = time.thread_time(), time.monotonic()
        ended = self.step.run_until(now + min(SHARE_SECONDS, self._left(now)))
        now = time.monotonic()
        self._took += time.thread_time() - began
        if not ended and self._left(now) <= 0:
            ended = self._stop(now)
        if ended:
            self.told.set_result(Spent(self._took, self._stopped, self._overdue))
        return ended

    def _left(self, now: float) -> float:
        left = self._allowed - self._took
        return left if self._stopped else min(left, self.deadline - now)

    def _stop(self, now: float) -> bool:
        if self._stopped:
            self.step.kill()
            return True
        self._stopped, self._overdue = True, now >= self.deadline
        self._allowed = self._took + GRACE_SECONDS
        self.step.interrupt()
        return False

    def _run_whole(self) -> bool:
        began = time.monotonic()
        end = min(began + self._allowed, self.deadline)
        self.step.finish(end)
        now = time.monotonic()
        self.told.set_result(Spent(now - began, now >= end, now >= self.deadline))
        return True


def _turn(job: _Job) -> bool:
    try:
        return job.take_turn()
    except BaseException as error:  # noqa: BLE001 -- whoever waits for the step is told
        job.told.set_exception(error)
        return True
