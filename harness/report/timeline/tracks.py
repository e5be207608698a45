"""What is to be drawn of each life of each rank, in seconds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from harness.history import (
    Done,
    FaultRequested,
    HangCalled,
    JobEvent,
    Marked,
    RestoreBegun,
    Restored,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    StepDone,
)
from harness.ledger import Ledger, Span
from harness.lineage import Attempt, Incarnation
from harness.report.record import Record

Said = TypeVar("Said", bound=JobEvent)

TRACKS_MAX = 24
"""Lanes of one picture: with more, nobody finds the one that matters."""


@dataclass(frozen=True, slots=True)
class Period:
    """From one word of the job to another; ``end_s`` None where the second was never said."""

    begin_s: float
    end_s: float | None
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One rank in one life.

    Attributes:
        attempt: The attempt it belongs to, whose beginning, signals and end the first of its lanes shows.
        life: None where the attempt's processes never spoke.
        rank: Which process.
        label, detail: What stands beside the lane: ``attempt 0``, ``rank 1``; the label only beside the first of an attempt.
        name: Who it is in full.
        is_first, is_last: Among the lanes of the attempt: by life for its end, by rank for its signals.
        cut: The step up to which its work was retained; -1: all of it.
        spans: What the time of rank 0 was.
    """

    attempt: Attempt
    life: Incarnation | None
    rank: int
    label: str
    detail: str
    name: str
    is_first: bool
    is_last: bool
    cut: int
    spans: tuple[Span, ...]

    @property
    def begin_s(self) -> float:
        """When it began."""
        return self.life.began_s if self.life is not None else self.attempt.started_s

    def end_s(self, otherwise_s: float) -> float:
        """When it ended, or the end of what was recorded."""
        ended_s = self.life.ended_s if self.life is not None else None
        if ended_s is None and self.attempt.exit is not None:
            ended_s = self.attempt.exit.t_s
        return max(self.begin_s, otherwise_s if ended_s is None else ended_s)

    def steps(self) -> tuple[StepDone, ...]:
        """Its steps in order of time."""
        return self.life.steps_of(self.rank) if self.life is not None else ()

    def is_lost(self, step: StepDone) -> bool:
        """Whether a later life went back behind the step."""
        return 0 <= self.cut < step.step

    def saves(self) -> tuple[Period, ...]:
        """Its saves, from the decision to the acknowledgement."""
        return tuple(_periods(self._said(SaveBegun), self._said(SaveEnded)))

    def restores(self) -> tuple[Period, ...]:
        """Checkpoints it loaded, from the choice to the loaded state."""
        return tuple(_periods(self._said(RestoreBegun), self._said(Restored)))

    def signals(self) -> tuple[SignalSent, ...]:
        """Signals that are its: of its rank, or of the whole attempt on the first lane."""
        ours = (-1, self.rank) if self.is_first else (self.rank,)
        return tuple(signal for signal in self.attempt.signals if signal.rank in ours and self._is_of_this_life(signal.t_s))

    def notices_seen(self) -> tuple[SigtermSeen, ...]:
        """When it noticed SIGTERM."""
        return self._said(SigtermSeen)

    def ends_said(self) -> tuple[Done, ...]:
        """When it held itself to be complete: in the log that a silent job's hosts share, when the last of them did."""
        return self._said(Done)[-1:]

    def markers(self) -> tuple[Marked, ...]:
        """Markers of its own."""
        return self._said(Marked)

    def _said(self, kind: type[Said]) -> tuple[Said, ...]:
        return self.life.of_type(kind, rank=self.rank) if self.life is not None else ()

    def _is_of_this_life(self, t_s: float) -> bool:
        lives = self.attempt.incarnations
        if self.life is None or len(lives) < 2:
            return True
        is_after_begin = self.life is lives[0] or t_s >= self.life.began_s
        return is_after_begin and (self.life is lives[-1] or self.life.ended_s is None or t_s < self.life.ended_s)


