"""A history read as lives of the job: which attempt trained what, from which checkpoint, and what of it was retained.

An *incarnation* is one life of the job's processes, from their first word to their end. On Cloud Run it is an attempt; a Ray job
restarts its workers inside one attempt, so an attempt may hold several. The *effective lineage* of a task cuts each incarnation at the
step from which its successor resumed: what remains is the training that counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Booted,
    CheckpointsSeen,
    Done,
    Event,
    JobEvent,
    LogLine,
    Restored,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of the job.

    Attributes:
        task, attempt: Where.
        number: Its place among the incarnations of the task, from 0.
        events: Everything its processes said, by time.
        began_s: When the attempt started, or for a later life inside one attempt when its first process spoke.
        ended_s: When the attempt's end was seen, or the next life inside the attempt began; None while it ran on to the end of the history.
        exit: The end of the attempt; None for a life that another one followed inside the same attempt, or that never ended.
    """

    task: int
    attempt: int
    number: int
    events: tuple[JobEvent, ...]
    began_s: float
    ended_s: float | None
    exit: AttemptExited | None

    def of_type(self, kind: type[JobEvent], *, rank: int | None = None) -> tuple[JobEvent, ...]:
        """Its events of one type, of one rank or of all."""
        return tuple(event for event in self.events if isinstance(event, kind) and rank in (None, event.rank))

    @property
    def steps(self) -> tuple[StepDone, ...]:
        """Steps of rank 0, in the order done."""
        return tuple(event for event in self.events if isinstance(event, StepDone) and event.rank == 0)

    @property
    def restores(self) -> tuple[Restored, ...]:
        """Checkpoints that it loaded, of all ranks."""
        return tuple(event for event in self.events if isinstance(event, Restored))

    @property
    def saves_begun(self) -> tuple[SaveBegun, ...]:
        """Saves that it decided."""
        return tuple(event for event in self.events if isinstance(event, SaveBegun))

    @property
    def saves_ended(self) -> tuple[SaveEnded, ...]:
        """Saves that it acknowledged."""
        return tuple(event for event in self.events if isinstance(event, SaveEnded))

    @property
    def started(self) -> Started | None:
        """When rank 0 was ready to train."""
        return next((event for event in self.events if isinstance(event, Started) and event.rank == 0), None)

    @property
    def done(self) -> Done | None:
        """When it held itself to be complete."""
        return next((event for event in self.events if isinstance(event, Done) and event.rank == 0), None)

    @property
    def sigterm_seen(self) -> SigtermSeen | None:
        """When the first of its ranks noticed SIGTERM."""
        return next((event for event in self.events if isinstance(event, SigtermSeen)), None)

    @property
    def restored_step(self) -> int | None:
        """The step it resumed from, 0 from scratch; inferred from its first step where it did not say; None: it never trained."""
        if self.started is not None:
            return self.started.restored_step
        return self.steps[0].step - 1 if self.steps else None

    def last_step(self, before_s: float | None = None) -> int:
        """The highest step that it had executed (by a moment); its restored step when it executed none; 0 when it did nothing."""
        done = [event.step for event in self.steps if before_s is None or event.t_s <= before_s]
        return max(done, default=self.restored_step or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a task, as the platform sees it."""

    task: int
    number: int
    started_s: float
    exit: AttemptExited | None
    abandoned_s: float | None
    signals: tuple[SignalSent, ...]
    logs: tuple[LogLine, ...]
    incarnations: tuple[Incarnation, ...]

    def sigterm(self) -> SignalSent | None:
        """The first SIGTERM that the platform sent to it."""
        return next((signal for signal in self.signals if signal.signal == "SIGTERM"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """What was last seen of a checkpoint on storage.

    Attributes:
        step: Its step.
        state: ``committed``, ``incomplete`` or ``temporary``.
        digest: Its content as last seen.
        committed_digest: Its content when it was first seen committed; empty when it never was.
        is_latest: Whether the layout offers it to the next restore.
    """

    step: int
    state: str
    digest: str
    committed_digest: str
    is_latest: bool

    @property
    def is_sound(self) -> bool:
        """Committed, and unchanged since it was."""
        return self.state == "committed" and self.digest == self.committed_digest


@dataclass(frozen=True)
class Lineage:
    """The lives of a job's tasks; made by ``trace``."""

    events: tuple[Event, ...]
    attempts: tuple[Attempt, ...] = field(default=())

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

    def retained_steps(self, task: int) -> tuple[StepDone, ...]:
        """The effective lineage: each step in the incarnation whose work was kept, in order of execution."""
        kept: list[StepDone] = []
        for life in self.incarnations_of(task):
            if life.restored_step is not None:
                kept = [step for step in kept if step.step <= life.restored_step]
            kept.extend(life.steps)
        return tuple(kept)

    def successors(self, task: int) -> tuple[tuple[Incarnation, Incarnation], ...]:
        """Each incarnation with the next one that got so far as to train."""
        trained = [life for life in self.incarnations_of(task) if life.restored_step is not None]
        return tuple(zip(trained, trained[1:], strict=False))

    def storage_before(self, task: int, t_s: float) -> dict[int, StoredStep]:
        """What storage held for a task at a moment, by step, from the surveys up to it; empty when none was made."""
        held: dict[int, StoredStep] = {}
        first_digest: dict[int, str] = {}
        for seen in self._surveys.get(task, ()):
            if seen.t_s > t_s:
                break
            if seen.is_whole:
                held = {}
            for checkpoint in seen.checkpoints:
                if checkpoint.state == "committed" and checkpoint.digest:
                    if seen.occasion == "save-end":
                        first_digest[checkpoint.step] = checkpoint.digest
                    else:
                        first_digest.setdefault(checkpoint.step, checkpoint.digest)
                held[checkpoint.step] = StoredStep(
                    step=checkpoint.step,
                    state=checkpoint.state,
                    digest=checkpoint.digest,
                    committed_digest=first_digest.get(checkpoint.step, ""),
                    is_latest=checkpoint.is_latest,
                )
        return held

    def newest_sound_step(self, task: int, t_s: float) -> int | None:
        """The newest step on storage at a moment that is committed and unchanged; 0 when there is none; None when storage was never surveyed."""
        if not any(seen.t_s <= t_s for seen in self._surveys.get(task, ())):
            return None
        return max((stored.step for stored in self.storage_before(task, t_s).values() if stored.is_sound), default=0)

    @cached_property
    def _surveys(self) -> dict[int, list[CheckpointsSeen]]:
        surveys: dict[int, list[CheckpointsSeen]] = defaultdict(list)
        for event in self.events:
            if isinstance(event, CheckpointsSeen):
                surveys[event.task].append(event)
        return surveys


def trace(events: Iterable[Event]) -> Lineage:
    """Read a history as lives of the job."""
    everything = tuple(events)
    places: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in everything:
        if isinstance(event, JobEvent | AttemptStarted | AttemptExited | AttemptAbandoned | SignalSent | LogLine):
            places[event.task, event.attempt].append(event)
    attempts: list[Attempt] = []
    lives: dict[int, int] = defaultdict(int)
    for task, number in sorted(places):
        attempt = _attempt(task, number, places[task, number], first_number=lives[task])
        lives[task] += len(attempt.incarnations)
        attempts.append(attempt)
    return Lineage(events=everything, attempts=tuple(attempts))


def _attempt(task: int, number: int, events: Sequence[Event], *, first_number: int) -> Attempt:
    end = next((event for event in events if isinstance(event, AttemptExited)), None)
    started_s = next((event.t_s for event in events if isinstance(event, AttemptStarted)), events[0].t_s)
    spoken = sorted((event for event in events if isinstance(event, JobEvent)), key=lambda event: event.t_s)
    return Attempt(
        task=task,
        number=number,
        started_s=started_s,
        exit=end,
        abandoned_s=next((event.t_s for event in events if isinstance(event, AttemptAbandoned)), None),
        signals=tuple(event for event in events if isinstance(event, SignalSent)),
        logs=tuple(event for event in events if isinstance(event, LogLine)),
        incarnations=_incarnations(task, number, spoken, started_s=started_s, end=end, first_number=first_number),
    )


def _incarnations(
    task: int, attempt: int, spoken: Sequence[JobEvent], *, started_s: float, end: AttemptExited | None, first_number: int
) -> tuple[Incarnation, ...]:
    """Split what an attempt said into lives: a rank's second ``boot``, or a second ``start`` without one, opens its next life."""
    lives: list[list[JobEvent]] = []
    life_of_rank: dict[int, int] = {}
    has_started: set[tuple[int, int]] = set()
    for event in spoken:
        life = life_of_rank.get(event.rank, -1)
        opens = isinstance(event, Booted) or (isinstance(event, Started) and (event.rank, life) in has_started)
        if opens or life < 0:
            life = life_of_rank[event.rank] = life + 1
        if isinstance(event, Started):
            has_started.add((event.rank, life))
        while len(lives) <= life:
            lives.append([])
        lives[life].append(event)
    if not lives:
        lives = [[]]
    begins = [started_s] + [life[0].t_s for life in lives[1:]]
    return tuple(
        Incarnation(
            task=task,
            attempt=attempt,
            number=first_number + index,
            events=tuple(life),
            began_s=begins[index],
            ended_s=begins[index + 1] if index + 1 < len(lives) else (end.t_s if end else None),
            exit=end if index + 1 == len(lives) else None,
        )
        for index, life in enumerate(lives)
    )
