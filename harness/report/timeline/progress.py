"""How far a task came over time: the step that was executed, the step that was durable, and what was lost between them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from harness.history import CheckpointsSeen, Started
from harness.lineage import Incarnation, Lineage, Survey
from harness.report.timeline.tracks import cuts_of

Point = tuple[float, int]
"""A moment in seconds, and a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Work of one life that was executed and not retained.

    Attributes:
        base_step: The step that a later life went back to.
        points: The steps behind it as they were done, from where they began to the last one: what came after it was no work.
    """

    base_step: int
    points: tuple[Point, ...]

    @property
    def steps(self) -> int:
        """How many were lost."""
        return max(step for _, step in self.points) - self.base_step


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One task.

    Attributes:
        executed: For each life, the steps of rank 0 as they were done, from the step it went on from.
        durable: The newest sound checkpoint from each moment on.
        is_surveyed: Whether storage itself told what is durable; else it is what the job acknowledged.
        losses: Work that was done again.
        final_step: The step at which the job is complete; 0: unknown.
        begin_s, end_s: When the task began and ended.
    """

    task: int
    executed: tuple[tuple[Point, ...], ...]
    durable: tuple[Point, ...]
    is_surveyed: bool
    losses: tuple[Loss, ...]
    final_step: int
    begin_s: float
    end_s: float

    @cached_property
    def top_step(self) -> int:
        """The highest step there is to draw."""
        highest = [step for points in (*self.executed, self.durable) for _, step in points]
        return max([*highest, self.final_step, 1])


def progress_of(lineage: Lineage, task: int, *, steps: int) -> Progress:
    """Follow a task; ``steps`` is the final step as the scenario says it, 0 where it does not."""
    lives = lineage.incarnations_of(task)
    attempts = lineage.attempts_of(task)
    told = steps or max((event.steps for life in lives for event in life.of_type(Started)), default=0)
    is_surveyed = any(isinstance(event, CheckpointsSeen) and event.task == task for event in lineage.events)
    ends = [attempt.exit.t_s for attempt in attempts if attempt.exit is not None]
    words = [event.t_s for life in lives for event in life.events]
    return Progress(
        task=task,
        executed=tuple(line for life in lives if (line := _executed(life))),
        durable=tuple(_durable(lineage, task) if is_surveyed else _acknowledged(lives)),
        is_surveyed=is_surveyed,
        losses=tuple(_losses(lineage, task)),
        final_step=told,
        begin_s=min((attempt.started_s for attempt in attempts), default=0.0),
        end_s=max([*ends, *words], default=0.0),
    )


def _executed(life: Incarnation) -> tuple[Point, ...]:
    if life.restored_step is None:
        return ()
    start_s = life.started.t_s if life.started is not None else life.began_s
    return ((start_s, life.restored_step), *((step.t_s, step.step) for step in life.steps))


def _durable(lineage: Lineage, task: int) -> Iterator[Point]:
    """Each change of the newest sound checkpoint, as surveys showed it; a rise is dated back to the acknowledgement that it confirms."""
    acknowledged_s: dict[int, list[float]] = defaultdict(list)
    for life in lineage.incarnations_of(task):
        for event in life.saves_ended:
            acknowledged_s[event.step].append(event.t_s)
    shelf = _Shelf()
    last_s, last_step = float("-inf"), 0
    for survey in lineage.surveys(task):
        shelf.take(survey)
        t_s = survey.seen.t_s
        if shelf.newest not in (last_step, -1):
            confirmed_s = [end_s for end_s in acknowledged_s[shelf.newest] if last_s < end_s <= t_s]
            yield (max(confirmed_s) if shelf.newest > last_step and confirmed_s else t_s), shelf.newest
            last_step = shelf.newest
        last_s = t_s


@dataclass(slots=True)
class _Shelf:
    """The newest sound checkpoint, kept up to date without going through all of them at each look.

    Attributes:
        newest: Its step; 0 when there is none; -1 when something sound is there and nothing says of which step.
    """

    newest: int = 0
    _sound: set[int] = field(default_factory=set)

    def take(self, survey: Survey) -> None:
        """Take in a survey."""
        if survey.seen.is_whole:
            self._sound = {step for step, stored in survey.held.items() if stored.is_sound}
            self.newest = max(self._sound, default=0)
            return
        for step in (checkpoint.step for checkpoint in survey.seen.checkpoints):
            if survey.held[step].is_sound:
                self._sound.add(step)
                self.newest = step if len(self._sound) == 1 else max(self.newest, step)
            elif step in self._sound:
                self._sound.remove(step)
                self.newest = max(self._sound, default=0)


def _acknowledged(lives: tuple[Incarnation, ...]) -> Iterator[Point]:
    highest = 0
    for event in sorted((event for life in lives for event in life.saves_ended), key=lambda event: event.t_s):
        if event.step > highest:
            highest = event.step
            yield event.t_s, event.step


def _losses(lineage: Lineage, task: int) -> Iterator[Loss]:
    lives = lineage.incarnations_of(task)
    cuts = cuts_of(lives)
    for life in lives:
        base = cuts[life.number]
        lost = [(step.t_s, step.step) for step in life.steps if base >= 0 and step.step > base]
        if not lost or life.restored_step is None:
            continue
        kept_s = [step.t_s for step in life.steps if step.step <= base and step.t_s <= lost[0][0]]
        begin_s = max([*kept_s, life.started.t_s if life.started is not None else life.began_s])
        first = (min(begin_s, lost[0][0]), max(base, life.restored_step))
        yield Loss(base_step=base, points=(first, *lost))
