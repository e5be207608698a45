"""Which moments a right job is sure to reach in an attempt, however far back it had to go: a fault that waits in vain proves nothing.

All that is known of where an attempt begins is the newest step that can be durable then. So a moment is counted from there: the nth step or
save of the attempt comes for sure if it would come for a job that lost nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.scenario import Workload

FAMILIES = ("boot", "restore.begin", "restore", "start", "step", "save.begin", "save.end", "done")
"""Events of the protocol that triggers are drawn from, the earliest first: towards that one Hypothesis shrinks."""

SAVING = frozenset({"save.begin", "save.end"})

TOLD_SHARE = 0.7
"""A job that only logs is hit a while after its words, and does not wait: past this share of its steps it may be done before it is hit. The
standard scenarios strike there too."""

LATE_SHARE = 0.1
"""So far it may have come by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where an attempt begins.

    Attributes:
        attempt: Its number.
        step_max: The newest step that it can restore; it may have to go back further.
        has_saved: Whether there is a checkpoint for sure.
    """

    attempt: int = 0
    step_max: int = 0
    has_saved: bool = False

    def next_attempt(self, *, step_max: int, has_saved: bool) -> "Position":
        """Where the attempt after this one begins."""
        return Position(attempt=self.attempt + 1, step_max=step_max, has_saved=self.has_saved or has_saved)


class Reach:
    """What a workload is sure to reach.

    Attributes:
        steps: The final one; 0: unknown.
        saving: What it says in each of its saves, ``markers`` of its own included.
        training: What it says when it is up, and has its handler of SIGTERM.
    """

    def __init__(self, workload: Workload, markers: Sequence[str] = ()) -> None:
        self._workload = workload
        self._order = (*FAMILIES[:-2], *markers, *FAMILIES[-2:])
        self.steps = workload.steps
        self.saving = SAVING | set(markers)
        self.training = self.saving | {"step"}
        self.says_sigterm = workload.speaks_protocol or bool(workload.outside.logs.sigterm)
        """Whether it tells that it noticed."""
        self.whens: tuple[Literal["after", "before"], ...] = ("after", "before") if workload.speaks_protocol else ("after",)
        """Whether it can be held before it says something too: a log is read when it was written."""

    def limits(self, position: Position) -> Mapping[str, int]:
        """By event, how often it comes for sure in the attempt; those that may not come are not there."""
        speaks = self._workload.speaks_protocol
        found = self._said(position) if speaks else self._read(position)
        return {event: found[event] for event in self._order if found.get(event, 0) > 0}

    def is_placed(self, event: str) -> bool:
        """Whether it is known where in a job's life an event stands."""
        return event in self._order

    def steps_from(self, position: Position) -> tuple[int, int]:
        """The first and the last step at which the attempt can be hit for sure; the last is before the first where there is none."""
        tells = self._workload.speaks_protocol or bool(self._workload.outside.logs.step)
        return (position.step_max + 1, self._last_told_step if tells else 0)

    def after(self, position: Position, event: str, nth: int) -> int:
        """The newest step that can be durable when an attempt that began there is hit at the nth ``event``."""
        if event == "step":
            return min(self.steps or nth, position.step_max + nth)
        if event in self.saving:
            every = self._workload.save_every
            return min(self.steps, (position.step_max // every + nth) * every)
        return self.steps if event == "done" else position.step_max

    @property
    def overshoot(self) -> int:
        """How many steps it may go on after a word of it, before it is hit: a job that keeps the barrier waits."""
        return 0 if self._workload.speaks_protocol else int(self.steps * LATE_SHARE)

    def has_saved(self, event: str, nth: int, when: str) -> bool:
        """Whether a save is durable for sure at that moment: it was acknowledged, or the next one has begun.

        So many steps of one attempt hold two saves; a step of that number is of an attempt that has done as many, or resumed from a save.
        """
        if event == "step":
            return 0 < 2 * self._workload.save_every < nth
        if event == "save.end":
            return when == "after" or nth >= 2
        return event == "save.begin" and nth >= 2

    @property
    def _last_told_step(self) -> int:
        return self.steps if self._workload.speaks_protocol else int(self.steps * TOLD_SHARE)

    def _said(self, position: Position) -> dict[str, int]:
        is_far = 0 < self.steps <= position.step_max  # it may be complete, and need not train any more
        found = {"boot": 1}
        if not is_far:
            found |= dict.fromkeys(("restore.begin", "restore"), int(position.has_saved)) | {"start": 1}
            found |= {"step": self.steps - position.step_max if self.steps else 1} | dict.fromkeys(self.saving, self._saves(position))
        return found | ({"done": 1} if self.steps else {})

    def _read(self, position: Position) -> dict[str, int]:
        """From the log: how many steps it tells is not known, and of a beginning only a resume."""
        logs = self._workload.outside.logs
        is_early = not self.steps or position.step_max < self._last_told_step
        resumes = int(bool(logs.resumed) and position.has_saved and is_early)
        return {
            "restore": resumes,
            "start": resumes,
            "step": int(bool(logs.step) and is_early),
            "save.end": self._saves(position) if logs.saved else 0,
        }

    def _saves(self, position: Position) -> int:
        """Periodic saves before the final step, of which not every job makes one more."""
        every, last = self._workload.save_every, min(self.steps - 1, self._last_told_step)
        return last // every - position.step_max // every if every and self.steps else 0
