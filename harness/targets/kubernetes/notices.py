"""Notices that processes were given: SIGTERM now, SIGKILL when the grace is over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.capabilities import Processes
from harness.targets.kubernetes.pod_processes import PodProcess


@dataclass(slots=True)
class Notices:
    """Those that are not over yet, each with the very processes that it was given to: who has taken their place has got none."""

    _given: list[tuple[float, Processes, tuple[PodProcess, ...]]] = field(default_factory=list)

    @property
    def next_due_s(self) -> float:
        """When the next one is over; infinite when there is none."""
        return min((due_s for due_s, _, _ in self._given), default=float("inf"))

    def give(self, victim: Processes, processes: Sequence[PodProcess], *, due_s: float) -> None:
        """A notice that ends at ``due_s``."""
        self._given.append((due_s, victim, tuple(processes)))

    def take_due(self, now_s: float) -> Iterator[tuple[Processes, tuple[PodProcess, ...]]]:
        """Those that are over; each is given once."""
        due = [notice for notice in self._given if notice[0] <= now_s]
        self._given = [notice for notice in self._given if notice[0] > now_s]
        return iter((victim, processes) for _, victim, processes in due)
