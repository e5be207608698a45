"""One writer at a time: once a newer life of the job trains, no older one commits a checkpoint.

The lives are attempts, and inside one attempt those of pods or workers that were replaced while the old ones still ran (kuberay#5211: a
retry overlaps the pods before it). A save that a fenced life begins and then gives up breaks nothing: what counts is what it commits.
"""

from collections.abc import Iterator
from itertools import combinations

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_saves
from harness.checkers.successions import name_of_life
from harness.history import SaveBegun
from harness.lineage import Incarnation
from harness.scenario.expectations import SingleWriter
from harness.verdict import Finding, counted

CHECKER = "single-writer"


def check(_expectation: SingleWriter, evidence: Evidence) -> Finding:
    """Look at every pair of lives of a task that were there at once."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    overlaps = 0
    for task in evidence.lineage.tasks:
        for older, newer in combinations(evidence.lineage.incarnations_of(task), 2):
            if _end_s(older) > newer.began_s:
                overlaps += 1
                _judge(older, newer, evidence, ruling)
    ruling.measures = {"overlaps": float(overlaps)}
    nothing = "" if overlaps else "no two lives of the job were ever there at once, so nothing was there to fence"
    return ruling.conclude(CHECKER, f"in {counted(overlaps, 'overlap')} no older life committed beside a newer one", nothing=nothing)


def _end_s(life: Incarnation) -> float:
    """When it was gone: at the end of its attempt, or with its last word where that came later or another life followed in the attempt.

    A node that the platform has lost sight of may run its containers on after their end was recorded.
    """
    if life.exit is None and life.ended_s is None:
        return float("inf")
    last_s = life.events[-1].t_s if life.events else life.began_s
    return max(life.exit.t_s, last_s) if life.exit is not None else last_s


def _judge(older: Incarnation, newer: Incarnation, evidence: Evidence, ruling: Ruling) -> None:
    end_s = _end_s(older)
    ended = "the end of the run" if end_s == float("inf") else f"{end_s:.2f} s"
    mine, other = name_of_life(older), name_of_life(newer)
    ruling.facts.append(f"{mine} and {other} were both there from {newer.began_s:.2f} s to {ended}")
    took_over_s = _took_over_s(newer)
    if not tells_saves(evidence):
        ruling.doubts.append(f"{mine} and {other} were there at once, and the job says nothing of its saves")
    elif took_over_s is None or took_over_s >= end_s:
        ruling.doubts.append(f"{other} never trained while {mine} lived, so nothing was there to fence")
    else:
        commits = list(_commits(older, took_over_s, evidence))
        ruling.broken += [f"{mine} committed {commit}, although {other} trained since {took_over_s:.2f} s" for commit in commits]
        if not commits:
            ruling.facts.append(f"{mine} committed nothing after {other} took over at {took_over_s:.2f} s")


def _took_over_s(newer: Incarnation) -> float | None:
    """When the newer life was ready to train; for a job that does not say so, when it had trained or saved."""
    moments = [newer.started.t_s] if newer.started is not None else []
    moments += [event.t_s for event in (*newer.steps[:1], *newer.saves_begun[:1], *newer.saves_ended[:1])]
    return min(moments, default=None)


def _commits(older: Incarnation, took_over_s: float, evidence: Evidence) -> Iterator[str]:
    """What a life committed after a moment: what it acknowledged, and what it had no time to but storage shows."""
    ended = [save for save in older.saves_ended if save.t_s > took_over_s]
    yield from (f"step {save.step} at {save.t_s:.2f} s" for save in ended)
    for save in older.saves_begun:
        is_late = save.t_s > took_over_s and save.step not in {other.step for other in ended}
        if is_late and (seen_s := _appeared_s(save, older, evidence)) is not None:
            yield f"step {save.step}, begun at {save.t_s:.2f} s and on storage at {seen_s:.2f} s"


def _appeared_s(save: SaveBegun, writer: Incarnation, evidence: Evidence) -> float | None:
    """When storage showed a step whole that was not there when its save began, and that no other life has ever begun to save."""
    others = [life for life in evidence.lineage.incarnations_of(writer.task) if life is not writer]
    if any(other.step == save.step for life in others for other in life.saves_begun):
        return None
    for survey in evidence.lineage.surveys(writer.task):
        stored = survey.held.get(save.step)
        is_whole = stored is not None and stored.state == "committed"
        if is_whole and survey.seen.t_s <= save.t_s:
            return None
        if is_whole:
            return survey.seen.t_s
    return None
