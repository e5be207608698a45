"""Calls a hang: live ranks that said nothing for too long.

No layer below does it: ranks wait for a stuck peer for ever while its heartbeats go on (JAX), and a Ray controller waits with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Event,
    FaultHealed,
    FaultRequested,
    HangCalled,
    JobEvent,
    Marked,
    StepDone,
)

WAITING_MARKERS = frozenset({"collective"})
"""A rank that announced that it waits for the others is not the one they wait for."""

HOLDING_FAULTS = frozenset({"pause", "overlap-attempts"})
"""While such a fault acts, silence is ours."""


@dataclass(slots=True)
class _Rank:
    """What a rank said last."""

    heard_s: float
    step: int = 0
    said: int = 0
    is_waiting: bool = False


@dataclass(slots=True)
class _Watched:
    """A running attempt."""

    started_s: float
    ranks: dict[int, _Rank] = field(default_factory=dict)


class Watchdog:
    """Fed with every event; asked each tick.

    Args:
        quiet_s: Seconds of silence that are too many.
        ranks: Ranks that the job trains with; one that never spoke counts from the attempt's start.
    """

    def __init__(self, *, quiet_s: float, ranks: int) -> None:
        self._quiet_s = quiet_s
        self._ranks = ranks
        self._attempts: dict[tuple[int, int], _Watched] = {}
        self._held: dict[tuple[int, int], set[str]] = {}

    def feed(self, events: Sequence[Event]) -> None:
        """Take note of events."""
        for event in events:
            if isinstance(event, AttemptStarted):
                ranks = {rank: _Rank(heard_s=event.t_s) for rank in range(self._ranks)}
                self._attempts[event.task, event.attempt] = _Watched(started_s=event.t_s, ranks=ranks)
            elif isinstance(event, AttemptExited | AttemptAbandoned):
                self._attempts.pop((event.task, event.attempt), None)
            elif isinstance(event, FaultRequested) and event.fault in HOLDING_FAULTS:
                self._held.setdefault((event.task, event.attempt), set()).add(event.injection)
            elif isinstance(event, FaultHealed):
                self._resume(event)
            elif isinstance(event, JobEvent):
                self._hear(event)

    def overdue(self, now_s: float) -> HangCalled | None:
        """The hang of the first attempt in which every rank has been silent for too long; None while there is none.

        One rank's silence alone is no hang: the others may be ahead of it by what it has still to do. When all are silent, the least
        advanced are named.
        """
        for (task, attempt), watched in self._attempts.items():
            if self._held.get((task, attempt)):
                continue
            quiet_s = now_s - max(rank.heard_s for rank in watched.ranks.values())
            if quiet_s >= self._quiet_s:
                ranks = _least_advanced(watched.ranks)
                return HangCalled(t_s=now_s, task=task, attempt=attempt, ranks=ranks, quiet_s=quiet_s, detail=_describe(ranks, watched.ranks))
        return None

    def _hear(self, event: JobEvent) -> None:
        watched = self._attempts.get((event.task, event.attempt))
        if watched is None:
            return
        rank = watched.ranks.setdefault(event.rank, _Rank(heard_s=event.t_s))
        rank.heard_s = max(rank.heard_s, event.t_s)
        rank.is_waiting = isinstance(event, Marked) and event.name in WAITING_MARKERS
        if isinstance(event, StepDone):
            rank.step, rank.said = event.step, 0
        else:
            rank.said += 1

    def _resume(self, event: FaultHealed) -> None:
        held = self._held.get((event.task, event.attempt), set())
        if event.injection not in held:
            return
        held.discard(event.injection)
        watched = self._attempts.get((event.task, event.attempt))
        for rank in watched.ranks.values() if watched else ():
            rank.heard_s = max(rank.heard_s, event.t_s)


def _least_advanced(ranks: dict[int, _Rank]) -> tuple[int, ...]:
    """The ranks that the others may be waiting for: lowest step, not waiting themselves, fewest words since that step."""
    behind = {number: (rank.step, rank.is_waiting, rank.said) for number, rank in ranks.items()}
    least = min(behind.values())
    return tuple(sorted(number for number, place in behind.items() if place == least))


def _describe(named: tuple[int, ...], ranks: dict[int, _Rank]) -> str:
    if len(named) == len(ranks) and len(ranks) > 1:
        return f"all {len(ranks)} ranks are silent at step {ranks[named[0]].step}: what they said does not tell which of them the others wait for"
    waiting = [number for number in ranks if number not in named]
    others = f"; rank {', '.join(map(str, waiting))} further on or waiting" if waiting else ""
    return f"rank {', '.join(map(str, named))} silent after step {ranks[named[0]].step}{others}"
