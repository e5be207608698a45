"""What was durable when an attempt ended: by storage where that tells, else by what the job acknowledged."""

from harness.checkers.evidence import Evidence
from harness.checkers.storage import tells_saves, tells_steps_of, was_damaged
from harness.history import FaultHealed
from harness.lineage import Attempt, newest_sound
from harness.scenario import kind_of
from harness.scenario.faults import FailWrites

FAIL_WRITES = kind_of(FailWrites())


def stored_at_end(attempt: Attempt, evidence: Evidence) -> int | None:
    """The newest sound step that storage held when the attempt had ended; None where nobody looked, or steps cannot be told apart."""
    if evidence.lost("checkpoints"):
        return None
    for survey in evidence.lineage.surveys(attempt.task):
        if survey.seen.occasion == "attempt-end" and survey.seen.attempt == attempt.number:
            if was_damaged(evidence, attempt.task, attempt.started_s, survey.seen.t_s):
                return None
            return newest_sound(survey.held) if tells_steps_of(evidence, attempt.task, survey.held) else None
    return None


def acknowledged_by(task: int, t_s: float, evidence: Evidence) -> int | None:
    """The newest step that the job had acknowledged as saved by a moment, 0 for none; None for a job that says nothing of its saves."""
    if not tells_saves(evidence) or evidence.lost_words():
        return None
    lives = evidence.lineage.incarnations_of(task)
    return max((save.step for life in lives for save in life.saves_ended if save.t_s <= t_s), default=0)


def were_writes_refused(task: int, from_s: float, to_s: float, evidence: Evidence) -> bool:
    """Whether an injection made a task's writes fail at some time between two moments; one that was never healed did so to the second."""
    healed_s = {(event.injection, event.attempt): event.t_s for event in evidence.of_type(FaultHealed)}
    faults = [fault for fault in evidence.requested() if fault.fault == FAIL_WRITES and fault.task == task and fault.t_s <= to_s]
    return any(healed_s.get((fault.injection, fault.attempt), to_s) >= from_s for fault in faults)
