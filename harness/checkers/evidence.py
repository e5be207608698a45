"""What a checker may look at: the scenario, the history and its lineage, and the uninterrupted run. Never a target, never the disk."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from harness.history import (
    BarrierReached,
    CheckpointsSeen,
    ClusterLeft,
    Event,
    FaultObserved,
    FaultRequested,
    GoldenKnown,
    History,
    LogLine,
    Marked,
    ObservationLost,
    OperationReached,
    RunClosed,
    RunOpened,
    SaveBegun,
    SaveEnded,
    SubmissionSeen,
)
from harness.lineage import Lineage, trace
from harness.scenario import Scenario
from harness.verdict import Finding, Outcome

Kind = TypeVar("Kind", bound=Event)


ENDED = ("Complete", "Failed", "ValidationFailed")
"""What a Job, or the deployment of a RayJob, is for ever; after that it may be deleted by itself (``ttlSecondsAfterFinished``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a judgement may rest on.

    Attributes:
        scenario: What was promised.
        history: What was seen, in the order it was recorded.
        lineage: The same, as lives of the job.
        golden: The uninterrupted run of the same workload; None when there is none.
    """

    scenario: Scenario
    history: History
    lineage: Lineage
    golden: Lineage | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the history."""
        return self.history.events

    def of_type(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """The events of one type, in the order they were recorded."""
        return self.lineage.of_type(kind)

    @property
    def opened(self) -> RunOpened | None:
        """The header."""
        return next(iter(self.of_type(RunOpened)), None)

    @property
    def closed(self) -> RunClosed | None:
        """Why the run ended; None when the harness was killed before it did."""
        return next(iter(self.of_type(RunClosed)), None)

    @property
    def is_cut_short(self) -> bool:
        """Whether the run was broken off, by us or by who took its job away: what had not happened by then might have happened yet."""
        return self.closed is None or self.closed.reason in ("interrupted", "error") or self.taken_away is not None

    @property
    def looked_s(self) -> float:
        """When somebody looked at what was left, or the run was ended: what comes later is the harness's own healing and cleaning."""
        closed = self.closed
        ended_s = float("inf") if closed is None or closed.ended_s is None else closed.ended_s
        return min((event.t_s for event in self.of_type(ClusterLeft)), default=ended_s)

    @property
    def taken_away(self) -> SubmissionSeen | None:
        """The object of a task that was deleted before it had ended, and not submitted anew; no fault does that, and no controller."""
        looked_s = self.looked_s
        all_seen = [seen for seen in self.of_type(SubmissionSeen) if seen.t_s <= looked_s]
        ended = {seen.uid for seen in all_seen if seen.status in ENDED}
        last = {seen.task: seen for seen in all_seen}
        return next((seen for seen in last.values() if seen.status == "Deleted" and seen.uid not in ended), None)

    @property
    def is_job_heard(self) -> bool:
        """Whether the job has said anything at all: the silence of one that was never heard accuses nobody."""
        return any(life.events for attempt in self.lineage.attempts for life in attempt.incarnations)

    @property
    def golden_known(self) -> GoldenKnown | None:
        """Whether two uninterrupted runs were equal."""
        return next(iter(self.of_type(GoldenKnown)), None)

    @property
    def may_be_unheard(self) -> bool:
        """Whether a silence of the job may have been none: of a log that is not read to its end nothing is heard, whatever the job says."""
        return not self.scenario.workload.speaks_protocol and bool(self.lost_words())

    def requested(self) -> tuple[FaultRequested, ...]:
        """Injections that acted, if only in part."""
        return self.of_type(FaultRequested)

    def observed(self) -> tuple[FaultObserved, ...]:
        """Injections whose effect was seen."""
        return self.of_type(FaultObserved)

    def lost(self, what: str) -> tuple[ObservationLost, ...]:
        """What was not recorded of one kind."""
        return tuple(event for event in self.of_type(ObservationLost) if event.what == what)

    def lost_words(self) -> tuple[ObservationLost, ...]:
        """What was not recorded of the job's words, wherever it says them: a job that is followed by its log says them there."""
        return tuple(event for event in self.of_type(ObservationLost) if event.what in self.scenario.workload.words_in)


def gather(scenario: Scenario, history: History, golden: History | None = None) -> Evidence:
    """Put together what a run left behind."""
    uninterrupted = trace(event for event in golden.events if type(event) not in _NEVER_COMPARED) if golden else None
    return Evidence(scenario=scenario, history=history, lineage=trace(history.events), golden=uninterrupted)


_NEVER_COMPARED = frozenset({Marked, BarrierReached, OperationReached, SaveBegun, SaveEnded, CheckpointsSeen, LogLine})
"""What an uninterrupted run saved, marked and logged is its own affair: half of it, and nothing to compare with."""


def valid(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that the promise was kept."""
    return Finding(checker=checker, outcome=Outcome.VALID, reason=reason, evidence=evidence, measures=measures)


def invalid(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that the promise was broken."""
    return Finding(checker=checker, outcome=Outcome.INVALID, reason=reason, evidence=evidence, measures=measures)


def unknown(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that nothing was proved."""
    return Finding(checker=checker, outcome=Outcome.UNKNOWN, reason=reason, evidence=evidence, measures=measures)


LINES_MAX = 100
"""Lines of evidence in one finding: nobody reads on, and the rest stands in the history."""


@dataclass(slots=True)
class Ruling:
    """What a checker has found so far; the worst of it decides.

    Attributes:
        broken: Each way in which the promise was broken.
        doubts: What keeps it from being proved.
        facts: What happened, broken or not.
        measures: Figures by name.
    """

    broken: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    measures: dict[str, float] = field(default_factory=dict)

    def doubt_lost(self, lost: Iterable[ObservationLost]) -> None:
        """What was not recorded keeps a promise from being proved; it does not mend what is broken."""
        self.doubts.extend(f"{each.count} {each.what} were not recorded at {each.t_s:.2f} s: {each.detail}" for each in lost)

    def doubt_broken(self) -> None:
        """What would be broken may have another reason, which nobody has recorded."""
        self.doubts, self.broken = [*self.doubts, *self.broken], []

    def add(self, other: "Ruling") -> None:
        """Take over what another one has found; measures are its own."""
        self.broken += other.broken
        self.doubts += other.doubts
        self.facts += other.facts

    def conclude(self, checker: str, kept: str, *, nothing: str = "") -> Finding:
        """Invalid where something is broken; unknown where something is in doubt, or by ``nothing`` to look at; else valid, as ``kept``."""
        said = [*self.broken, *self.doubts, *self.facts]
        if len(said) > LINES_MAX:
            said[LINES_MAX:] = [f"and {len(said) - LINES_MAX} more"]
        if self.broken:
            return invalid(checker, self.broken[0], *said, **self.measures)
        if self.doubts or nothing:
            return unknown(checker, self.doubts[0] if self.doubts else nothing, *said, **self.measures)
        return valid(checker, kept, *said, **self.measures)
