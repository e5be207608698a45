"""Lives of the job: what one attempt's processes said, cut where they were started anew.

An *incarnation* is one life of the job's processes, from their first word to their end. On Cloud Run it is an attempt; a Ray job
restarts its workers inside one attempt, so an attempt may hold several.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import TypeVar, cast

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Booted,
    Cause,
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

WITH_GRACE = frozenset({"fault", "timeout", "cancel", "platform"})
"""Causes of a SIGTERM that comes with the platform's grace."""

Said = TypeVar("Said", bound=JobEvent)


@dataclass(frozen=True, kw_only=True)
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

    def of_type(self, kind: type[Said], *, rank: int | None = None) -> tuple[Said, ...]:
        """Its events of exactly one type, of one rank or of all."""
        found = cast("tuple[Said, ...]", self._by_type.get(kind, ()))
        return found if rank is None else tuple(event for event in found if event.rank == rank)

    @cached_property
    def _by_type(self) -> Mapping[type[JobEvent], tuple[JobEvent, ...]]:
        by_type: dict[type[JobEvent], list[JobEvent]] = defaultdict(list)
        for event in self.events:
            by_type[type(event)].append(event)
        return {kind: tuple(events) for kind, events in by_type.items()}

    @cached_property
    def steps(self) -> tuple[StepDone, ...]:
        """Steps of rank 0, in the order done."""
        return self.of_type(StepDone, rank=0)

    def steps_of(self, rank: int) -> tuple[StepDone, ...]:
        """Steps of a rank, in the order done."""
        return self.steps if rank == 0 else self.of_type(StepDone, rank=rank)

    @property
    def all_steps(self) -> tuple[StepDone, ...]:
        """Steps of all ranks, in the order done."""
        return self.of_type(StepDone)

    @property
    def restores(self) -> tuple[Restored, ...]:
        """Checkpoints that it loaded, of all ranks."""
        return self.of_type(Restored)

    @property
    def saves_begun(self) -> tuple[SaveBegun, ...]:
        """Saves that it decided."""
        return self.of_type(SaveBegun)

    @property
    def saves_ended(self) -> tuple[SaveEnded, ...]:
        """Saves that it acknowledged."""
        return self.of_type(SaveEnded)

    @property
    def started(self) -> Started | None:
        """When rank 0 was ready to train."""
        return next(iter(self.of_type(Started, rank=0)), None)

    @property
    def done(self) -> Done | None:
        """When it held itself to be complete: in the log that a silent job's hosts share, when the last of them did."""
        return next(reversed(self.of_type(Done, rank=0)), None)

    @property
    def sigterm_seen(self) -> SigtermSeen | None:
        """When the first of its ranks noticed SIGTERM."""
        return next(iter(self.of_type(SigtermSeen)), None)

    @cached_property
    def restored_step(self) -> int | None:
        """The step it went on from, 0 from scratch; inferred from its first step where it did not say; None: it never trained."""
        if self.started is not None:
            return self.started.restored_step
        return self.steps[0].step - 1 if self.steps else None

    def last_step(self, before_s: float | None = None) -> int:
        """The highest step that it had executed (by a moment); its restored step when it executed none; 0 when it did nothing."""
        done = [event.step for event in self.steps if before_s is None or event.t_s <= before_s]
        return max(done, default=self.restored_step or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The SIGTERM to a whole attempt that a grace period follows; ``grace_s`` None: the one that the execution was granted."""

    t_s: float
    cause: Cause
    grace_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a task, as the platform sees it; ``of_pods`` is the notice that its pods got, where it runs in pods."""

    task: int
    number: int
    started_s: float
    exit: AttemptExited | None
    abandoned_s: float | None
    signals: tuple[SignalSent, ...]
    logs: tuple[LogLine, ...]
    incarnations: tuple[Incarnation, ...]
    of_pods: Notice | None = None

    def notice(self) -> Notice | None:
        """The first SIGTERM to the whole of it that a grace period followed: ``stop`` is ours and ends the run."""
        whole = (signal for signal in self.signals if signal.signal == "SIGTERM" and signal.rank < 0)
        sent = next((signal for signal in whole if signal.cause in WITH_GRACE), None)
        return self.of_pods if sent is None else Notice(t_s=sent.t_s, cause=sent.cause)

    def sigterm(self) -> SignalSent | None:
        """The first SIGTERM that the platform sent to it."""
        return next((signal for signal in self.signals if signal.signal == "SIGTERM"), None)

    def is_alive_at(self, t_s: float) -> bool:
        """Whether its first process ran at a moment."""
        return self.started_s <= t_s and (self.exit is None or self.exit.t_s > t_s)


def read_attempt(
    task: int, number: int, spoken: Sequence[JobEvent], seen: Sequence[Event], *, first_life: int, of_pods: Notice | None = None
) -> Attempt:
    """Put together one attempt from what it said and what else was seen of it; its lives are numbered from ``first_life``."""
    end = next((event for event in seen if isinstance(event, AttemptExited)), None)
    started_s = next(
        (event.t_s for event in seen if isinstance(event, AttemptStarted)), min(event.t_s for event in (*spoken[:1], *seen[:1]))
    )
    heard = _Lives().hear(sorted(spoken, key=attrgetter("t_s"))) or [[]]
    begins = [started_s] + [life[0].t_s for life in heard[1:]]
    incarnations = tuple(
        Incarnation(
            task=task,
            attempt=number,
            number=first_life + index,
            events=tuple(life),
            began_s=begins[index],
            ended_s=begins[index + 1] if index + 1 < len(heard) else (end.t_s if end else None),
            exit=end if index + 1 == len(heard) else None,
        )
        for index, life in enumerate(heard)
    )
    return Attempt(
        task=task,
        number=number,
        started_s=started_s,
        exit=end,
        abandoned_s=next((event.t_s for event in seen if isinstance(event, AttemptAbandoned)), None),
        signals=tuple(event for event in seen if isinstance(event, SignalSent)),
        logs=tuple(event for event in seen if isinstance(event, LogLine)),
        incarnations=incarnations,
        of_pods=of_pods if of_pods is not None and end is not None and _came_in_time(of_pods, end, spoken) else None,
    )


def _came_in_time(notice: Notice, end: AttemptExited, spoken: Sequence[JobEvent]) -> bool:
    """Whether the pods of an attempt were told to go while it ran: when a job is done its pods are taken away like any others."""
    done_s = min((event.t_s for event in spoken if isinstance(event, Done)), default=end.t_s)
    return end.cause != "stop" and notice.t_s <= min(done_s, end.t_s)


_OPENING = (Booted, Started)


@dataclass(slots=True)
class _Lives:
    """Splits what an attempt said into lives.

    A rank's second ``boot``, or a second ``start`` without one, opens the next life. The other ranks join it by their own: so one that died
    before it could speak in a life is not counted into the wrong one from then on. A process that lives on beside its successor, as the
    container of a pod that the platform holds for gone, stays in its own life.
    """

    _events: list[list[JobEvent]] = field(default_factory=list)
    _life_of_rank: dict[int, int] = field(default_factory=dict)
    _life_of_process: dict[tuple[int, int], int] = field(default_factory=dict)
    _opened: set[tuple[str, int, int]] = field(default_factory=set)

    def hear(self, events: Sequence[JobEvent]) -> list[list[JobEvent]]:
        """Add each event to the life it belongs to; returns the lives."""
        openings = [(type(event), event.rank) for event in events if isinstance(event, _OPENING)]
        if len(set(openings)) == len(openings):
            return [list(events)] if events else []  # nobody was started twice
        for event in events:
            life = self._known_life(event)
            if life is None or isinstance(event, _OPENING):
                life = self._place(event, life)
            self._events[life].append(event)
        return self._events

    def _known_life(self, event: JobEvent) -> int | None:
        """The life that its process has opened or joined, else the one that its rank is in."""
        of_process = self._life_of_process.get((event.rank, event.pid)) if event.pid else None
        return self._life_of_rank.get(event.rank) if of_process is None else of_process

    def _place(self, event: JobEvent, known: int | None) -> int:
        """The life of an event that is a rank's first word or may open a life."""
        newest = max(len(self._events) - 1, 0)
        life = newest if known is None else known
        if isinstance(event, Booted):
            life = self._join("boot", event.rank, newest)
        elif isinstance(event, Started):
            life = self._join("start", event.rank, life)
        self._life_of_rank[event.rank] = max(life, self._life_of_rank.get(event.rank, 0))
        if isinstance(event, _OPENING):
            self._life_of_process[event.rank, event.pid] = life
        while len(self._events) <= life:
            self._events.append([])
        return life

    def _join(self, word: str, rank: int, life: int) -> int:
        """The life that a rank opens or joins with a word: ``life``, or where it has said that there, the newest in which it has not."""
        if (word, rank, life) in self._opened:
            newest = len(self._events) - 1
            life = newest if (word, rank, newest) not in self._opened else newest + 1
        self._opened.add((word, rank, life))
        return life
