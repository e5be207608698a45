"""One writer at a time: once a newer attempt trains, no older one commits a checkpoint.

A save that a fenced attempt begins and then gives up breaks nothing: what counts is what it commits.
"""

from collections.abc import Iterator
from itertools import combinations

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_saves
from harness.history import SaveBegun
from harness.lineage import Attempt
from harness.scenario.expectations import SingleWriter
from harness.verdict import Finding

CHECKER = "single-writer"


def check(_expectation: SingleWriter, evidence: Evidence) -> Finding:
    """Look at every pair of attempts of a task that were alive at once."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("events"))
    overlaps = 0
    for task in evidence.lineage.tasks:
        for older, newer in combinations(evidence.lineage.attempts_of(task), 2):
            if _end_s(older) > newer.started_s:
                overlaps += 1
                _judge(older, newer, evidence, ruling)
    ruling.measures = {"overlaps": float(overlaps)}
    nothing = "" if overlaps else "no two attempts were ever alive at once, so nothing was there to fence"
    return ruling.conclude(CHECKER, f"in {overlaps} overlaps of attempts no older one committed beside a newer one", nothing=nothing)


def _end_s(attempt: Attempt) -> float:
    return attempt.exit.t_s if attempt.exit is not None else float("inf")


def _judge(older: Attempt, newer: Attempt, evidence: Evidence, ruling: Ruling) -> None:
    ended = f"{_end_s(older):.2f} s" if older.exit else "the end of the run"
    pair = f"attempts {older.number} and {newer.number}"
    ruling.facts.append(f"task {older.task}: {pair} were both alive from {newer.started_s:.2f} s to {ended}")
    took_over_s = _took_over_s(newer)
    if not tells_saves(evidence):
        ruling.doubts.append(f"{pair} were alive at once, and the job says nothing of its saves")
    elif took_over_s is None or took_over_s >= _end_s(older):
        ruling.doubts.append(f"attempt {newer.number} never trained while attempt {older.number} lived, so nothing was there to fence")
    else:
        commits = list(_commits(older, took_over_s, evidence))
        since = f"although attempt {newer.number} trained since {took_over_s:.2f} s"
        ruling.broken += [f"attempt {older.number} committed {commit}, {since}" for commit in commits]
        if not commits:
            ruling.facts.append(f"attempt {older.number} committed nothing after attempt {newer.number} took over at {took_over_s:.2f} s")


def _took_over_s(newer: Attempt) -> float | None:
    """When the newer attempt was ready to train; for a job that does not say so, when it had trained or saved."""
    moments = [life.started.t_s for life in newer.incarnations if life.started is not None]
    moments += [event.t_s for life in newer.incarnations for event in (*life.steps[:1], *life.saves_begun[:1], *life.saves_ended[:1])]
    return min(moments, default=None)


def _commits(older: Attempt, took_over_s: float, evidence: Evidence) -> Iterator[str]:
    """What an attempt committed after a moment: what it acknowledged, and what it had no time to but storage shows."""
    ended = [save for life in older.incarnations for save in life.saves_ended if save.t_s > took_over_s]
    yield from (f"step {save.step} at {save.t_s:.2f} s" for save in ended)
    begun = [save for life in older.incarnations for save in life.saves_begun if save.t_s > took_over_s]
    for save in begun:
        if save.step not in {other.step for other in ended} and (seen_s := _appeared_s(save, older, evidence)) is not None:
            yield f"step {save.step}, begun at {save.t_s:.2f} s and on storage at {seen_s:.2f} s"


def _appeared_s(save: SaveBegun, writer: Attempt, evidence: Evidence) -> float | None:
    """When storage showed a step whole that was not there when its save began, and that no other attempt has ever begun to save."""
    others = [attempt for attempt in evidence.lineage.attempts_of(writer.task) if attempt.number != writer.number]
    if any(other.step == save.step for attempt in others for life in attempt.incarnations for other in life.saves_begun):
        return None
    for survey in evidence.lineage.surveys(writer.task):
        stored = survey.held.get(save.step)
        is_whole = stored is not None and stored.state == "committed"
        if is_whole and survey.seen.t_s <= save.t_s:
            return None
        if is_whole:
            return survey.seen.t_s
    return None
