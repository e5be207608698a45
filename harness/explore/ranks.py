"""Which of the ways to die tell most.

One for each (kind of operation, path class, cause, marker), before anything was acknowledged and after: what the first save loses is
seldom missed. Of a job that acknowledges no save, where an operation is missing or torn, also one after each kind of operation that gives
or takes a name, and one at the end. Then one for each set of files in flight as well, then the rest.
"""

import itertools
from collections.abc import Hashable, Sequence

from harness.explore.models.posix import CUTS
from harness.explore.moments import Timeline
from harness.explore.replay import Replay
from harness.explore.states import Cause

_BY_MOMENT = frozenset({"prefix", "truncated", "unsynced", "vanished"})
"""Causes whose states are grouped by the operation at which the crash comes; others by the operation that is missing, torn or half done."""

NAMING = frozenset({"rename", "link", "unlink", "rmdir", "move-in", "move-out"})
"""Operations after which other things are found than before."""

RANKS = 3
"""Most telling, telling, the rest."""


class Ranks:
    """Says which candidates are the first of their group; asked about the same ones in the same order, it says the same.

    It is asked about many pairs of operations: groups are numbers, and what a cause adds is looked up once for all moments that follow.

    Attributes:
        turns: Where marker or files in flight are others than just before: between two, a cause that was seen is seen again.
    """

    def __init__(self, times: Timeline, replay: Replay, rank: int) -> None:
        self._rank = rank
        self._seen: set[tuple[int, ...]] = set()
        self._numbers: dict[Hashable, int] = {}
        self._operations = {step.at: (step.kind, times.instants[step.at].point.path_class) for step in replay.steps}
        instants = times.instants.items()
        self._markers = {at: self._number((instant.point.marker, bool(instant.saves))) for at, instant in instants}
        self._in_flight = {at: self._number((instant.point.marker, instant.in_flight)) for at, instant in instants}
        turnings = _turnings(replay)
        self._turnings = {at: self._number(turnings.get(at)) for at in self._in_flight}
        changes = itertools.pairwise((at, (self._in_flight[at], self._turnings[at])) for at in self._in_flight)
        self.turns: Sequence[int] | None = None if rank == RANKS - 1 else [at for (_, before), (at, now) in changes if before != now]
        self._cause: Cause | None = None
        self._coarse = self._fine = 0

    def wants(self, cause: Cause, at: int) -> bool:
        """Whether the candidate of a cause at a moment is of the rank that is looked for."""
        if cause.kind in _BY_MOMENT or cause is not self._cause:
            self._look_at(cause, at)
        turning = 0 if cause.kind in _BY_MOMENT else self._turnings[at]
        coarse, fine = (self._coarse, self._markers[at], turning), (self._fine, self._in_flight[at])
        is_first, is_first_in_flight = coarse not in self._seen, fine not in self._seen
        self._seen.add(coarse)
        self._seen.add(fine)
        return (0 if is_first else 1 if is_first_in_flight else 2) == self._rank

    def _look_at(self, cause: Cause, at: int) -> None:
        operation = self._operations.get(at if cause.kind in _BY_MOMENT else cause.operation)
        self._cause = cause
        part = "half" if cause.part in CUTS else cause.part.partition(",")[0]  # which pages there are, or of which file, tells little
        self._coarse = self._number((operation, cause.kind, part if cause.kind == "torn" else ""))
        self._fine = self._number((operation, cause.kind, cause.part))

    def _number(self, group: Hashable) -> int:
        return self._numbers.setdefault(group, len(self._numbers))


def _turnings(replay: Replay) -> dict[int, str]:
    """Moments at which something that is missing may be missed, where no word of the job tells one from another."""
    if any(step.save is not None for step in replay.steps):
        return {}
    found = {step.at: step.kind for step in replay.steps if step.kind in NAMING}
    return found | {step.at: "end" for step in replay.steps[-1:]}