def tracks_of(record: Record) -> tuple[tuple[Track, ...], int]:
    """The lanes to draw, in order, and how many there is no room for.

    Where there are too many, those stay that a fault, a signal or a hang hit, then first ranks, then the rest in order.
    """
    everything = [track for attempt in record.lineage.attempts for track in _tracks(attempt, record)]
    if len(everything) <= TRACKS_MAX:
        return tuple(everything), 0
    hit = set(_hit(record))
    order = sorted(range(len(everything)), key=lambda index: (*_rank_of_interest(everything[index], hit), index))
    chosen = sorted(order[:TRACKS_MAX])
    return tuple(everything[index] for index in chosen), len(everything) - TRACKS_MAX


def cuts_of(lives: Iterable[Incarnation]) -> dict[int, int]:
    """For each life of a task the step up to which its work was retained (-1: all): no later life went back behind it."""
    cuts: dict[int, int] = {}
    lowest = -1
    for life in reversed(list(lives)):
        cuts[life.number] = lowest
        if life.restored_step is not None:
            lowest = life.restored_step if lowest < 0 else min(lowest, life.restored_step)
    return cuts


def _tracks(attempt: Attempt, record: Record) -> Iterator[Track]:
    lives = [life for life in attempt.incarnations if life.events]
    cuts = cuts_of(record.lineage.incarnations_of(attempt.task))
    places: list[tuple[Incarnation | None, int]] = [
        (life, rank) for life in lives for rank in sorted({event.rank for event in life.events})
    ]
    places = places or [(None, 0)]
    has_ranks = len({rank for _, rank in places}) > 1
    for index, (life, rank) in enumerate(places):
        whose = [f"task {attempt.task}", f"attempt {attempt.number}"] if len(record.lineage.tasks) > 1 else [f"attempt {attempt.number}"]
        details = [f"life {lives.index(life) + 1}"] if life is not None and len(lives) > 1 else []
        details += [f"rank {rank}"] if has_ranks else []
        yield Track(
            attempt=attempt,
            life=life,
            rank=rank,
            label=whose[0] if index == 0 else "",
            detail=" · ".join([*whose[1:], *details] if index == 0 else details),
            name=", ".join([*whose, *details]),
            is_first=index == 0 or life is not places[index - 1][0],
            is_last=index + 1 == len(places),
            cut=cuts.get(life.number, -1) if life is not None else -1,
            spans=_spans(record.ledgers, attempt, life) if rank == 0 else (),
        )


def _spans(ledgers: Iterable[Ledger], attempt: Attempt, life: Incarnation | None) -> tuple[Span, ...]:
    """What the ledger says of a life; of an attempt without words, all of it."""
    mine = [span for ledger in ledgers if ledger.task == attempt.task for span in ledger.spans if span.attempt == attempt.number]
    if life is None or len(attempt.incarnations) < 2:
        return tuple(span for span in mine if span.category != "requeue")
    end_s = life.ended_s if life.ended_s is not None else float("inf")
    return tuple(span for span in mine if span.category != "requeue" and life.began_s <= (span.begin_s + span.end_s) / 2 < end_s)


def _periods(begins: Iterable[SaveBegun | RestoreBegun], ends: Iterable[SaveEnded | Restored]) -> Iterator[Period]:
    """Each end with the latest beginning of its step before it; beginnings and ends that have no partner stand alone."""
    open_begins: dict[int, float] = {}
    words = sorted([*begins, *ends], key=lambda word: word.t_s)
    for word in words:
        if isinstance(word, SaveBegun | RestoreBegun):
            if word.step in open_begins:
                yield Period(open_begins[word.step], None, word.step)
            open_begins[word.step] = word.t_s
        else:
            yield Period(open_begins.pop(word.step, word.t_s), word.t_s, word.step)
    for step, begin_s in open_begins.items():
        yield Period(begin_s, None, step)


def _hit(record: Record) -> Iterator[tuple[int, int]]:
    """Tasks and attempts that something happened to."""
    for event in record.events:
        if isinstance(event, FaultRequested | SignalSent | HangCalled):
            yield event.task, event.attempt


def _rank_of_interest(track: Track, hit: set[tuple[int, int]]) -> tuple[bool, bool]:
    return (track.attempt.task, track.attempt.number) not in hit, track.rank != 0
