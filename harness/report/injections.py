"""The faults of a run as a table: what should happen when and to whom, and what was seen of it."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from harness.report.record import Record
from harness.report.strikes import Strike
from harness.report.wording import duration, ordinal
from harness.scenario import Injection, Trigger, injection_name, kind_of
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog

ROWS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One injection in one attempt.

    Attributes:
        name: Of the injection.
        what: The fault with its parameters.
        when: The trigger in words; empty where the scenario does not declare it.
        whom: The victim.
        state: ``landed``, ``not observed``, ``not requested`` or ``failed``.
        strike: What was recorded; None when it never acted.
    """

    name: str
    what: str
    when: str
    whom: str
    state: str
    strike: Strike | None


def fault_rows(record: Record) -> tuple[FaultRow, ...]:
    """Declared faults in order with what became of them, then those that acted without being declared."""
    strikes = list(record.strikes)
    rows = list(_declared(record, strikes))
    rows += [_row(strike.injection, strike.fault, "", _whom(strike.task, strike.attempt, strike.rank), strike) for strike in strikes]
    return tuple(rows[:ROWS_MAX])


def _declared(record: Record, strikes: list[Strike]) -> Iterator[FaultRow]:
    """Takes out of ``strikes`` those it accounts for."""
    injections = record.scenario.injections if record.scenario is not None else ()
    for index, injection in enumerate(injections):
        name = injection_name(injections, index)
        for attempt in (None,) if injection.acts_once else injection.attempts:
            mine = [strike for strike in strikes if strike.injection == name and attempt in (None, strike.attempt)]
            for strike in mine:
                strikes.remove(strike)
            whom = _whom(injection.victim.task, attempt, injection.victim.rank_number)
            yield from (_row(name, _what(injection), moment_of(injection.at), whom, strike) for strike in mine)
            if not mine:
                yield _row(name, _what(injection), moment_of(injection.at), whom, None)


def _row(name: str, what: str, when: str, whom: str, strike: Strike | None) -> FaultRow:
    state = "not requested"
    if strike is not None:
        state = "landed" if strike.observed_s is not None else "failed" if strike.failed_s is not None else "not observed"
    return FaultRow(name=name, what=what, when=when, whom=whom, state=state, strike=strike)


def _what(injection: Injection) -> str:
    fields = {name: value for name, value in msgspec.to_builtins(injection.fault).items() if name != "type"}
    told = ", ".join(f"{name} {value}" for name, value in fields.items() if value != "")
    return f"{kind_of(injection.fault)} ({told})" if told else kind_of(injection.fault)


def _whom(task: int, attempt: int | None, rank: int) -> str:
    parts = [f"task {task}"] if task else []
    parts += [f"attempt {attempt}"] if attempt is not None else []
    parts += [f"rank {rank}"] if rank >= 0 else []
    return ", ".join(parts) or "whatever attempt it is"


def moment_of(at: Trigger) -> str:
    """A trigger in words."""
    match at:
        case AtStep():
            return f"when step {at.step} is done" + (f" by rank {at.rank}" if at.rank else "")
        case AtMarker():
            nth = "" if at.nth == 1 else f" for the {ordinal(at.nth)} time"
            return f"{'just before' if at.when == 'before' else 'right after'} {at.event}{nth}" + (f" of rank {at.rank}" if at.rank else "")
        case AtOperation():
            return _doing(at)
        case OnLog():
            return f"at the {ordinal(at.nth)} line of the log that matches {at.pattern}"
        case AfterSeconds():
            return f"{duration(at.seconds)} after the attempt started"
        case OnEffect():
            return f"as soon as {at.of} is observed"
        case AtSubmission():
            return "before the job is submitted"
        case OnCondition():
            return _becoming(at)


def _doing(at: AtOperation) -> str:
    """An operation on storage in words."""
    nth = "" if at.nth == 1 else f" for the {ordinal(at.nth)} time"
    occurrence = "" if at.after_nth == 1 else f" number {at.after_nth}"
    since = f" since {at.after}{occurrence}" if at.after else ""
    of = f" of rank {at.rank}" if at.rank else ""
    return f"{'just before' if at.when == 'before' else 'right after'} {at.operation} of {at.path}{nth}{since}{of}"


def _becoming(at: OnCondition) -> str:
    """A change of an object in the cluster in words."""
    nth = "" if at.nth == 1 else f" for the {ordinal(at.nth)} time"
    of = at.of.replace("-request", " request")
    if at.of == "submission":
        state = at.condition if at.status == "True" else f"no longer {at.condition}"
    else:
        state = f"{at.condition}={at.status}"
    return f"when the {of} becomes {state}{nth}" + (f", for {at.reason}" if at.reason else "")
