"""What became of a task: how far it came by each notion of the last step, and whether its work is done."""

import re
from dataclasses import dataclass

from harness.checkers.evidence import Evidence
from harness.checkers.storage import tells_steps_of
from harness.checkers.strides import stride_of
from harness.checkers.successions import shows_some_steps
from harness.history import CheckpointsSeen, Inspected, ResultSeen, Started, StepDone, TaskFinished
from harness.lineage import END_S, newest_sound
from harness.verdict import Outcome, counted

DURABLE = "durable step"
REPORTED = "reported step, for no checkpoint of the final step is owed"
WORD = "job's own word, for nothing tells how many steps it had to do"
SAID = "steps that it said"
RESULT = "result file, for no checkpoint of the final step is owed"


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether the work is done, by which notion of the last step, and why."""

    outcome: Outcome
    notion: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How far a task came.

    Attributes:
        final: The step at which the job is complete; 0 when nobody said.
        executed: The highest step that was done.
        reported: The step of its last ``done``; None when it said none.
        says_step: Whether it names that step itself; else it is the one at which it must be.
        said: The last step that a silent job spoke of in its last life that trained; None where its log says no steps.
        durable: The newest sound checkpoint at the end; None when nothing tells.
        owes_final_save: Whether storage must hold the final step: its turn to be saved, or a save of it was decided.
        finished: How the platform saw the task end; None when it did not.
    """

    task: int
    final: int
    executed: int
    reported: int | None
    says_step: bool
    said: int | None
    durable: int | None
    owes_final_save: bool
    finished: TaskFinished | None

    def __str__(self) -> str:
        end = "was not seen to end"
        if self.finished is not None:
            end = f"{'succeeded' if self.finished.succeeded else 'failed'} after {counted(self.finished.attempts, 'attempt')}"
        reported, durable = ("unknown" if step is None else str(step) for step in (self.reported, self.durable))
        word = f"reported {reported}" if self.says_step or self.reported is None else "said that it was done"
        told = f"task {self.task} {end}: executed {self.executed}, {word}"
        if not self.final and self.durable is None:
            return told
        return f"{told}, durable {durable} of {self.final or 'unknown'} steps"

    def completeness(self, evidence: Evidence) -> Completeness:
        """Whether the work is done: by the durable step where one is owed, else by what the job reported and left as its result."""
        if self.final and self.durable == self.final:
            return Completeness(Outcome.VALID, DURABLE, "its durable step is the final one")
        if self.final and self.durable is not None and self.durable > self.final:
            return Completeness(Outcome.INVALID, DURABLE, f"its durable step {self.durable} lies beyond the final step {self.final}")
        short_of = self._judge_said(evidence)
        if short_of is not None and (self.durable is None or not self.owes_final_save):
            return short_of
        if not self.owes_final_save:
            return self._reported_completeness(evidence)
        if self.durable is None or evidence.lost("checkpoints"):
            return Completeness(Outcome.UNKNOWN, DURABLE, "not all of its checkpoints were seen")
        short = f"its durable step {self.durable} is short of the final step {self.final}"
        return Completeness(Outcome.INVALID, DURABLE, f"{short}: its last save is lost")

    def _judge_said(self, evidence: Evidence) -> Completeness | None:
        """None unless it spoke of its steps and not of the last: more than one line is missing, whatever it says of its end."""
        if self.said is None or not self.final:
            return None
        stride = stride_of(self.task, evidence)
        if self.final - self.said <= max(stride.every or stride.longest, 1):
            return None  # some say a step when they begin it, or count from 0
        short = f"the last step that it said is {self.said} of {self.final}"
        if evidence.lost_words():
            return Completeness(Outcome.UNKNOWN, SAID, f"{short}, and not all that it said was recorded")
        if shows_some_steps(evidence) or not stride.every:
            return Completeness(Outcome.UNKNOWN, SAID, f"{short}, and nothing tells how many it leaves out")
        return Completeness(Outcome.INVALID, SAID, short)

    def _reported_completeness(self, evidence: Evidence) -> Completeness:
        result = next(reversed(evidence.of_type(ResultSeen)), None)
        if result is not None and not result.sha256:
            return Completeness(Outcome.INVALID, RESULT, f"its result {result.path} is not there")
        if self.reported is not None and self.final and self.reported != self.final:
            return Completeness(Outcome.INVALID, REPORTED, f"it reported step {self.reported} as its end, not step {self.final}")
        if self.reported is not None:
            return Completeness(Outcome.VALID, REPORTED if self.final else WORD, "it reported its end")
        if evidence.scenario.workload.speaks_protocol and evidence.is_job_heard and not evidence.lost_words():
            return Completeness(Outcome.INVALID, REPORTED, "it never said that it was done")
        if result is not None:
            return Completeness(Outcome.VALID, RESULT, "its result is there")
        return Completeness(
            Outcome.UNKNOWN, REPORTED, "no checkpoint of the final step, no word of the job and no result tells that it was done"
        )


def account_of(task: int, evidence: Evidence) -> Account:
    """Take stock of a task when everything had ended."""
    workload, lineage = evidence.scenario.workload, evidence.lineage
    lives = lineage.incarnations_of(task)
    said = [event.steps for life in lives for event in life.of_type(Started)]
    final = workload.steps or max(said, default=0)
    held = lineage.storage_before(task, END_S)
    is_surveyed = any(event.task == task for event in evidence.of_type(CheckpointsSeen))
    is_told = is_surveyed and tells_steps_of(evidence, task, held)
    inspected = _inspected_step(task, evidence)
    is_saved = any(final in {event.step for event in life.saves_begun} | {event.step for event in life.saves_ended} for life in lives)
    is_due = workload.save_every > 0 and final % workload.save_every == 0
    return Account(
        task=task,
        final=final,
        executed=max((life.last_step() for life in lives), default=0),
        reported=next((life.done.step for life in reversed(lives) if life.done is not None), None),
        says_step=_says_step(evidence),
        said=_last_said(task, evidence),
        durable=newest_sound(held) if is_told else inspected,
        owes_final_save=final > 0 and (is_saved or is_due) and (is_told or inspected is not None or not is_surveyed),
        finished=next((event for event in evidence.of_type(TaskFinished) if event.task == task), None),
    )


def _inspected_step(task: int, evidence: Evidence) -> int | None:
    """What the workload's own inspection says of the last attempt's checkpoints; None when it said nothing."""
    answers = [event for event in evidence.of_type(Inspected) if event.task == task]
    last = max(answers, key=lambda event: event.attempt, default=None)
    return last.step if last is not None and last.step >= 0 else None


def _says_step(evidence: Evidence) -> bool:
    """Whether ``done`` has a step of the job's own, or none that was filled in from the scenario."""
    workload = evidence.scenario.workload
    return workload.speaks_protocol or not workload.steps or "step" in re.compile(workload.outside.logs.done).groupindex


def _last_said(task: int, evidence: Evidence) -> int | None:
    """How far a silent job says that it came in the last life that trained; None where it says no steps."""
    lives = evidence.lineage.incarnations_of(task)
    if evidence.scenario.workload.speaks_protocol or not any(life.of_type(StepDone) for life in lives):
        return None
    last = next(life for life in reversed(lives) if life.restored_step is not None)
    return max([last.last_step(), *(save.step for save in last.saves_ended)])
