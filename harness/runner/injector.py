"""Fires injections when their triggers are met, watches for their effects, and heals them.

The order within a tick is what makes a kill point exact: the events of the tick are matched first, due injections act one after the other,
each is recorded and looked at for its effect before the next one acts, injections that wait for an effect act at once, and only then does
the caller release barriers and let the platform make its next move.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.capabilities import Permitting, Processes, Target
from harness.clock import Clock
from harness.errors import BrokenHarnessError, HealError, InjectionError
from harness.faults import ActiveFault, StagedFault, activate
from harness.history import (
    AttemptStarted,
    BarrierReached,
    Event,
    ExecutionStarted,
    FaultFailed,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    JobEvent,
    Located,
    LogLine,
    Marked,
    OperationReached,
    StepDone,
)
from harness.runner.transitions import Transitions
from harness.scenario import Injection, Layout, Scenario, injection_name, kind_of
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog
from harness.targets import perform
from harness.undo import RestoreCluster, RestoreProject, Undo, UndoJournal, restored_by


@dataclass(slots=True)
class _Pending:
    """An injection that waits for its trigger in one attempt; ``seen`` counts matching occurrences so far."""

    name: str
    injection: Injection
    attempt: int
    seen: int = 0
    transitions: Transitions | None = None


@dataclass(slots=True)
class _Active:
    """An injection that acted; ``is_settled`` when its effect was seen, or is known not to come.

    Until ``has_acted`` it may have acted in part: it is not healed then, but undone.
    """

    name: str
    task: int
    attempt: int
    fault: ActiveFault
    undo: Undo
    acted_s: float = 0.0
    has_acted: bool = False
    is_settled: bool = False

    @property
    def heal_due_s(self) -> float | None:
        """When it is to be healed; None: at the end of the run, or not known yet."""
        return None if self.fault.heal_after_s is None or not self.has_acted else self.acted_s + self.fault.heal_after_s

    @property
    def key(self) -> str:
        """Its name in the journal: the same injection acts once in each of its attempts."""
        return journal_key(self.name, self.attempt)


def journal_key(name: str, attempt: int) -> str:
    """What an injection's undo is called in the journal."""
    return f"{name}@{attempt}"


