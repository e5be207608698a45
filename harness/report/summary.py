"""A run in one row."""

import msgspec

from harness.history import FaultObserved, FaultRequested
from harness.report.notices import notices_of
from harness.report.record import Record, read_record
from harness.store import RunDirectory
from harness.verdict import Outcome


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a row of a table shows of a run.

    Attributes:
        scenario: Its name.
        outcome: ``valid``, ``invalid`` or ``unknown``; a run that was not judged is unknown.
        reasons: Of the findings that decided the outcome, each as ``checker: reason``.
        faults_landed, faults_declared: Faults seen to act, of those that should.
        attempts: Of all tasks.
        lost_steps: Steps executed and not retained, over all resumes; None where nothing resumed.
        recovery_s: The longest recovery; None where nothing recovered.
        margin_s: The least that was left of a grace period; None where nobody had one.
        wall_s: From the opening of the run to the last thing seen.
        run: Path of the run directory.
        opened_at, target, seed: As in the header of the history.
        tags: Of the scenario.
    """

    scenario: str
    outcome: str
    reasons: tuple[str, ...]
    faults_landed: int
    faults_declared: int
    attempts: int
    lost_steps: int | None
    recovery_s: float | None
    margin_s: float | None
    wall_s: float
    run: str
    opened_at: str
    target: str
    seed: int
    tags: tuple[str, ...]


def summarize(directory: RunDirectory) -> Summary:
    """Sum up a run, whatever is left of it."""
    return summary_of(read_record(directory))


def summary_of(record: Record) -> Summary:
    """Sum up a run that was read."""
    opened = record.opened
    return Summary(
        scenario=record.name,
        outcome=str(record.verdict.outcome if record.verdict is not None else Outcome.UNKNOWN),
        reasons=_reasons(record),
        faults_landed=_measured(record, "faults_landed", _landed(record)),
        faults_declared=_measured(record, "faults_declared", _declared(record)),
        attempts=len(record.lineage.attempts),
        lost_steps=_lost_steps(record),
        recovery_s=max((recovery.seconds for ledger in record.ledgers for recovery in ledger.recoveries), default=None),
        margin_s=_margin_s(record),
        wall_s=record.end_s,
        run=str(record.directory.path),
        opened_at=opened.opened_at if opened is not None else "",
        target=opened.target if opened is not None else "",
        seed=opened.seed if opened is not None else 0,
        tags=record.scenario.tags if record.scenario is not None else (),
    )


def _reasons(record: Record) -> tuple[str, ...]:
    if record.verdict is None:
        return tuple(f"report: {problem}" for problem in record.problems)
    return tuple(f"{finding.checker}: {finding.reason}" for finding in record.deciding)


def _measured(record: Record, name: str, otherwise: int) -> int:
    measured = record.verdict.measure(name) if record.verdict is not None else None
    return otherwise if measured is None else round(measured)


def _declared(record: Record) -> int:
    """Each injection counts once for each of its attempts; one that acts once counts once."""
    if record.scenario is None:
        return len({(event.injection, event.attempt) for event in record.events if isinstance(event, FaultRequested)})
    return sum(1 if injection.acts_once else len(injection.attempts) for injection in record.scenario.injections)


def _landed(record: Record) -> int:
    requested = {(event.injection, event.attempt) for event in record.events if isinstance(event, FaultRequested)}
    observed = {(event.injection, event.attempt) for event in record.events if isinstance(event, FaultObserved)}
    return len(requested & observed)


def _lost_steps(record: Record) -> int | None:
    measured = record.verdict.measure("lost_steps") if record.verdict is not None else None
    resumes = record.verdict.measure("resumes") if record.verdict is not None else None
    if measured is not None and resumes:
        return round(measured)
    lost = [recovery.lost_steps for ledger in record.ledgers for recovery in ledger.recoveries]
    return sum(lost) if lost else None


def _margin_s(record: Record) -> float | None:
    measured = record.verdict.measure("margin_s") if record.verdict is not None else None
    if measured is not None:
        return measured
    return min((notice.margin_s for notice in notices_of(record) if notice.margin_s is not None), default=None)
