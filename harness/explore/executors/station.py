"""One worker, and another one when it is lost: where whoever has a state waits for what comes of it, as a task of Ray does."""

import select
from collections.abc import Callable

from harness.clock import Clock
from harness.explore.executors.wire import Answer, Setup
from harness.explore.executors.worker_process import LOSSES_MAX, WorkerLostError, WorkerProcess, lost_for_good
from harness.explore.recipe import StateTask
from harness.targets.local.subreaper import subreaper


class Station:
    """A place for one worker.

    Args:
        make_setup: Makes the setup of the next worker, with directories of its own.
        clock: The machine's.
    """

    def __init__(self, make_setup: Callable[[], Setup], clock: Clock) -> None:
        self._make_setup, self._clock = make_setup, clock
        self._worker: WorkerProcess | None = None
        subreaper.acquire(self)

    def try_state(self, task: StateTask) -> Answer:
        """Try recovery from a state; a lost worker is replaced, and when that is lost too, so is the state.

        Raises:
            OSError: When no worker can be started.
            TimeoutError: When processes of a lost worker withstand SIGKILL.
        """
        why = ""
        for _ in range(LOSSES_MAX):
            try:
                return self._ask(task)
            except WorkerLostError as error:
                why = str(error)
                self._end()
        return Answer(tried=lost_for_good(task, why))

    def close(self) -> None:
        """End the worker, with all that it started."""
        self._end()
        subreaper.release(self)

    def _ask(self, task: StateTask) -> Answer:
        if self._worker is not None and not self._worker.is_there():  # it had nothing to do for too long
            self._end()
        if self._worker is None:
            self._worker = WorkerProcess(self._make_setup(), self._clock)
        self._worker.give(task)
        answer = None
        while answer is None:
            left_s = self._worker.overdue_s - self._clock.monotonic_s()
            select.select([self._worker], [], [], max(0.0, left_s))
            answer = self._worker.take()
        return answer

    def _end(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            worker.end()
