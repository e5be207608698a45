"""The job goes on in the run that it began: nothing durable is forgotten, and no second run directory appears beside the first.

A run name with the time in it (the default of Ray's ``RunConfig``) makes every retry begin from scratch, in a directory of its own: each
attempt looks right by itself, and the job never gets further than one attempt does.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_steps_of
from harness.checkers.successions import Succession, is_guessed, successions
from harness.history import CheckpointsSeen
from harness.lineage import newest_sound
from harness.scenario.expectations import SameRun
from harness.verdict import Finding, counted

CHECKER = "same-run"


def check(_expectation: SameRun, evidence: Evidence) -> Finding:
    """Judge where each life went on, what storage held from look to look, and in how many directories."""
    ruling = Ruling()
    continued = 0
    for task in evidence.lineage.tasks:
        continued += sum(_judge_resume(resume, evidence, ruling) for resume in successions(task, evidence))
        _judge_durable(task, evidence, ruling)
        _judge_directories(task, evidence, ruling)
    ruling.doubt_lost([*evidence.lost("checkpoints"), *evidence.lost_words()])
    ruling.measures = {"continued": float(continued)}
    nothing = "" if continued else "no life of the job found something durable to go on from, so nothing tells one run from two"
    kept = f"{counted(continued, 'life', 'lives')} went on in the run that was there, and its durable step never fell"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _judge_resume(resume: Succession, evidence: Evidence, ruling: Ruling) -> bool:
    """Whether a life had something to go on from and went on from something; which step is right is not asked here."""
    required = resume.offer.required_step
    told = f"{resume.who} went on from step {resume.step} at {resume.offer.at_s:.2f} s"
    if required is None:
        ruling.doubts.append(f"{told}, and nothing tells what was durable then")
    if not required:
        return False
    if resume.step == 0:
        target = ruling.doubts if is_guessed(resume, evidence) else ruling.broken
        target.append(f"{resume.who} began another run at {resume.offer.at_s:.2f} s, from scratch: step {required} was durable")
    ruling.facts.append(f"{told}; step {required} was durable")
    return True


def _judge_durable(task: int, evidence: Evidence, ruling: Ruling) -> None:
    """The newest durable step of one whole look is never below that of an earlier one, but for damage."""
    before: tuple[int, float] | None = None
    for survey in evidence.lineage.surveys(task):
        if survey.is_after_damage:
            before = None
        if not survey.seen.is_whole or not tells_steps_of(evidence, task, survey.held):
            continue
        newest, t_s = newest_sound(survey.held), survey.seen.t_s
        if newest is None:
            continue
        if before is not None and newest < before[0] and evidence.lineage.is_quiet_at(task, t_s):
            ruling.broken.append(f"task {task}: the durable step fell from {before[0]} at {before[1]:.2f} s to {newest} at {t_s:.2f} s")
        before = newest, t_s


def _judge_directories(task: int, evidence: Evidence, ruling: Ruling) -> None:
    """As many run directories as tasks, and the first of them where the scenario looks for it."""
    looks = [event for event in evidence.of_type(CheckpointsSeen) if event.task == task and event.is_whole]
    runs = [(look, _runs_of(look, evidence)) for look in looks]
    tasks = evidence.scenario.platform.tasks
    first = next(((look, names) for look, names in runs if len(names) > tasks), None)
    if first is not None:
        look, names = first
        when = f"{look.t_s:.2f} s ({look.occasion} of attempt {look.attempt})"
        ruling.broken.append(f"task {task}: {len(names)} run directories hold checkpoints at {when}, for {tasks} tasks: {', '.join(names)}")
    elif runs and runs[-1][1] and not runs[-1][0].checkpoints:
        where = evidence.scenario.workload.checkpoints
        ruling.doubts.append(f"task {task}: the checkpoints lie in {', '.join(runs[-1][1])}, and the scenario looks in {where}")


def _runs_of(look: CheckpointsSeen, evidence: Evidence) -> Sequence[str]:
    """The directories that hold checkpoints of the job's layout; that of Ray Train finds several runs below one storage path by itself."""
    workload = evidence.scenario.workload
    if workload.layout == "ray-train":
        own = sorted({str(PurePosixPath(checkpoint.path).parent) for checkpoint in look.checkpoints})
    else:
        own = [workload.checkpoints] if look.checkpoints else []
    return list(dict.fromkeys([*own, *look.elsewhere]))
