"""Where the time went: a ledger of each task's wall time that adds up, recovery times, and advice on the checkpoint interval.

The categories follow the goodput ledger of ml-goodput-measurement 0.2.3 (start-up, program start-up, checkpoint save and restore, wasted
progress, infrastructure recovery). Unlike it, short steps are not filtered, the last step of a segment counts, and a resume that skips
steps is seen.
"""

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import msgspec

from harness.history import (
    BarrierReached,
    Booted,
    Done,
    FaultRequested,
    JobEvent,
    Marked,
    RestoreBegun,
    Restored,
    SaveBegun,
    SaveEnded,
    SigtermSeen,
    Started,
    StepDone,
)
from harness.lineage import Attempt, Incarnation, Lineage

Category = Literal["productive", "lost", "save", "provision", "start", "restore", "compile", "wind-down", "requeue"]
"""``productive``: steps that were retained; ``lost``: steps that were not, and the unfinished one at a death; ``save``: the job stood
still to save; ``provision``: attempt started, no process of the job spoke yet; ``start``: up to the choice of a checkpoint, or to training
from scratch; ``restore``: loading it; ``compile``: what the first step took more than the others; ``wind-down``: from the notice, or the last word, to
the exit; ``requeue``: between two attempts."""

CATEGORIES: tuple[Category, ...] = get_args(Category)


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Seconds of one category."""

    category: Category
    begin_s: float
    end_s: float
    attempt: int
    step: int = -1

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """From a death to the first step that had not been done before.

    Attributes:
        attempt: The attempt that died.
        fault_s: When it was hit; when it ended, where nobody hit it.
        recovered_s: When the first new step was done, or the job was complete.
        lost_steps: Steps executed and not retained.
        parts: Seconds by category; ``detect`` is from the fault to the end of the attempt.
    """

    attempt: int
    fault_s: float
    recovered_s: float
    lost_steps: int
    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """The time to recover."""
        return self.recovered_s - self.fault_s


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """One task's time."""

    task: int
    begin_s: float
    end_s: float
    spans: tuple[Span, ...]
    recoveries: tuple[Recovery, ...]
    save_s: tuple[float, ...]

    @property
    def wall_s(self) -> float:
        """From the first attempt's start to the last one's end."""
        return self.end_s - self.begin_s

    @property
    def unaccounted_s(self) -> float:
        """Wall time that no span holds; 0 but for rounding."""
        return self.wall_s - sum(span.seconds for span in self.spans)

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
            totals[span.category] += span.seconds
        return dict(totals)


def keep(lineage: Lineage, task: int) -> Ledger | None:
    """The ledger of a task; None when it has no attempt with an end to measure to."""
    attempts = lineage.attempts_of(task)
    if not attempts:
        return None
    end_s = _end_of_task(attempts)
    spans: list[Span] = []
    cursor_s = attempts[0].started_s
    for index, attempt in enumerate(attempts):
        if attempt.started_s > cursor_s:
            spans.append(Span(category="requeue", begin_s=cursor_s, end_s=attempt.started_s, attempt=attempt.number))
        attempt_end_s = attempt.exit.t_s if attempt.exit else end_s
        if index + 1 < len(attempts):
            attempt_end_s = min(attempt_end_s, attempts[index + 1].started_s)
        begin_s = max(cursor_s, attempt.started_s)
        spans += _spans_of(attempt, begin_s, max(begin_s, attempt_end_s), _cuts(lineage, task))
        cursor_s = max(begin_s, attempt_end_s)
    ledger = Ledger(
        task=task, begin_s=attempts[0].started_s, end_s=cursor_s, spans=tuple(spans), recoveries=(), save_s=_save_times(lineage, task)
    )
    return replace(ledger, recoveries=tuple(_recoveries(lineage, ledger)))


def _end_of_task(attempts: Sequence[Attempt]) -> float:
    ends = [attempt.exit.t_s for attempt in attempts if attempt.exit]
    words = [life.events[-1].t_s for attempt in attempts for life in attempt.incarnations if life.events]
    return max([*ends, *words, attempts[-1].started_s])


