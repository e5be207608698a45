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
    FaultFailed,
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
    """How far a rank is: its last step, and what it said since. The same marker again (a heartbeat) is no progress."""

    step: int = 0
    done: StepDone | None = None
    said: set[tuple[object, int]] = field(default_factory=set)
    is_waiting: bool = False

    def take(self, event: JobEvent) -> bool:
        """Take note of a word; whether it was progress."""
        if isinstance(event, StepDone):
            if self.done is not None and event.step == self.step:
                return False
            self.done, self.step, self.is_waiting = event, event.step, False
            self.said.clear()
            return True
        word: tuple[object, int] = (event.name, event.step) if isinstance(event, Marked) else (type(event), getattr(event, "step", -1))
        if word in self.said:
            return False
        self.is_waiting = word[0] in WAITING_MARKERS
        self.said.add(word)
        return True


@dataclass(slots=True)
class _Watched:
    """A running attempt, and when a rank of it last made progress."""

    heard_s: float
    ranks: dict[int, _Rank] = field(default_factory=dict)

    def quiet_s(self, now_s: float) -> float:
        """How long every rank has been silent."""
        return now_s - self.heard_s


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
            self.take(event)

    def take(self, event: Event) -> None:
        """Take note of one event."""
        if isinstance(event, JobEvent):
            self._hear(event)
        elif isinstance(event, AttemptStarted):
            ranks = {rank: _Rank() for rank in range(self._ranks)}
            self._attempts[event.task, event.attempt] = _Watched(heard_s=event.t_s, ranks=ranks)
        elif isinstance(event, AttemptExited | AttemptAbandoned):
            self._attempts.pop((event.task, event.attempt), None)
        elif isinstance(event, FaultRequested) and event.fault in HOLDING_FAULTS:
            self._held.setdefault((event.task, event.attempt), set()).add(event.injection)
        elif isinstance(event, FaultHealed | FaultFailed):
            self._resume(event)

    def overdue(self, now_s: float) -> HangCalled | None:
        """The hang of the first attempt in which every rank has been silent for too long; None while there is none.

        One rank's silence alone is no hang: the others may be ahead of it by what it has still to do. When all are silent, the least
        advanced are named.
        """
        for (task, attempt), watched in self._attempts.items():
            if self._held.get((task, attempt)):
                continue
            quiet_s = watched.quiet_s(now_s)
            if quiet_s >= self._quiet_s:
                ranks = _least_advanced(watched.ranks)
                return HangCalled(
                    t_s=now_s, task=task, attempt=attempt, ranks=ranks, quiet_s=quiet_s, detail=_describe(ranks, watched.ranks)
                )
        return None

    def quiet_s(self, now_s: float) -> float:
        """The longest present silence of an attempt that nobody holds; 0 without one."""
        longest = 0.0
        for place, watched in self._attempts.items():
            if not self._held.get(place):
                longest = max(longest, watched.quiet_s(now_s))
        return longest

    def _hear(self, event: JobEvent) -> None:
        watched = self._attempts.get((event.task, event.attempt))
        if watched is None:
            return
        rank = watched.ranks.get(event.rank)
        if rank is None:
            rank = watched.ranks[event.rank] = _Rank()
        if rank.take(event):
            watched.heard_s = max(watched.heard_s, event.t_s)

    def _resume(self, event: FaultHealed | FaultFailed) -> None:
        held = self._held.get((event.task, event.attempt), set())
        if event.injection not in held:
            return
        held.discard(event.injection)
        watched = self._attempts.get((event.task, event.attempt))
        if watched is not None:
            watched.heard_s = max(watched.heard_s, event.t_s)


def _least_advanced(ranks: dict[int, _Rank]) -> tuple[int, ...]:
    """The ranks that the others may be waiting for: lowest step, not waiting themselves, fewest words since that step."""
    behind = {number: (rank.step, rank.is_waiting, len(rank.said)) for number, rank in ranks.items()}
    least = min(behind.values())
    return tuple(sorted(number for number, place in behind.items() if place == least))


def _describe(named: tuple[int, ...], ranks: dict[int, _Rank]) -> str:
    if len(named) == len(ranks) and len(ranks) > 1:
        silent = f"all {len(ranks)} ranks are silent at step {ranks[named[0]].step}"
        return f"{silent}: what they said does not tell which of them the others wait for"
    waiting = [number for number in ranks if number not in named]
    others = f"; rank {', '.join(map(str, waiting))} further on or waiting" if waiting else ""
    return f"rank {', '.join(map(str, named))} silent after step {ranks[named[0]].step}{others}"
