"""One loop over a job's calls and our own signals: nothing waits for anything else."""

import os
import select
import signal
from collections.abc import Callable


class Supervision:
    """A job that is watched; ``status`` is the wait status of its first process, None while that runs."""

    def __init__(self, job: int, listener: int, *, answer_next: Callable[[], None], signals: int) -> None:
        self._job, self._listener, self._signals = job, listener, signals
        self.status: int | None = None
        self.is_deserted = False
        self._poll = select.poll()
        self._sources: dict[int, Callable[[], None]] = {}
        self.watch(listener, answer_next)
        self.watch(signals, self._take_signals)
        self._reap()

    def watch(self, descriptor: int, act: Callable[[], None]) -> None:
        """From now on act when there is something to read."""
        self._sources[descriptor] = act
        self._poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Watch it no longer."""
        self._poll.unregister(descriptor)
        del self._sources[descriptor]

    def turn(self, timeout_ms: int | None) -> None:
        """Wait for something and act on it; ``is_deserted`` is true once nobody is left under the filter."""
        for descriptor, what in self._poll.poll(timeout_ms):
            if descriptor == self._listener and not what & select.POLLIN:
                self._poll.unregister(descriptor)
                self.is_deserted = True
            elif descriptor in self._sources:
                self._sources[descriptor]()

    def _take_signals(self) -> None:
        for number in os.read(self._signals, 512):
            if number == signal.SIGCHLD:
                self._reap()
            elif self.status is None:
                os.kill(self._job, number)  # not waited for yet, so the id is still its own

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == self._job:
                self.status = status
            if pid == 0:
                return
