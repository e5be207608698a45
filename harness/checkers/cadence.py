"""Saves come at their cadence in every life of the job, after a resume too.

maxtext#5260: a stale step in memory made every later save be skipped, silently. What tells is not the first attempt but the second.
"""

from harness.checkers.evidence import Evidence, Ruling
from harness.history import CheckpointsSeen, SaveBegun
from harness.lineage import Incarnation
from harness.scenario.expectations import SavesAtCadence
from harness.verdict import Finding

CHECKER = "saves-at-cadence"


def check(expectation: SavesAtCadence, evidence: Evidence) -> Finding:
    """Expect a commit for each multiple of the interval that a life executed and left behind: after which it did something else."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("events"))
    expected = missed = 0
    tells = evidence.scenario.workload.speaks_protocol or bool(evidence.scenario.workload.outside.logs.saved)
    for task in evidence.lineage.tasks:
        for life in evidence.lineage.incarnations_of(task):
            owed = _owed(life, expectation.every)
            absent = [step for step in owed if not _is_committed(step, life, evidence)]
            there = {step for step in absent if _was_there(step, life, evidence)}
            owed, absent = ([step for step in steps if step not in there] for steps in (owed, absent))
            expected, missed = expected + len(owed), missed + len(absent)
            place = f"task {task} attempt {life.attempt}" + (
                f" life {life.number}" if life.exit is None and life.ended_s is not None else ""
            )
            ruling.facts.append(f"{place}: saves owed at {owed}, missing {absent}")
    ruling.measures = {"saves_expected": float(expected), "saves_missed": float(missed)}
    if missed > expectation.missed_max:
        first = next(fact for fact in ruling.facts if not fact.endswith("[]"))
        ruling.broken.append(f"{missed} of {expected} saves are missing, {expectation.missed_max} may be: {first}")
    nothing = "" if expected and (tells or _has_surveys(evidence)) else "no save was owed by any life of the job that was recorded"
    return ruling.conclude(
        CHECKER, f"{expected - missed} of {expected} saves were committed at every {expectation.every} steps", nothing=nothing
    )


def _owed(life: Incarnation, every: int) -> list[int]:
    """Multiples that were executed and whose save cannot be in flight at the end: the life went on for a whole interval, or ended well."""
    executed = [step.step for step in life.steps]
    multiples = [step for step in executed if step % every == 0]
    if not multiples:
        return []
    last = max(executed)
    is_whole = life.done is not None and (life.exit is None or life.exit.exit_code == 0)
    stopped_s = life.sigterm_seen.t_s if life.sigterm_seen else float("inf")
    done_s = {step.step: step.t_s for step in life.steps}
    return [step for step in multiples if done_s[step] < stopped_s and (is_whole or step + every <= last)]


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


def _is_committed(step: int, life: Incarnation, evidence: Evidence) -> bool:
    """Whether the job acknowledged the save, or storage has shown it, in this life."""
    if any(save.step == step for save in life.saves_ended):
        return True
    begun = any(isinstance(event, SaveBegun) and event.step == step for event in life.events)
    if begun and evidence.scenario.workload.speaks_protocol:
        return False
    end_s = life.ended_s if life.ended_s is not None else float("inf")
    seen = [
        event
        for event in evidence.events
        if isinstance(event, CheckpointsSeen) and event.task == life.task and life.began_s <= event.t_s <= end_s + 1.0
    ]
    return not evidence.scenario.workload.speaks_protocol and any(
        found.step == step and found.state == "committed" for event in seen for found in event.checkpoints
    )


def _has_surveys(evidence: Evidence) -> bool:
    return any(isinstance(event, CheckpointsSeen) for event in evidence.events)
