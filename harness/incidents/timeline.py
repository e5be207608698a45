"""The time-line of an incident: its attempts as their entries tell them, and how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

from harness.history import AttemptExited, Done, Event, JobEvent, LogLine, Restored, SaveBegun, SaveEnded, SigtermSeen, Started, StepDone
from harness.incidents.entries import Entry
from harness.incidents.platform_texts import PlatformWord
from harness.incidents.sightings import Seen, UnknownEntries
from harness.incidents.timestamps import NANOSECONDS
from harness.incidents.words import JobWords

Kind = TypeVar("Kind", bound=Event)

PlatformName = Literal["cloud-run", "kubernetes"]

GRACE_S = 10.0
"""From SIGTERM to SIGKILL. Source: the guide for long GPU jobs (about 10 s); for other ends of jobs it is assumed, as the grace profiles of
``harness.scenario.platform`` say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What the entries say of what the platform grants; None: they do not."""

    tasks: int | None = None
    max_retries: int | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the platform says that all ended.

    Attributes:
        entry: Where it says so.
        succeeded, failed, cancelled, retried: Tasks, by what became of them; ``retried`` counts attempts.
        failed_tasks: Those of the failed that it names: it does not name all.
    """

    entry: Entry
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    retried: int = 0
    failed_tasks: frozenset[int] = frozenset()

    @property
    def is_success(self) -> bool:
        """Whether every task succeeded."""
        return self.succeeded > 0 and not self.failed and not self.cancelled