@dataclass
class Injector:
    """All injections of one run.

    Attributes:
        scenario: Declares them.
        target: On which they act.
        journal: Where undos are written first.
        kept_dir: For originals of what they damage.
        clock: For undos that wait until they are seen.
        now_s: Seconds since the run was opened.
        record: Told of every event of a fault before the next fault acts.
    """

    scenario: Scenario
    target: Target
    journal: UndoJournal
    kept_dir: Path
    clock: Clock
    now_s: Callable[[], float]
    record: Callable[[Sequence[Event]], None]
    _pending: list[_Pending] = field(default_factory=list)
    _active: list[_Active] = field(default_factory=list)
    _attempt_started_s: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, injection in enumerate(self.scenario.injections):
            name = injection_name(self.scenario.injections, index)
            transitions = Transitions(injection.at, injection.victim.task) if isinstance(injection.at, OnCondition) else None
            attempts = injection.attempts[:1] if injection.acts_once else injection.attempts
            self._pending.extend(_Pending(name=name, injection=injection, attempt=attempt, transitions=transitions) for attempt in attempts)

    @property
    def layout(self) -> Layout:
        """How the workload lays out its checkpoints."""
        return self.scenario.workload.layout

    def tick(self, events: Sequence[Event]) -> None:
        """Match one tick's events, act, observe and heal."""
        for event in events:
            if isinstance(event, AttemptStarted):
                self._attempt_started_s[event.task, event.attempt] = event.t_s
        self._observe(events)
        for event in events:
            for pending in [pending for pending in self._pending if self._matches(pending, event)]:
                self._act(pending, attempt=_attempt_now(pending, event))
        for pending in [pending for pending in self._pending if self._is_overdue(pending)]:
            self._act(pending, attempt=pending.attempt)
        self._observe(())
        self._heal_due()

    def heal_all(self) -> tuple[list[Event], list[BrokenHarnessError]]:
        """Undo everything that still acts, in reverse order; one failure does not keep the others from being undone.

        Nothing is recorded: the events are returned, for a full disk must not keep anything in force.
        """
        acted = [active for active in self._active if active.has_acted]
        recorded: list[Event] = [seen for active in acted if (seen := self._look(active, ())) is not None]
        failures: list[BrokenHarnessError] = []
        while self._active:
            active = self._active.pop()
            try:
                recorded.append(self._healed(active, self._heal_at_last(active)))
            except BrokenHarnessError as error:
                failures.append(error)
        return recorded, failures

    def _heal_at_last(self, active: _Active) -> str:
        """End a fault, or do its undo: that waits, and begins anew where a heal has failed.

        Raises:
            BrokenHarnessError: When it could not be done, or was not seen. An undo on this machine does not look, so a heal that failed
                there has failed for good; it is done all the same.
        """
        failure: BrokenHarnessError | None = None
        try:
            if active.has_acted and (evidence := active.fault.heal()):
                return evidence
        except BrokenHarnessError as error:
            failure = error
        done = self._perform(active)
        if failure is not None and not isinstance(active.undo, RestoreCluster | RestoreProject):
            raise failure
        return done

    def _matches(self, pending: _Pending, event: Event) -> bool:
        at, victim = pending.injection.at, pending.injection.victim
        if isinstance(at, OnEffect):
            return isinstance(event, FaultObserved) and event.injection == at.of
        if isinstance(at, AtSubmission):
            return isinstance(event, ExecutionStarted)
        if pending.transitions is not None:
            return pending.transitions.see(event)
        if isinstance(at, AtOperation):
            is_there = isinstance(event, OperationReached) and (event.task, event.attempt) == (victim.task, pending.attempt)
            return is_there and _is_operation(event, at)
        if not isinstance(event, JobEvent | LogLine) or (event.task, event.attempt) != (victim.task, pending.attempt):
            return False
        if isinstance(at, OnLog):
            met = isinstance(event, LogLine) and event.search(at.pattern) is not None
            return met and self._count(pending) == at.nth
        if isinstance(at, AtStep):
            return isinstance(event, StepDone) and event.rank == at.rank and self._has_reached(event.step, at.step)
        if isinstance(at, AtMarker):
            return _is_marker(event, at) and self._count(pending) == at.nth
        return False

    def _has_reached(self, step: int, wanted: int) -> bool:
        """A job that speaks is hit at the very step; one whose log tells some steps only, at the first from there on."""
        return step == wanted or (step > wanted and not self.scenario.workload.speaks_protocol)

    def _count(self, pending: _Pending) -> int:
        pending.seen += 1
        return pending.seen

    def _is_overdue(self, pending: _Pending) -> bool:
        at = pending.injection.at
        started_s = self._attempt_started_s.get((pending.injection.victim.task, pending.attempt))
        return isinstance(at, AfterSeconds) and started_s is not None and self.now_s() >= started_s + at.seconds

    def _act(self, pending: _Pending, *, attempt: int) -> None:
        """Act, and look for the effect at once: what acts next must find it, or find that it did not come."""
        self._pending.remove(pending)
        if isinstance(self.target, Permitting):
            self.target.require_permission()
        injection = pending.injection
        victim = Processes(task=injection.victim.task, attempt=attempt, rank=injection.victim.rank_number)
        try:
            fault = self._activate(pending, victim)
            undo = fault.undo()
            self._see_that_it_is_free(pending, undo)
        except InjectionError as error:
            self.record([self._failed(pending.name, victim, error)])
            return
        active = _Active(name=pending.name, task=victim.task, attempt=attempt, fault=fault, undo=undo)
        self.journal.owe(active.key, undo)
        failure = self._inject(active, kind_of(injection.fault), victim)
        if failure is not None:
            self._take_back(active, self._failed(pending.name, victim, failure))
        self._observe(())

    def _see_that_it_is_free(self, pending: _Pending, undo: Undo) -> None:
        """Refuse a fault on what another one holds: it would take that one's work for what was there before, and either end the other.

        Raises:
            InjectionError: Naming both.
        """
        for other in self._active:
            for thing in sorted(restored_by(undo) & restored_by(other.undo)):
                reason = f"{thing} is in the hands of {other.name!r} until that is healed: let it act after that, or on something else"
                raise InjectionError(injection=pending.name, fault=kind_of(pending.injection.fault), reason=reason)

    def _take_back(self, active: _Active, failed: FaultFailed) -> None:
        """Undo what a fault may have done in part; where that fails it is tried again at the end."""
        try:
            self._perform(active)
            self.journal.settle(active.key)
            self._active.remove(active)
        finally:
            self.record([failed])

    def _activate(self, pending: _Pending, victim: Processes) -> ActiveFault:
        return activate(
            pending.injection,
            pending.name,
            target=self.target,
            victim=victim,
            layout=self.layout,
            kept_dir=self.kept_dir,
            now_s=self.now_s,
        )

    def _inject(self, active: _Active, kind: str, victim: Processes) -> InjectionError | None:
        """Let a fault act; that it was to act is recorded however that ends, for it may have acted in part."""
        requested_s, detail = self.now_s(), ""
        self._active.append(active)
        try:
            detail = active.fault.inject()
            active.acted_s = self.now_s()
            active.has_acted = True
        except InjectionError as error:
            return error
        finally:
            self.record(
                [
                    FaultRequested(
                        t_s=requested_s,
                        task=victim.task,
                        attempt=victim.attempt,
                        injection=active.name,
                        fault=kind,
                        rank=victim.rank,
                        detail=detail,
                    )
                ]
            )
        return None

    def _failed(self, name: str, victim: Processes, error: InjectionError) -> FaultFailed:
        return FaultFailed(t_s=self.now_s(), task=victim.task, attempt=victim.attempt, injection=name, detail=error.reason)

    def _observe(self, events: Sequence[Event]) -> None:
        """Look for effects; an effect that another injection waits for lets it act at once."""
        for active in list(self._active):
            seen = self._look(active, events)
            if seen is None:
                continue
            self.record([seen])
            for pending in [pending for pending in self._pending if self._matches(pending, seen)]:
                if pending not in self._pending:
                    continue  # it acted on an effect that came of the one before it
                is_same_task = pending.injection.victim.task == seen.task
                self._act(pending, attempt=seen.attempt if is_same_task else pending.attempt)

    def _look(self, active: _Active, events: Sequence[Event]) -> FaultObserved | FaultFailed | None:
        """Ask a fault for evidence of its effect, until it has given some or has failed for good; one with stages goes on after that."""
        evidence = ""
        try:
            if isinstance(active.fault, StagedFault):
                active.fault.advance(events)
            if not active.is_settled:
                evidence = active.fault.observe(events)
        except InjectionError as error:
            if active.is_settled:
                return None
            active.is_settled = True
            return FaultFailed(t_s=self.now_s(), task=active.task, attempt=active.attempt, injection=active.name, detail=error.reason)
        if not evidence:
            return None
        active.is_settled = True
        return FaultObserved(t_s=self.now_s(), task=active.task, attempt=active.attempt, injection=active.name, evidence=evidence)

    def _heal_due(self) -> None:
        due = [active for active in self._active if active.heal_due_s is not None and self.now_s() >= active.heal_due_s]
        for active in due:
            if not active.is_settled and self.now_s() < (active.heal_due_s or 0.0) + EFFECT_PATIENCE_S:
                continue
            evidence = active.fault.heal()
            if not evidence:
                continue  # it is on its way: asked again in the next tick
            healed = self._healed(active, evidence)
            self._active.remove(active)  # only now: one that could not be healed is tried again at the end
            self.record([healed])

    def _healed(self, active: _Active, evidence: str) -> Event:
        self.journal.settle(active.key)
        return FaultHealed(t_s=self.now_s(), task=active.task, attempt=active.attempt, injection=active.name, evidence=evidence)

    def _perform(self, active: _Active) -> str:
        """Do the undo of a fault, however long that takes.

        Raises:
            HealError: When it could not be done, or was not seen; it stays owed.
        """
        try:
            return perform(active.undo, self.clock, is_ours=True)
        except BrokenHarnessError as error:
            raise HealError(injection=active.name, reason=str(error)) from error


EFFECT_PATIENCE_S = 2.0
"""A fault due to be healed but not yet seen to act is left in force this much longer: healing it unseen would only make it unknown."""


def _is_marker(event: JobEvent | LogLine, at: AtMarker) -> bool:
    if isinstance(event, LogLine) or event.rank != at.rank:
        return False
    if isinstance(event, BarrierReached):
        return at.when == "before" and event.when == "before" and event.event == at.event
    if at.when == "before":
        return False
    if isinstance(event, Marked):
        return event.name == at.event
    return event.__struct_config__.tag == at.event


def _is_operation(event: Event, at: AtOperation) -> bool:
    """The target counts operations: it holds the job at the very one that was asked for."""
    return all(getattr(event, name) == getattr(at, name) for name in at.__struct_fields__)


def _attempt_now(pending: _Pending, event: Event) -> int:
    """The attempt that is hit: its own, or of a trigger that goes by the cluster the one that was current."""
    return event.attempt if pending.transitions is not None and isinstance(event, Located) else pending.attempt
