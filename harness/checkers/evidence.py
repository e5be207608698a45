"""What a checker may look at: the scenario, the history and its lineage, and the uninterrupted run. Never a target, never the disk."""

from dataclasses import dataclass

from harness.history import Event, FaultObserved, FaultRequested, GoldenKnown, History, ObservationLost, RunClosed, RunOpened
from harness.lineage import Lineage, trace
from harness.scenario import Scenario
from harness.verdict import Finding, Outcome


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

    @property
    def opened(self) -> RunOpened | None:
        """The header."""
        return next((event for event in self.events if isinstance(event, RunOpened)), None)

    @property
    def closed(self) -> RunClosed | None:
        """Why the run ended; None when the harness was killed before it did."""
        return next((event for event in self.events if isinstance(event, RunClosed)), None)

    @property
    def golden_known(self) -> GoldenKnown | None:
        """Whether two uninterrupted runs were equal."""
        return next((event for event in self.events if isinstance(event, GoldenKnown)), None)

    def requested(self) -> tuple[FaultRequested, ...]:
        """Injections that acted."""
        return tuple(event for event in self.events if isinstance(event, FaultRequested))

    def observed(self) -> tuple[FaultObserved, ...]:
        """Injections whose effect was seen."""
        return tuple(event for event in self.events if isinstance(event, FaultObserved))

    def lost(self, what: str) -> tuple[ObservationLost, ...]:
        """What was not recorded of one kind."""
        return tuple(event for event in self.events if isinstance(event, ObservationLost) and event.what == what)


def gather(scenario: Scenario, history: History, golden: History | None = None) -> Evidence:
    """Put together what a run left behind."""
    return Evidence(scenario=scenario, history=history, lineage=trace(history.events), golden=trace(golden.events) if golden else None)


def valid(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that the promise was kept."""
    return Finding(checker=checker, outcome=Outcome.VALID, reason=reason, evidence=evidence, measures=measures)


def invalid(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that the promise was broken."""
    return Finding(checker=checker, outcome=Outcome.INVALID, reason=reason, evidence=evidence, measures=measures)


def unknown(checker: str, reason: str, *evidence: str, **measures: float) -> Finding:
    """A finding that nothing was proved."""
    return Finding(checker=checker, outcome=Outcome.UNKNOWN, reason=reason, evidence=evidence, measures=measures)