@dataclass(frozen=True, kw_only=True)
class AttemptStory:
    """One attempt of a task.

    Attributes:
        task, number: Which.
        seen: What its entries say, by time.
        platform: The first line of each kind in which the platform says why it ended.
    """

    task: int
    number: int
    seen: tuple[Seen, ...]
    platform: Mapping[PlatformWord, Entry] = field(default_factory=dict)

    def of_type(self, kind: type[Kind]) -> list[tuple[Kind, Entry]]:
        """Its events of a type, with their entries."""
        return [(each.event, each.entry) for each in self.seen if isinstance(each.event, kind)]

    @property
    def first(self) -> Entry:
        """Its first entry."""
        return self.seen[0].entry

    @property
    def last(self) -> Entry:
        """Its last one."""
        return self.seen[-1].entry

    @cached_property
    def exit(self) -> tuple[AttemptExited, Entry] | None:
        """How its container ended."""
        return next(iter(self.of_type(AttemptExited)), None)

    @property
    def succeeded(self) -> bool:
        """Whether it left with 0."""
        return self.exit is not None and self.exit[0].exit_code == 0

    @property
    def signal(self) -> int | None:
        """What killed it: a signal, or an exit code that stands for one, as of a shell that waited for the job."""
        if self.exit is None:
            return None
        number, code = self.exit[0].signal, self.exit[0].exit_code
        return number if number is not None else code - 128 if code is not None and 128 < code <= 192 else None

    @cached_property
    def sigterm(self) -> Entry | None:
        """Where the job says that it got SIGTERM."""
        return next((entry for _, entry in self.of_type(SigtermSeen)), None)

    @property
    def notice(self) -> Entry | None:
        """The word of SIGTERM: the job's, else the platform's, else its end, where SIGTERM ended a job that does not hear it."""
        if self.sigterm is not None:
            return self.sigterm
        told = [entry for entry in (self.platform.get("preempted"), self.platform.get("timed-out")) if entry is not None]
        if not told and self.exit is not None and self.signal == 15:
            told = [self.exit[1]]
        return min(told, key=lambda entry: entry.t_ns, default=None)

    @property
    def last_step(self) -> int | None:
        """The highest step that it says was done; None: it says of none."""
        return max((step.step for step, _ in self.of_type(StepDone)), default=None)

    @cached_property
    def tells_steps(self) -> bool:
        """Whether it tells of steps by themselves, and not only of those that it saved."""
        return any(entry not in self._implying for _, entry in self.of_type(StepDone))

    @cached_property
    def resumed(self) -> tuple[int, Entry] | None:
        """From which step it went on, 0 from scratch; what it says, else by its first step; None: nothing tells."""
        for each in self.seen:
            if isinstance(each.event, Restored):
                return each.event.step, each.entry
            if isinstance(each.event, Started):
                return each.event.restored_step, each.entry
            if isinstance(each.event, StepDone) and each.entry not in self._implying:
                return max(0, each.event.step - 1), each.entry
        return None

    @cached_property
    def _implying(self) -> list[Entry]:
        """Entries that say that a step was done by saying something else: what came before the first of them nobody knows."""
        return [each.entry for each in self.seen if isinstance(each.event, SaveBegun | SaveEnded | Done)]

    @property
    def has_known_end(self) -> bool:
        """Whether an entry that is understood says how or why it ended."""
        return self.exit is not None or bool(self.platform) or self.sigterm is not None

    @property
    def says_how_it_resumed(self) -> bool:
        """Whether that is its own word."""
        return any(isinstance(each.event, Restored | Started) for each in self.seen)

    @cached_property
    def done(self) -> Entry | None:
        """Where it says that it is complete."""
        return next((entry for _, entry in self.of_type(Done)), None)

    @property
    def speaks(self) -> bool:
        """Whether it says anything of its training."""
        return any(isinstance(each.event, JobEvent) for each in self.seen)

    def saves_begun(self) -> list[tuple[int, Entry]]:
        """Saves that it says have begun."""
        return [(save.step, entry) for save, entry in self.of_type(SaveBegun)]

    def saves_ended(self) -> list[tuple[int, Entry]]:
        """Saves that it says have ended."""
        return [(save.step, entry) for save, entry in self.of_type(SaveEnded)]

    def lines(self) -> list[tuple[LogLine, Entry]]:
        """Its log."""
        return self.of_type(LogLine)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """One execution, or one job of a cluster.

    Attributes:
        platform: Where it ran.
        name: The execution, or the job as ``kind/name``.
        job: The job's name.
        epoch_ns: Zero of the history: its first entry.
        export_end_ns: The last entry of the export, whatever it is about: how long somebody has looked.
        seen: All events, by time.
        attempts: By task and number.
        granted: What the platform grants, as far as it is told.
        ending: How the platform says it ended; None where it does not.
        cancel_asked: Where somebody asked to cancel it.
        words: How the job's log was read.
        unknown: Entries that nothing was read from.
        entry_count: Those that belong to it.
        unplaced_count: Parts of the export that may be its own, and nothing tells: what is no entry, or names no execution, no attempt;
            what stands there twice counts once.
    """

    platform: PlatformName
    name: str
    job: str
    epoch_ns: int
    export_end_ns: int
    seen: tuple[Seen, ...]
    attempts: tuple[AttemptStory, ...]
    granted: Granted = Granted()
    ending: Ending | None = None
    cancel_asked: Entry | None = None
    words: JobWords
    unknown: UnknownEntries
    entry_count: int
    unplaced_count: int = 0

    def t_s(self, entry: Entry) -> float:
        """A moment in seconds of the history."""
        return (entry.t_ns - self.epoch_ns) / NANOSECONDS

    @cached_property
    def tasks(self) -> Mapping[int, Sequence[AttemptStory]]:
        """The attempts of each task."""
        return {task: [story for story in self.attempts if story.task == task] for task in sorted({each.task for each in self.attempts})}

    @property
    def speaks(self) -> bool:
        """Whether the job says anything of its training."""
        return any(story.speaks for story in self.attempts)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cancelled it."""
        return was_cancelled(self.cancel_asked, self.ending)

    def looked_on_s(self, entry: Entry) -> float:
        """How long the export goes on after a moment."""
        return (self.export_end_ns - entry.t_ns) / NANOSECONDS


def was_cancelled(asked: Entry | None, ending: Ending | None) -> bool:
    """Whether an execution was cancelled: one that completed was not, though somebody asked for it too late."""
    if ending is not None and (ending.cancelled or ending.is_success):
        return ending.cancelled > 0
    return asked is not None
