"""The moments of one attempt at which it can be hit for sure, whom, and how it ends then."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.explore.aims.choice import Choice, Ending
from harness.explore.aims.reach import Position
from harness.scenario import Trigger
from harness.scenario.faults import OverlapAttempts
from harness.scenario.triggers import AtMarker, AtOperation, AtStep

OVERSHOOT_STEPS = 1
"""A job that is told to go may finish its step, and the ranks of a gang are that far apart."""


@dataclass(frozen=True, slots=True)
class Aim:
    """When an attempt is hit.

    Attributes:
        at: The trigger.
        step_max: The newest step that can be durable then.
        has_saved: Whether one is for sure.
        takes_notice: Whether the job is up and has steps left, so that a notice ends the attempt.
    """

    at: Trigger
    step_max: int
    has_saved: bool = False
    takes_notice: bool = False


class AttemptAims:
    """Everything at which one attempt can be hit. ``is_up``: only what a notice may come at."""

    def __init__(self, choice: Choice, position: Position) -> None:
        self.choice, self._position, self._reach = choice, position, choice.reach
        self._limits = self._reach.limits(position)

    @property
    def has_steps_left(self) -> bool:
        """One that may be complete already is over at once."""
        return not self._reach.steps or self._position.step_max < self._reach.steps

    def events(self, rank: int, *, is_up: bool) -> list[str]:
        """What the rank says, -1 for all; only the first one tells of saves."""
        return [event for event in self._limits if self.limit(event, is_up=is_up) > 0 and (rank < 1 or event not in self._reach.saving)]

    def limit(self, event: str, *, is_up: bool) -> int:
        """How often it comes for sure; a notice at the very last step comes too late to end the attempt."""
        if not is_up:
            return self._limits.get(event, 0)
        if event not in self._limits or event not in self._reach.training:
            return 0
        is_last = event == "step" and self._reach.after(self._position, event, self._limits[event]) == self._reach.steps
        return self._limits[event] - int(is_last)

    def steps(self, *, is_up: bool) -> tuple[int, int]:
        """The first and the last step; the last is before the first where there is none."""
        first, last = self._reach.steps_from(self._position)
        return first, last - int(is_up)

    def operations(self, *, is_up: bool) -> Sequence[AtOperation]:
        """A recording is of a run from the start; those of a later attempt are others."""
        known = self.choice.known.operations if self._position.attempt == 0 else ()
        return [at for at in known if not is_up or at.after in self._reach.training]

    def at_marker(self, at: AtMarker) -> Aim:
        """What is known of a moment at a word."""
        takes_notice = at.event in self._reach.training and at.nth <= self.limit(at.event, is_up=True)
        step_max = self._reach.after(self._position, at.event, at.nth)
        return Aim(at, step_max, self._reach.has_saved(at.event, at.nth, at.when), takes_notice)

    def at_operation(self, at: AtOperation) -> Aim:
        """What is known of a moment at an operation."""
        is_placed = self._reach.is_placed(at.after)  # of another word of the job nobody knows when it comes
        step_max = self._reach.after(self._position, at.after, at.after_nth) if is_placed else self._reach.steps
        return Aim(at, step_max, self._reach.has_saved(at.after, at.after_nth, "after"), takes_notice=at.after in self._reach.training)

    def at_step(self, at: AtStep) -> Aim:
        """What is known of a moment at a step."""
        return Aim(at, at.step, self._reach.has_saved("step", at.step, "after"), takes_notice=at.step < self.steps(is_up=False)[1])

    def after_notice(self, notice: Trigger, rank: int, *, is_end: bool) -> list[Trigger]:
        """When one that was told to go can be hit again: in its handler, and in its last save where it is known which one that is."""
        found: list[Trigger] = [AtMarker(event="sigterm", rank=max(0, rank))]
        workload = self.choice.workload
        every = workload.save_every if workload.speaks_protocol else 0  # a log is read when the save is over
        if not is_end or self._position.attempt or not isinstance(notice, AtStep) or not every or notice.step % every == 0:
            return found
        if rank >= 1:
            return found
        saves = notice.step // every + 1
        in_save = [AtMarker(event="save.begin", nth=saves), AtMarker(event="save.end", nth=saves, when="before")]
        return [*found, *in_save, *self.choice.known.last_save]


def newest_step(choice: Choice, ending: Ending, aim: Aim) -> int:
    """The newest step that the next attempt can find; one that was lost from sight goes on for a while."""
    steps = choice.workload.steps
    if isinstance(ending.fault, OverlapAttempts):
        return steps
    overshoot = choice.reach.overshoot + (OVERSHOOT_STEPS if ending.gives_notice or choice.workload.ranks > 1 else 0)
    return min(steps or aim.step_max, aim.step_max + overshoot)
