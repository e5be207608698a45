"""What storage owed the job and what it offered it: shared by the promises about checkpoints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.checkers.evidence import Evidence
from harness.history import CheckpointsSeen, JobEvent, RestoreBegun, Restored, SaveBegun, SaveEnded, Started, StepDone
from harness.lineage import DAMAGE, Incarnation, StoredStep, newest_sound

Standing = Literal["committed", "in-flight", "damaged", "uncommitted", "foreign", "unseen"]
"""What a step was on storage when it was restored: ``in-flight`` was being saved when storage was last looked at, ``foreign`` was never
saved, ``unseen``: nothing tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one life found when it looked for a checkpoint.

    Attributes:
        at_s: When it chose.
        held: Storage at that moment, as last seen.
        required_step: The newest step that it had to find; None when nothing tells.
        notion: What ``required_step`` is: on storage, or only acknowledged where storage does not tell.
        saved: Steps that earlier lives began to save; true for those that they acknowledged.
        says_saves: Whether the job would have said that it saves a step: it speaks, and has spoken of a save.
        is_settled: Whether storage was looked at after the last writer had ended.
        tells_steps: Whether what lies on storage can be told apart by step.
    """

    at_s: float
    held: Mapping[int, StoredStep]
    required_step: int | None
    notion: str
    saved: Mapping[int, bool]
    says_saves: bool
    is_settled: bool
    tells_steps: bool

    def standing_of(self, step: int) -> Standing:
        """What a restored step was."""
        stored = self.held.get(step)
        if stored is not None and stored.is_good:
            return "committed"
        if stored is not None and stored.change == "fault":
            return "damaged" if stored.committed_digest or step in self.saved else "foreign"
        if stored is None and step not in self.saved and (self.says_saves or (self.is_settled and self.tells_steps)):
            return "foreign"
        if not self.tells_steps:
            return "unseen"
        return "uncommitted" if self.is_settled else "in-flight"


def offer_to(life: Incarnation, evidence: Evidence) -> Offer:
    """Reconstruct what a life had to choose from.

    Where an earlier life may still have written (an overlap, or a restart inside one attempt), only what was there when this one began is
    required of it.
    """
    lineage, task = evidence.lineage, life.task
    at_s = _chosen_s(life)
    earlier = [other for other in lineage.incarnations_of(task) if other.number < life.number]
    is_shared = any(other.attempt == life.attempt or other.ended_s is None or other.ended_s > life.began_s for other in earlier)
    held = lineage.storage_before(task, at_s)
    saved = _saved_by(earlier, at_s)
    tells_steps = tells_steps_of(evidence, task, held)
    last_written_s = max((other.ended_s for other in earlier if other.ended_s is not None), default=0.0)
    required: int | None = None
    if not any(saved.values()) or _was_surveyed(evidence, task, 0.0, at_s, is_whole=False):
        known = lineage.storage_before(task, life.began_s) if is_shared else held
        required = _required(evidence, known, saved, tells_steps=tells_steps)
    if not tells_steps and was_damaged(evidence, task, 0.0, at_s):
        required = None
    return Offer(
        at_s=at_s,
        held=held,
        required_step=required,
        notion=_notion(evidence, tells_steps=tells_steps),
        saved=saved,
        says_saves=evidence.scenario.workload.speaks_protocol and tells_saves(evidence),
        is_settled=not earlier or (not is_shared and _was_surveyed(evidence, task, last_written_s, at_s, is_whole=True)),
        tells_steps=tells_steps,
    )


def tells_saves(evidence: Evidence) -> bool:
    """Whether the job says what it saves. One that speaks and never spoke of a save may save in a way that nobody sees."""
    return bool(evidence.of_type(SaveBegun) or evidence.of_type(SaveEnded))


def tells_steps_of(evidence: Evidence, task: int, held: Mapping[int, StoredStep]) -> bool:
    """Whether storage can be read by step: names or contents say them, they are of this task alone, and they are steps indeed.

    The numbers in the names of unknown files may be epochs or years: they count only where the job has spoken of the same steps.
    """
    workload = evidence.scenario.workload
    if evidence.scenario.platform.tasks > 1 and workload.layout != "text-file":  # the only layout with the task in its names
        return False
    if any(stored.step < 0 and stored.is_good for stored in held.values()):
        return False
    return workload.layout != "files" or all(_is_a_step(evidence, task, step) for step, stored in held.items() if stored.is_good)


def _is_a_step(evidence: Evidence, task: int, step: int) -> bool:
    workload = evidence.scenario.workload
    if step < 1 or (workload.steps and step > workload.steps):
        return False
    if step == workload.steps or (workload.save_every and step % workload.save_every == 0):
        return True
    said: tuple[StepDone | SaveEnded, ...] = evidence.of_type(StepDone) + evidence.of_type(SaveEnded)
    return any((event.task, event.step) == (task, step) for event in said)


def was_damaged(evidence: Evidence, task: int, from_s: float, to_s: float) -> bool:
    """Whether a fault changed a task's storage at rest between two moments."""
    return any(fault.task == task and fault.fault in DAMAGE and from_s <= fault.t_s <= to_s for fault in evidence.requested())


