"""Every attempt after the first goes on from the newest step that is durable, repeats little and skips nothing."""

from bisect import bisect_right
from itertools import count

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.log_lag import struck_when_done
from harness.checkers.skipping import judge_skipping
from harness.checkers.states import SavedStates
from harness.checkers.storage import was_damaged
from harness.checkers.strides import stride_of
from harness.checkers.successions import Succession, had_its_grace, is_guessed, name_of_life, successions
from harness.checkers.unsaved import judge_unsaved
from harness.history import Restored
from harness.scenario.expectations import ResumesFromNewestDurable
from harness.verdict import Finding, counted

CHECKER = "resumes-from-newest-durable"


def check(expectation: ResumesFromNewestDurable, evidence: Evidence) -> Finding:
    """Judge each life that trained after another one had been there; see ``_judge_choice``, ``_judge_loss`` and ``_judge_order``."""
    ruling = Ruling()
    lost_steps: list[int] = []
    order: list[str] = []
    for task in evidence.lineage.tasks:
        saved, stride = SavedStates(evidence.lineage, task), stride_of(task, evidence)
        resumes = list(successions(task, evidence))
        for resume in resumes:
            mine = Ruling()
            _judge_choice(resume, evidence, saved, mine)
            if resume.offer.standing_of(resume.step) in ("unseen", "in-flight"):
                judge_unsaved(resume, stride, evidence, mine)
            lost_steps.append(_judge_loss(resume, expectation, evidence, mine))
            _judge_order(resume, evidence, mine)
            if is_guessed(resume, evidence):
                mine.doubt_broken()
            ruling.add(mine)
        order.append(judge_skipping(task, resumes, stride, evidence=evidence, ruling=ruling))
        _judge_coverage(task, evidence, ruling)
    ruling.doubt_lost([*evidence.lost("checkpoints"), *evidence.lost_words()])
    late = "" if lost_steps else struck_when_done(evidence)
    nothing = f"nothing resumed in {counted(len(evidence.lineage.attempts), 'attempt')}, so nothing was proved{late and f': {late}'}"
    total, most = sum(lost_steps), max(lost_steps, default=0)
    ruling.measures = {"resumes": float(len(lost_steps)), "lost_steps": float(total), "lost_steps_at_once": float(most)}
    repeated = f"{counted(total, 'step')} repeated, at most {most} at once of {expectation.lost_steps_max} allowed"
    return ruling.conclude(
        CHECKER,
        f"{counted(len(lost_steps), 'resume')} went on from the newest durable step; {repeated}, and {', and '.join(dict.fromkeys(order))}",
        nothing="" if lost_steps else nothing,
    )


def _judge_choice(resume: Succession, evidence: Evidence, saved: SavedStates, ruling: Ruling) -> None:
    """It must take the newest sound step; one that is newer is right only where it was being saved when storage was last looked at."""
    offer, step, who = resume.offer, resume.step, resume.who
    required = offer.required_step
    newest = f"the newest {offer.notion} was " + ("not known" if required is None else f"step {required}" if required else "none")
    ruling.facts.append(f"{who} went on from step {step} at {offer.at_s:.2f} s; {newest}")
    if required is None:
        ruling.doubts.append(f"{who} went on from step {step}, and nothing tells which step was durable")
    elif resume.low < required <= resume.high:
        ruling.doubts.append(f"{who} can have gone on from any of steps {resume.low} to {resume.high}, and does not say which; {newest}")
    elif step < required:
        ruling.broken.append(f"{who} went on from step {step} at {offer.at_s:.2f} s, and {newest}")
    if step == 0:
        return
    standing = offer.standing_of(step)
    if standing == "damaged" and not _loaded_what_was_saved(resume, saved):
        ruling.broken.append(f"{who} went on from step {step}, whose checkpoint a fault had damaged; {newest}")
    elif standing in ("foreign", "uncommitted"):
        what = "which nobody had saved" if standing == "foreign" else "whose save had not been committed"
        target = ruling.doubts if evidence.lost("checkpoints") or (standing == "foreign" and evidence.lost_words()) else ruling.broken
        target.append(f"{who} went on from step {step} at {offer.at_s:.2f} s, {what}; {newest}")
    elif standing == "in-flight":
        ruling.facts.append(f"{who}: step {step} was being saved when storage was last looked at, and became whole")


