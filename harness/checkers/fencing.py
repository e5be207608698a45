"""One writer at a time: once a newer attempt trains, no older one commits a checkpoint."""

from collections.abc import Sequence

from harness.checkers.evidence import Evidence, Ruling
from harness.history import SaveBegun, SaveEnded
from harness.lineage import Attempt, Incarnation
from harness.scenario.expectations import SingleWriter
from harness.verdict import Finding

CHECKER = "single-writer"


def check(_expectation: SingleWriter, evidence: Evidence) -> Finding:
    """Look at every pair of attempts of a task that were alive at once."""
    ruling = Ruling()
    overlaps = 0
    for task in evidence.lineage.tasks:
        for older, newer in _pairs(evidence.lineage.attempts_of(task)):
            if _end_s(older) <= newer.started_s:
                continue
            overlaps += 1
            _judge(older, newer, evidence, ruling)
    ruling.doubt_lost(evidence.lost("events"))
    ruling.measures = {"overlaps": float(overlaps)}
    nothing = "" if evidence.lineage.attempts else "no attempt was seen"
    kept = (
        f"{overlaps} overlaps of attempts, and no older attempt wrote beside a newer one"
        if overlaps
        else "no two attempts were ever alive at once"
    )
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _pairs(attempts: Sequence[Attempt]) -> list[tuple[Attempt, Attempt]]:
    return [(older, newer) for index, older in enumerate(attempts) for newer in attempts[index + 1 :]]


def _end_s(attempt: Attempt) -> float:
    return attempt.exit.t_s if attempt.exit is not None else float("inf")


def _judge(older: Attempt, newer: Attempt, evidence: Evidence, ruling: Ruling) -> None:
    workload = evidence.scenario.workload
    ended = f"{_end_s(older):.2f} s" if older.exit else "the end of the run"
    ruling.facts.append(
        f"task {older.task}: attempts {older.number} and {newer.number} were both alive from {newer.started_s:.2f} s to {ended}"
    )
    took_over_s = _took_over_s(newer)
    if not (workload.speaks_protocol or workload.outside.logs.saved):
        ruling.doubts.append(f"attempts {older.number} and {newer.number} were alive at once, and the job says nothing of its saves")
    elif took_over_s is None:
        ruling.doubts.append(f"attempt {newer.number} never trained while attempt {older.number} lived, so nothing was there to fence")
    else:
        writes = [save for life in older.incarnations for save in _saves(life) if save.t_s > took_over_s]
        verbs = {SaveBegun: "began to save", SaveEnded: "committed"}
        for save in writes:
            ruling.broken.append(
                f"attempt {older.number} {verbs[type(save)]} step {save.step} at {save.t_s:.2f} s, although attempt {newer.number} trained since {took_over_s:.2f} s"
            )
        commits = [text for text in ruling.broken if "committed" in text]
        ruling.broken[:] = commits + [text for text in ruling.broken if text not in commits]
        if not writes:
            ruling.facts.append(f"attempt {older.number} wrote nothing after attempt {newer.number} took over at {took_over_s:.2f} s")


def _took_over_s(newer: Attempt) -> float | None:
    """When the newer attempt was ready to train, or began to save."""
    moments = [life.started.t_s for life in newer.incarnations if life.started is not None]
    moments += [save.t_s for life in newer.incarnations for save in life.saves_begun]
    return min(moments, default=None)


def _saves(life: Incarnation) -> list[SaveBegun | SaveEnded]:
    return [event for event in life.events if isinstance(event, SaveBegun | SaveEnded)]
