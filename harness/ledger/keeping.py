"""The ledger of a task: its time, its recoveries, its saves."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.history import SaveBegun, SaveEnded, StepDone
from harness.ledger.hits import Hits, ended_well
from harness.ledger.recoveries import Recovery, recoveries_of
from harness.ledger.spans import Category, Span, spans_of
from harness.ledger.waiting import split_gaps, waiting_of
from harness.lineage import Attempt, Lineage

UNACCOUNTED_S_MAX = 0.001
"""Rounding of times in the history; more than a millisecond is no rounding."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """One task's time.

    Attributes:
        task: Which.
        begin_s, end_s: From its first attempt's start to its last one's end; on a cluster from its submission, and where it ended waiting,
            to the end of the run: time in the queue is wall time.
        spans: All of that time, one span after the other.
        recoveries: Of the deaths after which something new was done.
        unrecovered_s: When the others were hit.
        save_s: How long each save kept the job from training.
    """

    task: int
    begin_s: float
    end_s: float
    spans: tuple[Span, ...]
    recoveries: tuple[Recovery, ...] = ()
    unrecovered_s: tuple[float, ...] = ()
    save_s: tuple[float, ...] = ()

    @property
    def wall_s(self) -> float:
        """From beginning to end."""
        return self.end_s - self.begin_s

    @property
    def unaccounted_s(self) -> float:
        """Wall time that no span holds; 0 but for rounding."""
        return self.wall_s - sum(self._totals.values())

    @property
    def adds_up(self) -> bool:
        """Whether the spans hold all of the wall time; if not, the ledger is wrong and proves nothing."""
        return abs(self.unaccounted_s) <= UNACCOUNTED_S_MAX

    @property
    def goodput(self) -> float:
        """Productive time over wall time (ETTR: effective training time ratio)."""
        return self.total("productive") / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def interruptions(self) -> int:
        """Deaths that were recovered from."""
        return len(self.recoveries)

    def total(self, category: Category) -> float:
        """Seconds of a category."""
        return self._totals.get(category, 0.0)

    @cached_property
    def _totals(self) -> Mapping[Category, float]:
        totals: dict[Category, float] = defaultdict(float)
        for span in self.spans:
            totals[span.category] += span.end_s - span.begin_s
        return dict(totals)


def keep(lineage: Lineage, task: int) -> Ledger | None:
    """The ledger of a task; None when it has no attempt."""
    attempts = lineage.attempts_of(task)
    if not attempts:
        return None
    end_s = _end_of_task(attempts)
    cuts = _cuts(lineage, task)
    hits, waiting = Hits(lineage, task), waiting_of(lineage, task)
    spans: list[Span] = []
    begin_s = cursor_s = attempts[0].started_s if waiting is None else min(waiting.submitted_s, attempts[0].started_s)
    for index, attempt in enumerate(attempts):
        if attempt.started_s > cursor_s:
            spans.append(Span(category="requeue", begin_s=cursor_s, end_s=attempt.started_s, attempt=attempt.number))
        attempt_end_s = attempt.exit.t_s if attempt.exit else end_s
        if index + 1 < len(attempts):
            attempt_end_s = min(attempt_end_s, attempts[index + 1].started_s)
        cursor_s = max(cursor_s, attempt.started_s)
        spans += spans_of(attempt, cursor_s, max(cursor_s, attempt_end_s), cuts=cuts, hits=hits)
        cursor_s = max(cursor_s, attempt_end_s)
    if waiting is not None:
        if waiting.over_s > cursor_s and not ended_well(attempts[-1].incarnations[-1]):
            spans.append(Span(category="requeue", begin_s=cursor_s, end_s=waiting.over_s, attempt=attempts[-1].number + 1))
            cursor_s = waiting.over_s
        spans = split_gaps(spans, waiting, hits)
    ledger = Ledger(task=task, begin_s=begin_s, end_s=cursor_s, spans=tuple(spans))
    recoveries, unrecovered_s = recoveries_of(lineage.incarnations_of(task), ledger.spans, hits)
    return replace(ledger, recoveries=recoveries, unrecovered_s=unrecovered_s, save_s=tuple(_stalls(lineage, ledger)))


def _end_of_task(attempts: Sequence[Attempt]) -> float:
    ends = [attempt.exit.t_s for attempt in attempts if attempt.exit]
    words = [life.events[-1].t_s for attempt in attempts for life in attempt.incarnations if life.events]
    return max([*ends, *words, attempts[-1].started_s])


def _cuts(lineage: Lineage, task: int) -> dict[int, int]:
    """For each life the step up to which its work was retained, -1 for all of it: no later life went back behind it.

    Of a task that did not end well what is retained is what storage holds, where it tells.
    """
    cuts: dict[int, int] = {}
    lives = lineage.incarnations_of(task)
    lowest = -1
    if not ended_well(lives[-1]):
        stored = lineage.newest_sound_step(task, math.inf)
        lowest = -1 if stored is None else stored
    for life in reversed(lives):
        cuts[life.number] = lowest
        if life.restored_step is not None:
            lowest = life.restored_step if lowest < 0 else min(lowest, life.restored_step)
    return cuts


def _stalls(lineage: Lineage, ledger: Ledger) -> Iterator[float]:
    """Seconds that each save kept the job from training: all of them, or, where it trained on meanwhile, what the next step took longer."""
    usual_s = statistics.median([span.seconds for span in ledger.spans if span.step >= 0] or [0.0])
    for life in lineage.incarnations_of(ledger.task):
        open_save: SaveBegun | None = None
        for event in life.events:
            if isinstance(event, SaveBegun):
                open_save = event
            elif open_save is None:
                continue
            elif isinstance(event, SaveEnded) and event.step == open_save.step:
                yield event.t_s - open_save.t_s
                open_save = None
            elif isinstance(event, StepDone) and event.rank == 0:
                yield max(0.0, event.t_s - open_save.t_s - usual_s)
                open_save = None
