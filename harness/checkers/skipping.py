"""Whether a silent job skips steps, by what it says itself: where it logs at a stride, a longer way has left steps out.

An uninterrupted run tells more, the very steps that are said. Where there is none, or the log shows some steps only, this is what is left.
"""

from collections.abc import Sequence
from itertools import pairwise

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.strides import Stride, rises
from harness.checkers.successions import Succession, name_of_life, shows_some_steps
from harness.lineage import Incarnation

NONE_SKIPPED = "none was skipped"
NO_STEPS = "its log says no step, so nobody looked whether one was skipped"
SOME_STEPS = "its progress bar shows some steps only, so nobody looked for single ones that were skipped"


def judge_skipping(task: int, resumes: Sequence[Succession], stride: Stride, *, evidence: Evidence, ruling: Ruling) -> str:
    """Judge the way from each step to the next, over the resumes of a task and inside its lives.

    Returns:
        What was looked for and not found, in words.
    """
    if evidence.scenario.workload.speaks_protocol or not resumes or resumes[0].known_steps:
        return NONE_SKIPPED  # each step is known: see ``resume``
    lives = evidence.lineage.incarnations_of(task)
    openings = [(resume, said[0]) for resume in resumes if (said := rises(resume.life))]
    ways = [after - before for life in lives for before, after in pairwise(rises(life))] + [first - each.step for each, first in openings]
    if not any(life.steps for life in lives):
        return NO_STEPS
    if shows_some_steps(evidence):
        wide = [(each, first) for each, first in openings if first - each.step > max(stride.longest, 1)]
        ruling.doubts += [_told(each, first, "its progress bar shows some steps") for each, first in wide if evidence.golden is None]
        return NONE_SKIPPED if max(ways, default=0) <= 1 else SOME_STEPS
    _judge_returns(resumes, evidence, ruling)
    if max(ways, default=0) <= 1:
        return NONE_SKIPPED
    if not stride.every:
        many = "keeps no distance between the steps that it says, or has too few of them"
        ruling.doubts.append(f"task {task}: nothing tells whether a step was skipped: the log {many}, and there is no uninterrupted run")
        return NONE_SKIPPED
    _judge_ways(openings, lives, stride, evidence, ruling)
    return NONE_SKIPPED


def _judge_ways(
    openings: Sequence[tuple[Succession, int]], lives: Sequence[Incarnation], stride: Stride, evidence: Evidence, ruling: Ruling
) -> None:
    """No way is longer than the stride; where words are lost, a step may be among them."""
    broken = ruling.doubts if evidence.lost_words() else ruling.broken
    for each, first in openings:
        if first - each.step > stride.every:
            is_usual = first - each.step <= stride.opening  # its very first step came as late
            (ruling.doubts if is_usual else broken).append(_told(each, first, _log_of(stride)))
    for life in lives:
        for before, after in pairwise(rises(life)):
            if after - before > stride.every:
                broken.append(f"{name_of_life(life)} {_skips(before, after)}: it said step {after} next; {_log_of(stride)}")


def _told(resume: Succession, first: int, log: str) -> str:
    """The first step that a life said, and how far it lies from where it went on."""
    return f"{resume.who} {_skips(resume.step, first)}: it went on from step {resume.step} and said step {first} next; {log}"


def _skips(before: int, after: int) -> str:
    return f"skips steps {before + 1} to {after - 1}" if after - before > 2 else f"skips step {before + 1}"


def _log_of(stride: Stride) -> str:
    return "its log says every step" if stride.every == 1 else f"its log says a step every {stride.every}"


def _judge_returns(resumes: Sequence[Succession], evidence: Evidence, ruling: Ruling) -> None:
    """A step below the one it went on from is done again; one further on may be that of a process that was started anew without a word."""
    if evidence.scenario.workload.ranks > 1 or evidence.lost_words():
        return  # several processes say the same steps, one later than the other
    for resume in resumes:
        steps = [event.step for event in resume.life.steps]
        if resume.life.started is not None and steps and steps[0] < resume.step:
            again = f"executes steps {steps[0]} to {resume.step} again"
            ruling.broken.append(f"{resume.who} {again}: it said step {steps[0]} after it had gone on from step {resume.step}")
    for life in evidence.lineage.incarnations_of(resumes[0].life.task):
        back = next(((before.step, after.step) for before, after in pairwise(life.steps) if after.step < before.step), None)
        if back is not None:
            ruling.doubts.append(f"{name_of_life(life)} said step {back[1]} after step {back[0]}, and nothing tells why")