def _loaded_what_was_saved(resume: Succession, saved: SavedStates) -> bool:
    """Damage that did not reach the state, as of a file that nobody reads, is no reason to refuse a checkpoint."""
    loaded = [event for event in resume.life.restores if event.step == resume.step]
    return bool(loaded) and all(saved.compare(event) == "" for event in loaded)


def _judge_loss(resume: Succession, expectation: ResumesFromNewestDurable, evidence: Evidence, ruling: Ruling) -> int:
    """Count the steps that the predecessor had executed when this life began and that are done again."""
    before, executed = resume.before, resume.executed_before
    lost = max(0, executed - resume.step)
    limit, owed = expectation.lost_steps_max, "allowed"
    if expectation.lost_steps_after_sigterm_max is not None and before is not None and had_its_grace(before, evidence):
        is_damaged = was_damaged(evidence, before.task, before.began_s, resume.offer.at_s)
        if not is_damaged:
            limit, owed = expectation.lost_steps_after_sigterm_max, f"allowed after {name_of_life(before)} had SIGTERM and its grace"
    if lost > limit:
        executed_before = f"step {executed} had been executed"
        ruling.broken.append(f"{resume.who} repeats {lost} steps: it went on from step {resume.step}, {executed_before}; {limit} {owed}")
    return lost


def _judge_order(resume: Succession, evidence: Evidence, ruling: Ruling) -> None:
    """The first step is the one after the restored one, and each that follows is the next."""
    life, who = resume.life, resume.who
    loaded = [event.step for event in life.of_type(Restored, rank=0) if life.started is None or event.t_s <= life.started.t_s]
    if loaded and loaded[-1] < resume.step:
        ruling.broken.append(f"{who} loaded the checkpoint of step {loaded[-1]} and went on as if from step {resume.step}")
    previous = resume.step
    for event in life.steps:
        if resume.known_steps and event.step == previous:
            continue  # a silent job may log several lines of one step
        expected = _step_after(previous, resume, evidence)
        if expected is not None and event.step != expected:
            what, notes = f"skips steps {expected} to {event.step - 1}", _notes_of_gaps(evidence, ruling)
            if event.step < expected:
                what, notes = f"executes steps {event.step} to {previous} again", ruling.broken
            notes.append(f"{who} {what}: it executed step {event.step} at {event.t_s:.2f} s after step {previous}")
            return
        previous = event.step


def _step_after(step: int, resume: Succession, evidence: Evidence) -> int | None:
    """The next step that must be seen; None where a silent job may log what it likes."""
    if resume.known_steps:
        index = bisect_right(resume.known_steps, step)
        return resume.known_steps[index] if index < len(resume.known_steps) else None
    return step + 1 if evidence.scenario.workload.speaks_protocol else None


def _judge_coverage(task: int, evidence: Evidence, ruling: Ruling) -> None:
    """The retained steps are 1, 2, 3 and so on. A step whose save was begun was executed, even where a kill came before it was said."""
    if not evidence.scenario.workload.speaks_protocol:
        return
    retained = {step.step for step in evidence.lineage.retained_steps(task)}
    executed = retained | {event.step for life in evidence.lineage.incarnations_of(task) for event in life.saves_begun}
    last = max(retained, default=0)
    missing = last - 1 - sum(1 <= step < last for step in executed)  # counted, not listed: a job may claim any number for a step
    if missing > 0:
        first = next(step for step in count(1) if step not in executed)
        _notes_of_gaps(evidence, ruling).append(
            f"task {task}: step {first} is not among the retained steps up to {last}; {missing} are missing in all"
        )


def _notes_of_gaps(evidence: Evidence, ruling: Ruling) -> list[str]:
    """Where a step that was not seen belongs: where words of the job are lost, it may have been executed."""
    return ruling.doubts if evidence.lost_words() else ruling.broken
