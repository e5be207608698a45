"""Every declared fault acted and was seen to act: else nothing that follows proves anything."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from harness.checkers.evidence import Evidence, unknown, valid
from harness.checkers.log_lag import why_too_late
from harness.checkers.scripts import scripted
from harness.checkers.unstarted import why_never_run
from harness.history import BarrierReached, ExecutionStarted, FaultFailed, FaultObserved, FaultRequested, JobEvent, Marked, StepDone
from harness.scenario import Injection, Trigger, injection_name
from harness.scenario.faults import Kill
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog
from harness.verdict import Finding, Outcome, counted

CHECKER = "landed"

NOTICED_S = 0.5
"""A fault may find an attempt gone before its end is noticed: the run is looked at every 0.05 s, on a loaded machine more seldom."""


@dataclass(frozen=True, slots=True)
class _Due:
    """One injection in one attempt.

    Attributes:
        name: Of the injection.
        injection: Says when and to whom.
        attempt: Where; None for one that acts once, in whatever attempt its moment comes.
        requested, observed, failed: What became of it.
        passed: What the job had said since the moment when it acted; empty: it was held there.
    """

    name: str
    injection: Injection
    attempt: int | None
    requested: FaultRequested | None
    observed: FaultObserved | None
    failed: FaultFailed | None
    passed: str = ""

    @property
    def has_landed(self) -> bool:
        """Whether it acted at its moment and was seen to act."""
        return self.requested is not None and self.observed is not None and not self.passed


def check(evidence: Evidence) -> Finding:
    """Look for the request and the observation of each injection in each of its attempts, and for each refusal that was scripted.

    Never invalid: a fault that did not act breaks no promise of the job.
    """
    due = [(each.has_landed, _describe(each, evidence)) for each in _due(evidence)]
    due += [(each.has_landed, str(each)) for each in scripted(evidence)]
    if not due:
        return valid(CHECKER, "no fault was declared")
    landed = [told for has_landed, told in due if has_landed]
    missing = [told for has_landed, told in due if not has_landed]
    measures = {"faults_declared": float(len(due)), "faults_landed": float(len(landed))}
    if missing:
        why = _why_unplayed(evidence) or missing[0]
        return unknown(CHECKER, f"{len(landed)} of {len(due)} faults landed: {why}", *missing, *landed, **measures)
    return valid(CHECKER, f"{len(due)} of {len(due)} faults were requested and observed", *landed, **measures)


def missed(evidence: Evidence) -> str:
    """What keeps another outcome than the promised one from accusing anybody: it may be owed to a fault that did not land; else empty."""
    finding = check(evidence)
    return "" if finding.outcome is Outcome.VALID else f"not every fault has landed: {finding.reason}"


def _why_unplayed(evidence: Evidence) -> str:
    """Why no execution began, where that is told; no fault had its moment then."""
    closed = evidence.closed
    is_unplayed = closed is not None and closed.reason == "error" and closed.detail and not evidence.of_type(ExecutionStarted)
    return f"no execution began: {closed.detail}" if closed is not None and is_unplayed else ""


def _due(evidence: Evidence) -> Iterator[_Due]:
    injections = evidence.scenario.injections
    acts: tuple[FaultRequested | FaultObserved | FaultFailed, ...] = evidence.requested() + evidence.observed()
    acts += evidence.of_type(FaultFailed)
    for index, injection in enumerate(injections):
        name = injection_name(injections, index)
        for attempt in (None,) if injection.acts_once else injection.attempts:
            mine = [act for act in acts if act.injection == name and attempt in (None, act.attempt)]
            requested = next((act for act in mine if isinstance(act, FaultRequested)), None)
            yield _Due(
                name=name,
                injection=injection,
                attempt=attempt,
                requested=requested,
                passed=_passed(injection.at, requested, evidence) if requested is not None else "",
                observed=next((act for act in mine if isinstance(act, FaultObserved)), None),
                failed=next((act for act in mine if isinstance(act, FaultFailed)), None),
            )


def _passed(at: Trigger, requested: FaultRequested, evidence: Evidence) -> str:
    """How far a job that speaks but keeps no barrier had gone on when a fault acted; empty: it was held, or had said nothing since."""
    if not isinstance(at, AtStep | AtMarker) or not evidence.scenario.workload.speaks_protocol:
        return ""
    where = (requested.task, requested.attempt, at.rank)
    if any((held.task, held.attempt, held.rank) == where for held in evidence.of_type(BarrierReached)):
        return ""
    before = itertools.takewhile(lambda event: event != requested, evidence.events)
    said = [event for event in before if isinstance(event, JobEvent) and (event.task, event.attempt, event.rank) == where]
    met = [index for index, event in enumerate(said) if _is_moment(event, at)]
    nth = at.nth if isinstance(at, AtMarker) else 1
    since = said[met[nth - 1] + 1 :] if len(met) >= nth else []
    return f"the job had gone on to {_word(since[-1])}: it keeps no barrier" if since else ""


def _is_moment(event: JobEvent, at: AtStep | AtMarker) -> bool:
    return isinstance(event, StepDone) and event.step == at.step if isinstance(at, AtStep) else _word(event) == at.event


def _word(event: JobEvent) -> str:
    return event.name if isinstance(event, Marked) else str(event.__struct_config__.tag)


def _describe(due: _Due, evidence: Evidence) -> str:
    requested, observed, failed = due.requested, due.observed, due.failed
    what = due.name if due.attempt is None else f"{due.name} in attempt {due.attempt}"
    if requested is not None and due.passed:
        return f"{what} was due at {_awaited(due.injection.at)} and requested at {requested.t_s:.2f} s, when {due.passed}"
    if requested is not None and observed is not None:
        return f"{what} was requested at {requested.t_s:.2f} s and observed at {observed.t_s:.2f} s: {observed.evidence}"
    if failed is not None:
        missed = f"could not act at {failed.t_s:.2f} s: {failed.detail}"
    elif requested is not None:
        missed = f"was requested at {requested.t_s:.2f} s, and its effect was never seen"
    else:
        missed = f"was never requested: it waited for {_awaited(due.injection.at)}; {_reached(due, evidence)}"
    return "; ".join(filter(None, (f"{what} {missed}", _too_late(due, evidence))))


def _too_late(due: _Due, evidence: Evidence) -> str:
    """Why it came too late, if that is why it is missing; empty where something else may have kept it from acting."""
    if due.attempt is None:
        return ""
    attempts = (each for each in evidence.lineage.attempts_of(due.injection.victim.task) if each.number == due.attempt)
    end = next((attempt.exit for attempt in attempts), None)
    if due.failed is not None and (end is None or end.t_s > due.failed.t_s + NOTICED_S):
        return ""
    if due.requested is not None and due.failed is None and not isinstance(due.injection.fault, Kill):
        return ""  # what is killed does not end by itself; of others an effect may have been overlooked
    return why_too_late(due.injection, due.attempt, evidence)


def _awaited(at: Trigger) -> str:
    match at:
        case AtStep():
            return f"step {at.step} of rank {at.rank}"
        case AtMarker():
            return f"the moment {at.when} occurrence {at.nth} of {at.event} on rank {at.rank}"
        case AtOperation():
            since = f"it said {at.after} for time {at.after_nth}" if at.after else "its start"
            return f"the moment {at.when} operation {at.nth} of kind {at.operation} on {at.path} by rank {at.rank} since {since}"
        case OnLog():
            return f"occurrence {at.nth} of a log line that matches {at.pattern!r}"
        case AfterSeconds():
            return f"{at.seconds:g} s of the attempt to pass"
        case OnEffect():
            return f"the effect of {at.of}"
        case AtSubmission():
            return "the submission of the job"
        case OnCondition():
            reason = f" ({at.reason})" if at.reason else ""
            return f"occurrence {at.nth} of {at.condition}={at.status}{reason} of the {at.of}"


def _reached(due: _Due, evidence: Evidence) -> str:
    """How far the attempt came in which it should have acted."""
    task = due.injection.victim.task
    never = why_never_run(task, evidence)
    if never:
        return never
    if due.attempt is None:
        return f"the run had {counted(len(evidence.lineage.attempts), 'attempt')}"
    attempt = next((attempt for attempt in evidence.lineage.attempts_of(task) if attempt.number == due.attempt), None)
    if attempt is None:
        return f"task {task} had no attempt {due.attempt}"
    end = "did not end" if attempt.exit is None else f"ended at {attempt.exit.t_s:.2f} s"
    return f"attempt {due.attempt} {end}, having reached step {max(life.last_step() for life in attempt.incarnations)}"
