"""A silent job is hit when a line of its log is read: one that is fast has gone on by then, and later moments never come."""

from collections.abc import Sequence

from harness.checkers.evidence import Evidence
from harness.history import JobEvent, StepDone
from harness.lineage import Attempt
from harness.scenario import Injection, Trigger, injection_name
from harness.scenario.triggers import AtMarker, AtStep

FAST = "the job is faster than its log is read"

ADVICE = "let its steps take longer, or let it speak the protocol: then it waits at each moment"


def why_too_late(due: Injection, number: int, evidence: Evidence) -> str:
    """How far the job was ahead of its log, where that is why a fault did not act; else empty.

    Either its own moment was read when the attempt had ended, or an earlier fault came so late that the job had passed the moment before.

    Args:
        due: What did not act.
        number: Of the attempt in which it was due.
        evidence: What was seen.
    """
    attempts = {attempt.number: attempt for attempt in evidence.lineage.attempts_of(due.victim.task)}
    last = attempts.get(number)
    if evidence.scenario.workload.speaks_protocol or last is None or last.exit is None or last.exit.exit_code != 0:
        return ""
    if _moment(due.at, _said(last)) is not None:
        return f"{FAST}: attempt {number} had ended when its line was; {ADVICE}"
    injections = evidence.scenario.injections
    for index, injection in enumerate(injections):
        earlier = (attempts[each] for each in injection.attempts if each in attempts and each < number)
        for attempt in earlier if injection.victim.task == due.victim.task else ():
            late = _went_on(injection.at, attempt, due.at, last)
            if late:
                return f"{FAST}: {injection_name(injections, index)} was due {late}; {ADVICE}"
    return ""


def struck_when_done(evidence: Evidence) -> str:
    """Which fault hit an attempt that completed all the same, so that nothing was left to resume, and whether it was done; else empty."""
    injections = evidence.scenario.injections
    names = {injection_name(injections, index): injection for index, injection in enumerate(injections)}
    for fault in evidence.requested():
        injection = names.get(fault.injection)
        attempt = next((each for each in evidence.lineage.attempts_of(fault.task) if each.number == fault.attempt), None)
        if injection is None or attempt is None or attempt.exit is None or attempt.exit.exit_code != 0:
            continue
        said = [life.done for life in attempt.incarnations if life.done is not None]
        steps, executed = evidence.scenario.workload.steps, max(life.last_step(fault.t_s) for life in attempt.incarnations)
        if not said and not (steps and max(life.last_step() for life in attempt.incarnations) >= steps):
            continue  # it left its work
        was_done = bool(said and said[0].t_s <= fault.t_s) or bool(steps and executed >= steps)
        due = f", due at step {injection.at.step}," if isinstance(injection.at, AtStep) and executed > injection.at.step else ""
        when = f"when the job was done (step {executed})" if was_done else f"after step {executed}, and attempt {attempt.number} completed"
        return f"{fault.injection}{due} acted at {fault.t_s:.2f} s, {when}" + (f"; {ADVICE}" if due else "")
    return ""


def _went_on(at: Trigger, attempt: Attempt, missed: Trigger, last: Attempt) -> str:
    """How far an attempt went on after the moment of its fault; empty where the missed moment was not among what it did then."""
    said = _said(attempt)
    index = _moment(at, said)
    if index is None or _moment(missed, [*said[index + 1 :], *_said(last)]) is None:
        return ""
    reached = max(life.last_step() for life in attempt.incarnations)
    return f"at step {getattr(said[index], 'step', reached)} of attempt {attempt.number}, which went on to step {reached}"


def _said(attempt: Attempt) -> list[JobEvent]:
    """All that the log told of an attempt, in order."""
    return [event for life in attempt.incarnations for event in life.events]


def _moment(at: Trigger, said: Sequence[JobEvent]) -> int | None:
    """Which of the words is the moment of a fault; None where they have none."""
    met: list[int] = []
    nth = 1
    if isinstance(at, AtStep):
        met = [index for index, event in enumerate(said) if isinstance(event, StepDone) and event.rank == at.rank and event.step >= at.step]
    elif isinstance(at, AtMarker) and at.when == "after":
        met = [index for index, event in enumerate(said) if event.__struct_config__.tag == at.event and event.rank == at.rank]
        nth = at.nth
    return met[nth - 1] if len(met) >= nth else None
