"""The lineage of a run: lives in their order, the training that was retained, and storage beside it.

The *effective lineage* of a task cuts each incarnation at the step from which its successor resumed: what remains is the training that
counts.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Event,
    JobEvent,
    LogLine,
    NodeSeen,
    PodSeen,
    SignalSent,
    StepDone,
    SubmissionSeen,
    WorkloadSeen,
)
from harness.lineage.lives import Attempt, Incarnation, read_attempt
from harness.lineage.notices import notices_of_pods
from harness.lineage.queueing import Admission, Stay, by_task, read_admissions, read_stays
from harness.lineage.storage import STORAGE_EVENTS, Look, StorageEvent, StoredStep, Survey, follow, newest_sound, read_looks

Kind = TypeVar("Kind", bound=Event)

END_S = float("inf")
"""Later than everything in a history."""


@dataclass(frozen=True)
class Lineage:
    """The lives of a job's tasks; made by ``trace``."""

    events: tuple[Event, ...]
    attempts: tuple[Attempt, ...] = field(default=())

    def of_type(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """The events of exactly one type, in the order they were recorded."""
        return cast("tuple[Kind, ...]", self._by_type.get(kind, ()))

    @cached_property
    def _by_type(self) -> Mapping[type[Event], tuple[Event, ...]]:
        """Looked through once: many ask for the few events of one type among very many."""
        by_type: dict[type[Event], list[Event]] = defaultdict(list)
        for event in self.events:
            by_type[type(event)].append(event)
        return {kind: tuple(events) for kind, events in by_type.items()}

    @cached_property
    def tasks(self) -> tuple[int, ...]:
        """Indices of the tasks that were attempted."""
        return tuple(sorted({attempt.task for attempt in self.attempts}))

    def attempts_of(self, task: int) -> tuple[Attempt, ...]:
        """Attempts of a task in their order."""
        return tuple(attempt for attempt in self.attempts if attempt.task == task)

    def incarnations_of(self, task: int) -> tuple[Incarnation, ...]:
        """Lives of a task in their order."""
        return tuple(life for attempt in self.attempts_of(task) for life in attempt.incarnations)

    def retained_steps(self, task: int, rank: int = 0) -> tuple[StepDone, ...]:
        """The effective lineage of a rank: each step in the incarnation whose work was kept, in order of execution."""
        if (task, rank) not in self._retained:
            self._retained[task, rank] = tuple(self._retain(task, rank))
        return self._retained[task, rank]

    @cached_property
    def _retained(self) -> dict[tuple[int, int], tuple[StepDone, ...]]:
        """By task and rank, as they are asked for."""
        return {}

    def _retain(self, task: int, rank: int) -> Sequence[StepDone]:
        kept: list[StepDone] = []
        for life in self.incarnations_of(task):
            restored = life.restored_step
            if restored is not None:
                kept = [step for step in kept if step.step <= restored]
            kept.extend(life.steps_of(rank))
        return kept

    def stays_of(self, task: int) -> tuple[Stay, ...]:
        """What the workload of a task went through in the queue of a cluster; empty where none was seen."""
        return self._stays.get(task, ())

    def admissions_of(self, task: int) -> tuple[Admission, ...]:
        """Each time that the queue of a cluster let a task run."""
        submitted = (event.t_s for event in self.of_type(SubmissionSeen) if event.task == task)
        return tuple(read_admissions(self.stays_of(task), min(submitted, default=None)))

    @cached_property
    def _stays(self) -> Mapping[int, tuple[Stay, ...]]:
        return {task: read_stays(seen) for task, seen in by_task(self.of_type(WorkloadSeen)).items()}

    @cached_property
    def step_at(self) -> Mapping[tuple[int, int, int], StepDone]:
        """By task, rank and step: how a step was done, the last time it was."""
        lives = [life for attempt in self.attempts for life in attempt.incarnations]
        return {(step.task, step.rank, step.step): step for life in lives for step in life.all_steps}

    def surveys(self, task: int) -> Iterator[Survey]:
        """Surveys of a task's checkpoints in order of time, each with what storage held after it."""
        return follow(self._looks.get(task, ()))

    def is_quiet_at(self, task: int, t_s: float) -> bool:
        """Whether no attempt of a task ran at a moment: what storage held then, nobody was just changing."""
        return not any(attempt.is_alive_at(t_s) for attempt in self.attempts if attempt.task == task)

    def storage_before(self, task: int, t_s: float) -> Mapping[int, StoredStep]:
        """What storage held for a task at a moment, by step, from the surveys up to it; empty when none was made."""
        return {stored.step: stored for _, looked_at, _ in self._looks_before(task, t_s) for stored in looked_at}

    def newest_sound_step(self, task: int, t_s: float) -> int | None:
        """The newest step on storage at a moment that is committed and unchanged.

        0 when there is none; None when storage was never surveyed, or when nothing says of which steps its checkpoints are.
        """
        return newest_sound(self.storage_before(task, t_s)) if self._looks_before(task, t_s) else None

    def _looks_before(self, task: int, t_s: float) -> Sequence[Look]:
        """Looks up to a moment, from the last that saw everything on."""
        looks = self._looks.get(task, ())
        end = bisect_right(looks, t_s, key=lambda look: look[0].t_s)
        begin = next((index for index in range(end - 1, -1, -1) if looks[index][0].is_whole), 0)
        return looks[begin:end]

    @cached_property
    def _looks(self) -> Mapping[int, Sequence[Look]]:
        """By task, in order of time."""
        events: dict[int, list[StorageEvent]] = defaultdict(list)
        wanted = frozenset(STORAGE_EVENTS)
        for event in self.events:
            if type(event) in wanted:
                event = cast("StorageEvent", event)
                events[event.task].append(event)
        return {task: tuple(read_looks(sorted(of_task, key=lambda event: event.t_s))) for task, of_task in events.items()}


OUTPUT = ("stdout", "stderr")
"""Streams of the job's own words; the others are the platform's."""

_OF_AN_ATTEMPT = (LogLine, AttemptStarted, AttemptExited, AttemptAbandoned, SignalSent)


def trace(events: Iterable[Event]) -> Lineage:
    """Read a history as lives of the job; what the platform says before anything ran, as that it waits, is of no life."""
    everything = tuple(events)
    places: dict[tuple[int, int], list[Event]] = defaultdict(list)
    words: dict[tuple[int, int], list[JobEvent]] = defaultdict(list)
    for event in everything:
        if isinstance(event, JobEvent):
            words[event.task, event.attempt].append(event)
        elif isinstance(event, _OF_AN_ATTEMPT):
            places[event.task, event.attempt].append(event)
    attempts: list[Attempt] = []
    lives: dict[int, int] = defaultdict(int)
    notices = notices_of_pods(event for event in everything if isinstance(event, (PodSeen, NodeSeen)))
    lived = {place for place, seen in places.items() if any(not isinstance(event, LogLine) or event.stream in OUTPUT for event in seen)}
    for task, number in sorted(lived | words.keys()):
        of_pods = notices.get((task, number))
        attempt = read_attempt(task, number, words[task, number], places[task, number], first_life=lives[task], of_pods=of_pods)
        lives[task] += len(attempt.incarnations)
        attempts.append(attempt)
    return Lineage(events=everything, attempts=tuple(attempts))
