"""The time that a recovery is granted, and whether it only slept while the last of it passed."""

import os
from collections.abc import Callable
from typing import TypeVar

import psutil

from harness.clock import Clock
from harness.process_table import read_table

SLEEPING_SHARE_MAX = 0.02
"""Of one processor: who looks whether something is over ten times a second needs far less, who computes or reads far more."""

Came = TypeVar("Came")


class Grant:
    """From its construction on.

    Attributes:
        began_s: On the monotonic clock.
        deadline_s: Likewise.
    """

    def __init__(self, timeout_s: float, clock: Clock) -> None:
        self.began_s = clock.monotonic_s()
        self.deadline_s = self.began_s + timeout_s
        self._half_s = self.began_s + timeout_s / 2
        self._clock = clock
        self._seen: tuple[float, float] | None = None

    @property
    def seconds(self) -> float:
        """How long it is since it began."""
        return self._clock.monotonic_s() - self.began_s

    def wait(self, wait_until: Callable[[float], Came]) -> Came:
        """Wait for what comes, with a look at the processor time when half of it has passed; what is false has not come."""
        if self._seen is None:
            came = wait_until(self._half_s)
            if came:
                return came
            self._seen = self._clock.monotonic_s(), processor_s()
        return wait_until(self.deadline_s)

    def was_slept_through(self) -> bool:
        """Whether its processes, which still run at the deadline, have used no processor time to speak of since that look."""
        if self._seen is None:
            return False
        since_s, used_s = self._seen
        return processor_s() - used_s < SLEEPING_SHARE_MAX * (self._clock.monotonic_s() - since_s)


def processor_s() -> float:
    """Processor time, in seconds, of all descendants of this process that live, and of those that these have waited for."""
    return sum(_processor_s_of(pid) for pid in read_table().descendants(os.getpid()))


def _processor_s_of(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return sum((times.user, times.system, times.children_user, times.children_system))
