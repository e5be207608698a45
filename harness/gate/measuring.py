"""The figures of a run, from what its directory holds: its verdict, its history as a ledger, its notices."""

import signal
from collections.abc import Mapping

from harness.gate.figures import FIGURE_NAMES, Figure, FigureName, measured, worst_of
from harness.history import ObservationLost
from harness.lineage import Attempt
from harness.report.notices import notices_of
from harness.report.record import Record
from harness.scenario.faults import EndGrace

Figures = Mapping[FigureName, Figure]


def measure(record: Record) -> Figures:
    """The figures of a run; of one that was not judged or cannot be read whole, or of which words of the job are lost, all are missing."""
    if record.problems or record.verdict is None:  # of a damaged history what is left would be better than what was
        return all_missing("; ".join(record.problems) or "the run was not judged")
    words_in = record.scenario.workload.words_in if record.scenario is not None else ("events", "logs")
    lost = next((event for event in record.events if isinstance(event, ObservationLost) and event.what in words_in), None)
    if lost is not None:
        return all_missing(f"words of the job are lost: {lost.detail}")
    if not record.ledgers:
        return all_missing("no attempt of the job was seen")
    return {
        "lost_steps": _lost_steps(record),
        "recovery_s": _recovery_s(record),
        "goodput": _goodput(record),
        "grace_margin_s": _grace_margin_s(record),
    }


def all_missing(why: str) -> Figures:
    """Nothing was measured of a run."""
    return dict.fromkeys(FIGURE_NAMES, Figure(missing=why))


def _unrecovered(record: Record) -> str:
    """Of what a task should have recovered and did not; what the platform cannot retry is not owed."""
    if record.scenario is not None and not record.scenario.within_budget:
        return ""
    found = [(ledger.task, hit_s) for ledger in record.ledgers for hit_s in ledger.unrecovered_s]
    return f"task {found[0][0]} was hit at {found[0][1]:.2f} s and no new step was seen after it" if found else ""


def _recovery_s(record: Record) -> Figure:
    """The longest; none where nothing died."""
    seconds = [recovery.seconds for ledger in record.ledgers for recovery in ledger.recoveries]
    return worst_of("recovery_s", [*(measured("recovery_s", each) for each in seconds), Figure(missing=_unrecovered(record))])


def _lost_steps(record: Record) -> Figure:
    """Over all resumes, as a checker counted them; by the ledger where none did."""
    assert record.verdict is not None
    missing = _unrecovered(record)
    counted = record.verdict.measure("lost_steps")
    if counted is not None and record.verdict.measure("resumes"):
        return measured("lost_steps", counted, missing=missing)
    recoveries = [recovery for ledger in record.ledgers for recovery in ledger.recoveries]
    if not recoveries:
        return Figure(missing=missing)
    return measured("lost_steps", sum(recovery.lost_steps for recovery in recoveries), missing=missing)


def _goodput(record: Record) -> Figure:
    """Of the least productive task. A ledger that does not add up proves nothing, nor does one without a step."""
    ledgers = [ledger for ledger in record.ledgers if ledger.wall_s > 0]
    if not any(span.step >= 0 for ledger in ledgers for span in ledger.spans):
        return Figure(missing="no step was seen, so no time can be called productive")
    wrong = next((ledger for ledger in ledgers if not ledger.adds_up), None)
    if wrong is not None:
        return Figure(missing=f"the ledger of task {wrong.task} does not add up: {wrong.unaccounted_s:.3f} s are in no span")
    return worst_of("goodput", [measured("goodput", ledger.goodput) for ledger in ledgers])


def _grace_margin_s(record: Record) -> Figure:
    """The least that was left, as a checker measured it; by the notices where none did. What was cut short tells no margin."""
    assert record.verdict is not None
    checked = record.verdict.measure("margin_s")
    if checked is not None:
        return measured("grace_margin_s", checked)
    attempts = {(attempt.task, attempt.number): attempt for attempt in record.lineage.attempts}
    is_ended_early = record.scenario is not None and any(isinstance(each.fault, EndGrace) for each in record.scenario.injections)
    margins: list[float] = []
    for notice in notices_of(record):
        if notice.margin_s is None:
            return Figure(missing=f"when attempt {notice.attempt} of task {notice.task} ended after SIGTERM was not seen")
        if not _is_cut(attempts[notice.task, notice.attempt], notice.margin_s, is_ended_early=is_ended_early):
            margins.append(notice.margin_s)
    return worst_of("grace_margin_s", [measured("grace_margin_s", margin_s) for margin_s in margins])


def _is_cut(attempt: Attempt, margin_s: float, *, is_ended_early: bool) -> bool:
    """Whether something else than the end of its grace killed it: nobody knows what it would have needed."""
    end = attempt.exit
    if end is None or end.signal != signal.SIGKILL or margin_s <= 0:
        return False
    return end.cause != "grace" or is_ended_early
