"""Notices that processes were given: SIGTERM now, SIGKILL when the grace is over."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.capabilities import Processes


@dataclass(slots=True)
class Notices:
    """Those that are not over yet, each with the pods whose processes it is for."""

    _given: list[tuple[float, Processes, frozenset[str]]] = field(default_factory=list)

    @property
    def next_due_s(self) -> float:
        """When the next one is over; infinite when there is none."""
        return min((due_s for due_s, _, _ in self._given), default=float("inf"))

    def give(self, victim: Processes, uids: set[str], *, due_s: float) -> None:
        """A notice that ends at ``due_s``."""
        self._given.append((due_s, victim, frozenset(uids)))

    def take_due(self, now_s: float) -> Iterator[tuple[Processes, frozenset[str]]]:
        """Those that are over; each is given once."""
        due = [notice for notice in self._given if notice[0] <= now_s]
        self._given = [notice for notice in self._given if notice[0] > now_s]
        return iter((victim, uids) for _, victim, uids in due)
