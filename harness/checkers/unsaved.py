"""Whether a step that a silent job went on from can have been saved at all: by what it said that it saved, and how far it had come.

A job may die between a save and the line that tells of it, so a step that it had reached may have been saved without a word. One that
nobody had reached cannot.
"""

from itertools import pairwise
from math import ceil, inf
from statistics import median

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_saves
from harness.checkers.strides import Stride
from harness.checkers.successions import Succession
from harness.lineage import Incarnation


def judge_unsaved(resume: Succession, stride: Stride, evidence: Evidence, ruling: Ruling) -> None:
    """Hold against a life that it went on from a step that no recorded save had, as far as that is sure."""
    if evidence.scenario.workload.speaks_protocol or not tells_saves(evidence) or _is_recorded(resume):
        return
    newest = max((step for step, is_acknowledged in resume.offer.saved.items() if is_acknowledged), default=0)
    saved = f"the newest acknowledged save was {f'step {newest}' if newest else 'none'}"
    who, step = f"{resume.who} went on from step {resume.step} at {resume.offer.at_s:.2f} s", resume.step
    earlier = [life for life in evidence.lineage.incarnations_of(resume.life.task) if life.number < resume.life.number]
    said = max(_said(life, resume.offer.at_s) for life in earlier)
    broken = ruling.doubts if evidence.lost_words() else ruling.broken
    if step > max(_reach(life, stride, resume.offer.at_s, evidence) for life in earlier):
        broken.append(f"{who}, which nobody had saved and nobody had executed: step {said} was the last, and {saved}")
    elif step > said + max(stride.every - 1, 0):
        ruling.doubts.append(
            f"{who}, and nothing tells that anybody had executed or saved it: step {said} was the last that was said, and {saved}"
        )
    elif _is_off_cadence(resume, evidence):
        broken.append(f"{who}, which nobody had saved; {saved}")
    else:
        ruling.facts.append(f"{who}, whose save was not said; {saved}")


def _is_recorded(resume: Succession) -> bool:
    """Whether its step was said to be saved, or was seen on storage; some jobs name the step that they go on with, one further."""
    step, saved = resume.step, resume.offer.saved
    if step == 0 or step in saved or step in resume.offer.held:
        return True
    first = next(iter(resume.life.steps), None)
    return step - 1 in saved and (first is None or first.step != step + 1)


def _said(life: Incarnation, before_s: float) -> int:
    """The highest step that a life has spoken of."""
    return max([life.last_step(before_s), *(save.step for save in life.saves_ended if save.t_s <= before_s)])


def _reach(life: Incarnation, stride: Stride, before_s: float, evidence: Evidence) -> float:
    """How far a life can have come at the most: as far as it said, and on at twice its pace until it died; endless where none is known."""
    moments = [event.t_s for index, event in enumerate(life.steps) if not index or event.step > life.steps[index - 1].step]
    paces = [after - before for before, after in pairwise(moments)]
    if len(paces) < 2 or not median(paces) or not stride.every:
        return inf
    attempt = next(each for each in evidence.lineage.attempts_of(life.task) if each.number == life.attempt)
    killed = [sent.t_s for sent in attempt.signals if sent.signal == "SIGKILL" and sent.rank < 0]
    died_s = min([*killed, before_s if life.ended_s is None else life.ended_s])
    lines = 1 + ceil(2 * max(0.0, died_s - moments[-1]) / median(paces))
    return _said(life, before_s) + stride.every * lines


def _is_off_cadence(resume: Succession, evidence: Evidence) -> bool:
    """Whether it lies between two saves of a job that keeps its interval, and was not told to save for the end."""
    every, before = evidence.scenario.workload.save_every, resume.before
    if not every or resume.step % every == 0 or not resume.offer.saved or any(step % every for step in resume.offer.saved):
        return False
    attempts = evidence.lineage.attempts_of(resume.life.task)
    was_told = any(attempt.sigterm() is not None for attempt in attempts if before is not None and attempt.number == before.attempt)
    older = [life for life in evidence.lineage.incarnations_of(resume.life.task) if life.number < resume.life.number]
    was_there = any(life.started is not None and life.started.restored_step == resume.step for life in older)
    return not was_told and not was_there
