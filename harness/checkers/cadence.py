"""Saves come at their cadence in every life of the job, after a resume too.

maxtext#5260: a stale step in memory made every later save be skipped, silently. What tells is not the first attempt but the second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_saves, tells_steps_of
from harness.checkers.successions import name_of_life
from harness.history import CheckpointsSeen
from harness.lineage import Incarnation, Survey
from harness.scenario.expectations import SavesAtCadence
from harness.verdict import Finding

CHECKER = "saves-at-cadence"

IN_FLIGHT_MAX = 2
"""Saves that a death may find unfinished: the one being written, and the one that was decided and waits for it."""


@dataclass(frozen=True, slots=True)
class _Dues:
    """The saves that one life owed, and those of them that were never committed."""

    life: Incarnation
    owed: Sequence[int]
    missing: Sequence[int]

    def __str__(self) -> str:
        return f"{name_of_life(self.life)}: saves owed at {list(self.owed)}, missing {list(self.missing)}"


def check(expectation: SavesAtCadence, evidence: Evidence) -> Finding:
    """Expect a commit for each multiple of the interval that a life executed and left behind: after which it did something else."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    if not tells_saves(evidence):
        ruling.doubt_lost(evidence.lost("checkpoints"))
        if not _storage_tells(evidence):
            return ruling.conclude(CHECKER, "", nothing="neither the job nor storage tells which steps were saved")
    dues = [_dues(life, expectation.every, evidence) for task in evidence.lineage.tasks for life in evidence.lineage.incarnations_of(task)]
    expected, missed = sum(len(each.owed) for each in dues), sum(len(each.missing) for each in dues)
    ruling.facts += map(str, dues)
    ruling.measures = {"saves_expected": float(expected), "saves_missed": float(missed)}
    if missed > expectation.missed_max:
        first = next(each for each in dues if each.missing)
        missing = f"{missed} of {expected} saves are missing, {expectation.missed_max} may be: {first}"
        (ruling.doubts or ruling.broken).append(missing)  # what was not recorded may have been a save
    nothing = "" if expected else "no save was owed by any life of the job that was recorded"
    kept = f"{expected - missed} of {expected} saves were committed at every {expectation.every} steps"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _dues(life: Incarnation, every: int, evidence: Evidence) -> _Dues:
    passed = _passed(life, every, evidence)
    if not tells_saves(evidence):
        newest = max((stored.step for survey in _looks_during(life, evidence) for stored in survey.looked_at if stored.is_sound), default=0)
        passed = [step for step in passed[-1:] if step >= newest]  # storage shows what retention has kept: no older one can be missed there
    acknowledged = {save.step for save in life.saves_ended}
    unacknowledged = [step for step in passed if step not in acknowledged]
    unseen = set(unacknowledged) - _seen_by(life, unacknowledged, evidence)
    flying = set(_in_flight(life))
    elsewhere = _saved_elsewhere(life, evidence) if unseen else set()
    excused = {step for step in unseen if step in flying or (step in elsewhere and _was_there(step, life, evidence))}
    return _Dues(life, [step for step in passed if step not in excused], sorted(unseen - excused))


def _passed(life: Incarnation, every: int, evidence: Evidence) -> Sequence[int]:
    """Multiples that were executed and left behind: the life went on for a whole interval, or ended well.

    None from the notice on, nor once the platform held the attempt for dead: its successor may have fenced it.
    """
    attempt = next(each for each in evidence.lineage.attempts_of(life.task) if each.number == life.attempt)
    moments = [life.sigterm_seen.t_s if life.sigterm_seen else None, attempt.abandoned_s]
    stopped_s = min((moment for moment in moments if moment is not None), default=float("inf"))
    last = max((event.step for event in life.steps), default=0)
    multiples = [event for event in life.steps if event.step % every == 0 and event.t_s < stopped_s]
    return list(dict.fromkeys(event.step for event in multiples if _ended_well(life) or event.step + every <= last))


def _ended_well(life: Incarnation) -> bool:
    """Whether it had time for every save: it said that it was done, or left with 0."""
    return life.done is not None or (life.exit is not None and life.exit.exit_code == 0)


def _in_flight(life: Incarnation) -> Iterator[int]:
    """Saves that the end of a life found unfinished: a death in the middle of a save is no missed save."""
    if _ended_well(life):
        return
    ended = {save.step for save in life.saves_ended}
    begun = dict.fromkeys(save.step for save in reversed(life.saves_begun))
    for step in list(begun)[:IN_FLIGHT_MAX]:
        if step in ended:
            return
        yield step


def _seen_by(life: Incarnation, steps: Sequence[int], evidence: Evidence) -> set[int]:
    """Steps that storage showed sound while a life lasted or when it had ended, and not before: saved, if not acknowledged."""
    if not steps:
        return set()
    before = evidence.lineage.storage_before(life.task, life.began_s)
    wanted = {step for step in steps if step not in before or not before[step].is_sound}
    looks = _looks_during(life, evidence)
    return {stored.step for survey in looks for stored in survey.looked_at if stored.is_sound and stored.step in wanted}


def _looks_during(life: Incarnation, evidence: Evidence) -> Iterator[Survey]:
    """Surveys that were made while a life lasted, and the one when it had ended."""
    end_s = life.ended_s if life.ended_s is not None else float("inf")
    for survey in evidence.lineage.surveys(life.task):
        is_last_look = life.exit is not None and (survey.seen.occasion, survey.seen.attempt) == ("attempt-end", life.attempt)
        if survey.seen.t_s > life.began_s and (survey.seen.t_s <= end_s or is_last_look):
            yield survey


def _saved_elsewhere(life: Incarnation, evidence: Evidence) -> set[int]:
    """Steps that another life acknowledged, or that storage ever showed sound: of no other need it be asked when they were there."""
    shown = {stored.step for survey in evidence.lineage.surveys(life.task) for stored in survey.looked_at if stored.is_sound}
    lives = evidence.lineage.incarnations_of(life.task)
    return shown | {save.step for other in lives if other is not life for save in other.saves_ended}


def _was_there(step: int, life: Incarnation, evidence: Evidence) -> bool:
    """Whether another life's save of it stood on storage when this life had to decide: nobody owes a second one."""
    if any(save.step == step for save in life.saves_begun):
        return False
    done_s = next(event.t_s for event in life.steps if event.step == step)
    decided_s = next((event.t_s for event in life.events if event.t_s > done_s and event.rank == 0), life.ended_s or done_s)
    stored = evidence.lineage.storage_before(life.task, decided_s).get(step)
    if stored is not None and stored.is_sound:
        return True
    looked_s = max((survey.seen.t_s for survey in evidence.lineage.surveys(life.task) if survey.seen.t_s <= decided_s), default=0.0)
    lives = evidence.lineage.incarnations_of(life.task)
    return any(save.step == step and looked_s < save.t_s <= decided_s for other in lives if other is not life for save in other.saves_ended)


def _storage_tells(evidence: Evidence) -> bool:
    """Whether storage was looked at and can be read by step, for every task."""
    looked_at = {event.task for event in evidence.of_type(CheckpointsSeen)}
    return all(
        task in looked_at and tells_steps_of(evidence, task, evidence.lineage.storage_before(task, float("inf")))
        for task in evidence.lineage.tasks
    )
