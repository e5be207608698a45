"""Faults of the services themselves: errors, delays, dropped connections, answers cut short, at a call that is named."""

import fnmatch
import threading
from dataclasses import dataclass
from typing import Literal

from harness.emulator.failures import ApiError


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """What befalls a call.

    Attributes:
        method: A glob over methods, like ``google.cloud.run.v2.Jobs/RunJob``, ``google.cloud.run.v2.*`` or ``storage.objects.get``.
        nth: Which of the matching calls, counted from 1 since the fault was added; None: every one.
        times: How often in a row, from the ``nth`` on; without ``nth`` at most so often; 0: without end.
        error: What is answered instead of doing the work.
        delay_s: How long the caller waits before anything happens.
        drop: The connection is cut before the work is done, or after it and before the answer.
        is_partial: A stream, a page or a body is cut short.
    """

    method: str
    nth: int | None = None
    times: int = 1
    error: ApiError | None = None
    delay_s: float = 0.0
    drop: Literal["", "before", "after"] = ""
    is_partial: bool = False

    def __post_init__(self) -> None:
        if self.nth is not None and self.nth < 1:
            raise ValueError(f"nth is {self.nth}: calls are counted from 1")
        if self.times < 0 or self.delay_s < 0:
            raise ValueError(f"times is {self.times} and delay_s {self.delay_s}: numbers >= 0")
        if not (self.error or self.delay_s or self.drop or self.is_partial):
            raise ValueError(f"the fault at {self.method!r} does nothing: give it an error, delay_s, drop or is_partial")

    def strikes(self, count: int) -> bool:
        """Whether it befalls the matching call of that number, from 1."""
        first = self.nth or 1
        return count >= first and (self.times == 0 or count < first + self.times)


class Injections:
    """The faults in force. The first that strikes a call takes it; all that match count it."""

    def __init__(self) -> None:
        self._faults: list[tuple[InjectedFault, int]] = []
        self._lock = threading.Lock()

    def add(self, fault: InjectedFault) -> None:
        """Put a fault in force."""
        with self._lock:
            self._faults.append((fault, 0))

    def clear(self) -> None:
        """Take all of them back."""
        with self._lock:
            self._faults.clear()

    def all(self) -> tuple[tuple[InjectedFault, int], ...]:
        """The faults, and how many calls each has matched."""
        with self._lock:
            return tuple(self._faults)

    def take(self, method: str) -> InjectedFault | None:
        """What befalls the next call of a method."""
        with self._lock:
            taken: InjectedFault | None = None
            for place, (fault, count) in enumerate(self._faults):
                if fnmatch.fnmatchcase(method, fault.method):
                    self._faults[place] = (fault, count + 1)
                    if taken is None and fault.strikes(count + 1):
                        taken = fault
            return taken