def _required(evidence: Evidence, held: Mapping[int, StoredStep], saved: Mapping[int, bool], *, tells_steps: bool) -> int | None:
    """The newest durable step, by the best notion of durable that the layout allows."""
    workload = evidence.scenario.workload
    acknowledged = [step for step, is_acknowledged in saved.items() if is_acknowledged]
    if not tells_steps:
        return max(acknowledged, default=0) if tells_saves(evidence) else None
    if workload.layout != "files":
        return newest_sound(held)
    # A name and some bytes are all that is known of this layout: the newest may be half written, unless the job has acknowledged it.
    sound = sorted(step for step, stored in held.items() if stored.is_sound)
    certain = [step for step in sound if step in acknowledged] if acknowledged else sound[:-1]
    return max(certain, default=0)


def _notion(evidence: Evidence, *, tells_steps: bool) -> str:
    if not tells_steps:
        return "acknowledged save"
    return "checkpoint on storage that is certain" if evidence.scenario.workload.layout == "files" else "sound checkpoint on storage"


def _saved_by(lives: Sequence[Incarnation], before_s: float) -> dict[int, bool]:
    """Steps that lives have saved before a moment; true where a save was acknowledged."""
    saved: dict[int, bool] = {}
    for life in lives:
        saved.update({event.step: False for event in life.saves_begun if event.t_s <= before_s and event.step not in saved})
        saved.update({event.step: True for event in life.saves_ended if event.t_s <= before_s})
    return saved


def _chosen_s(life: Incarnation) -> float:
    """When a life chose a checkpoint: rank 0's first word about it, else anybody's, else the first word at all."""
    words: list[JobEvent] = [*life.of_type(RestoreBegun), *life.of_type(Restored), *life.of_type(Started)]
    moments = [event.t_s for event in words if event.rank == 0] or [event.t_s for event in words or life.events[:1]]
    return min(moments, default=life.began_s)


def _was_surveyed(evidence: Evidence, task: int, from_s: float, to_s: float, *, is_whole: bool) -> bool:
    surveys = (event for event in evidence.of_type(CheckpointsSeen) if event.task == task)
    return any(from_s <= event.t_s <= to_s and (event.is_whole or not is_whole) for event in surveys)


def losses_of_last_good(evidence: Evidence, task: int) -> Iterator[str]:
    """Each moment at which the last good checkpoint was gone and no fault had taken it.

    Only surveys made while no attempt ran are held against the job: a directory that is being written cannot be read at one moment.
    """
    acknowledged = [event for event in evidence.of_type(SaveEnded) if event.task == task]
    last_good: tuple[int, float] | None = None
    is_accounted_for = False  # damaged by a fault, or said before
    for survey in evidence.lineage.surveys(task):
        t_s = survey.seen.t_s
        good = [stored.step for stored in survey.looked_at if stored.is_good]
        if good:
            last_good, is_accounted_for = (max(good), t_s), False
            continue
        is_accounted_for = is_accounted_for or survey.is_after_damage
        if is_accounted_for or not survey.seen.is_whole or not evidence.lineage.is_quiet_at(task, t_s):
            continue
        when = f"at {t_s:.2f} s ({survey.seen.occasion} of attempt {survey.seen.attempt})"
        where = f"task {task}: storage held no committed checkpoint {when}"
        if last_good is not None:
            is_accounted_for = True
            yield f"{where}; it held step {last_good[0]} at {last_good[1]:.2f} s, and no fault had touched it"
        elif any(event.t_s <= t_s for event in acknowledged):
            is_accounted_for = True
            yield f"{where}, although the job had acknowledged step {acknowledged[0].step} at {acknowledged[0].t_s:.2f} s"