def _cuts(lineage: Lineage, task: int) -> dict[int, int]:
    """For each life the step up to which its work was retained: no later life went back behind it."""
    cuts: dict[int, int] = {}
    lowest = -1
    for life in reversed(lineage.incarnations_of(task)):
        cuts[life.number] = lowest
        if life.restored_step is not None:
            lowest = life.restored_step if lowest < 0 else min(lowest, life.restored_step)
    return cuts


def _spans_of(attempt: Attempt, begin_s: float, end_s: float, cuts: dict[int, int]) -> list[Span]:
    spans: list[Span] = []
    cursor_s = begin_s
    for life in attempt.incarnations:
        life_end_s = min(end_s, life.ended_s if life.ended_s is not None else end_s)
        if life is attempt.incarnations[-1]:
            life_end_s = end_s
        found = list(_walk(life, cursor_s, max(cursor_s, life_end_s), cuts[life.number]))
        spans += _split_compile(found)
        cursor_s = max(cursor_s, life_end_s)
    return spans


def _walk(life: Incarnation, begin_s: float, end_s: float, cut: int) -> Iterator[Span]:
    """Go through what rank 0 said; each word closes the span before it."""
    cursor_s, saving, restoring, leaving = begin_s, False, False, False

    def span(category: Category, until_s: float, step: int = -1) -> Span:
        return Span(category=category, begin_s=cursor_s, end_s=until_s, attempt=life.attempt, step=step)

    for event in life.events:
        if event.rank != 0 or isinstance(event, _CLOSING_NOTHING) or not begin_s <= event.t_s <= end_s:
            continue
        category = _category(event, saving=saving, restoring=restoring, leaving=leaving, cut=cut)
        saving = isinstance(event, SaveBegun) or (saving and not isinstance(event, (SaveEnded, StepDone)))
        restoring = restoring or isinstance(event, RestoreBegun)
        leaving = leaving or isinstance(event, (SigtermSeen, Done))
        if category is None:
            continue
        yield span(category, event.t_s, event.step if isinstance(event, StepDone) else -1)
        cursor_s = event.t_s
    if end_s > cursor_s:
        spoken = any(event.rank == 0 for event in life.events)
        yield span("wind-down" if leaving else ("lost" if spoken else "provision"), end_s)


_CLOSING_NOTHING = (Marked, BarrierReached)


def _category(event: JobEvent, *, saving: bool, restoring: bool, leaving: bool, cut: int) -> Category | None:
    """What the time before a word was; None where the word closes nothing (an asynchronous save's end)."""
    if isinstance(event, StepDone):
        return "productive" if cut < 0 or event.step <= cut else "lost"
    if isinstance(event, Booted):
        return "provision"
    if isinstance(event, RestoreBegun):
        return "start"
    if isinstance(event, Restored | Started):
        return "restore" if restoring else "start"
    if isinstance(event, SaveBegun):
        return "wind-down" if leaving else "save"
    if isinstance(event, SaveEnded):
        return "save" if saving else None
    if isinstance(event, SigtermSeen):
        return "lost"
    return "wind-down" if isinstance(event, Done) else None


def _split_compile(spans: list[Span]) -> list[Span]:
    """Take out of a life's first step what it took longer than the median of the others."""
    steps = [index for index, span in enumerate(spans) if span.step >= 0]
    if len(steps) < 3:
        return spans
    first = spans[steps[0]]
    usual_s = statistics.median(spans[index].seconds for index in steps[1:])
    if first.seconds <= usual_s:
        return spans
    border_s = first.end_s - usual_s
    parts = [
        msgspec.structs.replace(first, category="compile", end_s=border_s, step=-1),
        msgspec.structs.replace(first, begin_s=border_s),
    ]
    return [*spans[: steps[0]], *parts, *spans[steps[0] + 1 :]]


def _save_times(lineage: Lineage, task: int) -> tuple[float, ...]:
    """Seconds from each save's beginning to its acknowledgement."""
    found: list[float] = []
    for life in lineage.incarnations_of(task):
        begun = {save.step: save.t_s for save in life.saves_begun}
        found += [save.t_s - begun[save.step] for save in life.saves_ended if save.step in begun]
    return tuple(found)


def _recoveries(lineage: Lineage, ledger: Ledger) -> Iterator[Recovery]:
    faults = [event for event in lineage.events if isinstance(event, FaultRequested)]
    for before, after in lineage.successors(ledger.task):
        died_s = min(before.ended_s if before.ended_s is not None else after.began_s, after.began_s)
        hit_s = [
            fault.t_s
            for fault in faults
            if (fault.task, fault.attempt) == (before.task, before.attempt) and before.began_s <= fault.t_s <= died_s
        ]
        fault_s = min(hit_s, default=died_s)
        executed = before.last_step(after.began_s)
        recovered_s = _recovered_s(lineage, ledger.task, after, executed)
        if recovered_s is None:
            continue
        parts = {"detect": died_s - fault_s}
        for span in _spans_between(ledger.spans, died_s, recovered_s):
            overlap_s = min(span.end_s, recovered_s) - max(span.begin_s, died_s)
            if overlap_s > 0:
                name = "replay" if span.category in ("productive", "lost") else span.category
                parts[name] = parts.get(name, 0.0) + overlap_s
        yield Recovery(
            attempt=before.attempt,
            fault_s=fault_s,
            recovered_s=recovered_s,
            lost_steps=max(0, executed - (after.restored_step or 0)),
            parts=parts,
        )


def _spans_between(spans: Sequence[Span], begin_s: float, end_s: float) -> Sequence[Span]:
    """Spans that lie in an interval in part or whole; they follow one another in time."""
    first = bisect_right(spans, begin_s, key=lambda span: span.end_s)
    last = bisect_right(spans, end_s, key=lambda span: span.begin_s)
    return spans[first:last]


def _recovered_s(lineage: Lineage, task: int, after: Incarnation, executed: int) -> float | None:
    for life in lineage.incarnations_of(task):
        if life.number < after.number:
            continue
        for event in life.events:
            if event.rank == 0 and ((isinstance(event, StepDone) and event.step > executed) or isinstance(event, Done)):
                return event.t_s
    return None


def young_interval_s(save_s: float, mtti_s: float) -> float:
    """The interval that wastes least, to first order: the root of 2 C M. Source: Young 1974."""
    return math.sqrt(2 * save_s * mtti_s)


def daly_interval_s(save_s: float, mtti_s: float) -> float:
    """Young's interval with higher orders; M itself where saving costs twice as much as an interruption is apart. Source: Daly 2006."""
    if save_s >= 2 * mtti_s:
        return mtti_s
    ratio = save_s / (2 * mtti_s)
    return math.sqrt(2 * save_s * mtti_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s


def waste_ratio(interval_s: float, save_s: float, mtti_s: float, restart_s: float) -> float:
    """The share of time that saving, repeating and restarting take, to first order: C/t + (t/2 + R)/M."""
    return save_s / interval_s + (interval_s / 2 + restart_s) / mtti_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What interval a platform's mean time to interruption asks for; see ``advise``."""

    mtti_s: float
    interval_s: float
    interval_steps: int
    waste: float


def advise(ledger: Ledger, *, mttis_s: Sequence[float] = (3600.0, 6 * 3600.0, 24 * 3600.0)) -> tuple[Advice, ...]:
    """Daly's interval for mean times to interruption of a platform; empty where no save or no step was measured.

    The interruptions of a scenario are ours, so the mean time to interruption cannot be measured: it is a parameter, and the rows say which.
    """
    steps = [span.seconds for span in ledger.spans if span.step >= 0]
    if not ledger.save_s or not steps:
        return ()
    save_s, step_s = statistics.median(ledger.save_s), statistics.median(steps)
    restart_s = statistics.median([recovery.seconds for recovery in ledger.recoveries] or [0.0])
    if save_s <= 0 or step_s <= 0:
        return ()
    rows: list[Advice] = []
    for mtti_s in mttis_s:
        interval_s = daly_interval_s(save_s, mtti_s)
        waste = waste_ratio(interval_s, save_s, mtti_s, restart_s)
        rows.append(Advice(mtti_s=mtti_s, interval_s=interval_s, interval_steps=max(1, round(interval_s / step_s)), waste=waste))
    return tuple(rows)
