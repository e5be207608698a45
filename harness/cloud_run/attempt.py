"""One attempt as it runs: its processes, whatever they are held in, and everything they say."""

import contextlib
import selectors
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.capabilities import Launch
from harness.history import BarrierReached, Event, JobEvent, LogLine, ObservationLost, OperationReached
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.protocol.barrier import Barrier
from harness.protocol.event_file import EventFile
from harness.protocol.log_patterns import LogPatternReader
from harness.protocol.output import JobOutput

DRAIN_S_MAX = 10.0
"""After the exit: for killing what is left and reading what was said. A hundred megabytes of events take less than two."""


TRAINING_WORDS = frozenset({"boot", "restore.begin", "restore", "start", "step", "save.begin"})
"""Said by the process that trains. Other words of a rank may come from one that coordinates: a driver, a controller."""


class AttemptProcesses(Protocol):
    """The processes of one attempt, as a target holds them; they run from the moment this exists.

    Attributes:
        pid: The first process, by its id on this machine.
        returncode: How it ended, as ``subprocess`` writes it (a signal is negative); None until that is known.
        leftover_count: How many processes outlived it and were killed.
        exit_descriptor: Becomes readable when it ends; None where there is no such.
        end_round_s: Seconds between two looks at what is ending.
    """

    pid: int
    returncode: int | None
    leftover_count: int
    exit_descriptor: int | None
    end_round_s: float

    def poll(self) -> int | None:
        """Look whether the first process has ended, without blocking; returns ``returncode``."""
        ...

    def signal(self, number: int, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """Send a signal to the attempt, or to the one process that a rank named; returns who got it.

        Raises:
            LookupError: When there is nobody.
        """
        ...

    def kill(self, pids: Sequence[int]) -> tuple[int, ...]:
        """SIGKILL to some of the attempt's processes and to nobody else; returns who got it."""
        ...

    def find(self, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """The processes that are alive, the first one first; or the one that a rank named.

        Raises:
            LookupError: When there is nobody.
        """
        ...

    def state_of(self, pid: int) -> str | None:
        """``running``, ``stopped`` or ``gone``; None when this attempt knows no such process."""
        ...

    def sweep(self) -> bool:
        """Kill what has outlived the first process; whether all of it is gone. Called again until it says so."""
        ...

    def foreign_kill(self) -> "ForeignKill | None":
        """What was killed in the attempt neither by itself nor by us, where that can be told; known when all of it is gone."""
        ...

    def close(self) -> None:
        """Free what is held; nothing is asked of it any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKill:
    """Somebody else has killed: the kernel for want of memory, or whoever has a right to.

    Attributes:
        line: How the platform says it; empty: it does not.
        is_whole: Whether it ended the first process.
    """

    line: str
    is_whole: bool


class Stops(Protocol):
    """Where it is told that a process of the attempt is held at an operation; see ``OperationStops``."""

    def receive(self, now_s: float) -> list[OperationReached]:
        """Who is held since."""
        ...

    def resume(self, reached: OperationReached) -> None:
        """Let one go on; nothing happens when it is gone."""
        ...

    def close(self) -> None:
        """Let all go on, and hear no more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """Where an attempt speaks: its event file, its barrier, its stops, its output and what is read from that."""

    events: EventFile
    barrier: Barrier | None
    output: JobOutput
    patterns: LogPatternReader
    stops: Stops | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptParts:
    """What a target makes for an attempt.

    Attributes:
        processes: They run.
        voices: Where they speak.
        started_at_s: When they were about to run, on the monotonic clock: nothing that they say is older.
        belongings: What goes with the attempt: closed when it has ended and all it said has been read.
    """

    processes: AttemptProcesses
    voices: Voices
    started_at_s: float
    belongings: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Attempt:
    """An attempt from its start to the moment when nothing of it is left and all it said has been read.

    Attributes:
        key: Which attempt.
        processes: Its processes.
        started_at_s: When it was about to run, on the monotonic clock.
        exited_at_s: When its first process was seen to have ended, on the monotonic clock; None before.
        is_over: Whether it is dead and read to the end.
        is_behind: Whether there was more to read than the last look could take.
        message: The platform's line and its reason that the end of this attempt brings to the log.
    """

    def __init__(self, key: AttemptKey, launch: Launch, *, parts: AttemptParts, selector: selectors.BaseSelector) -> None:
        self.key = key
        self.processes = parts.processes
        self.started_at_s = parts.started_at_s
        self.exited_at_s: float | None = None
        self.is_over = self.is_behind = False
        self.message: tuple[str, str] | None = None
        self._epoch_s = launch.epoch_s
        self._voices = parts.voices
        self._belongings = parts.belongings
        self._rank_pids: dict[int, int] = {}
        self._held: list[BarrierReached | OperationReached] = []
        self._is_swept = False
        self._selector = selector
        self._watched: set[int] = set()
        self._watch()

    @property
    def is_dying(self) -> bool:
        """Whether its first process has ended while something is left to kill or to read."""
        return self.exited_at_s is not None and not self.is_over

    def look(self, now_s: float, budget_bytes: int) -> tuple[list[Sequence[Event]], list[BarrierReached | OperationReached]]:
        """Read what was said since, at most ``budget_bytes`` a source: streams each in their order, and who waits for us.

        Barriers and stops are asked before the file is read and told only once it is read to the end: what a job wrote before it came
        there stands before it in the history.
        """
        if self._voices.barrier is not None:
            self._held += self._voices.barrier.receive(now_s)
        if self._voices.stops is not None:
            self._held += self._voices.stops.receive(now_s)
        is_dead = self._look_at_processes(now_s)
        lines = self._voices.output.read(now_s - self._epoch_s, budget_bytes)
        events = self._voices.events.read(now_s, budget_bytes)
        for event in (*events, *self._held):
            if event.pid and (event.rank not in self._rank_pids or _trains(event)):
                self._rank_pids[event.rank] = event.pid
        self._watch()
        self.is_behind = not (self._voices.output.is_drained and self._voices.events.is_caught_up)
        self.is_over = is_dead and (not self.is_behind or self._is_late(now_s))
        return [self._with_patterns(lines), events], self._take_held()

    def finish(self, now_s: float) -> list[Event]:
        """Close everything; returns last lines without a newline and what was not recorded."""
        t_s = now_s - self._epoch_s
        self._watch(is_closing=True)
        lines, lost = self._voices.output.finish(t_s)
        lost += self._voices.events.finish(t_s)
        if self._voices.barrier is not None:
            self._voices.barrier.close()
            if self._voices.barrier.garbage_count:
                detail = "requests at the barrier that are no line of the protocol"
                lost.append(_lost_events(t_s, self._voices.barrier.garbage_count, detail))
        if self._voices.stops is not None:
            self._voices.stops.close()
        if not self._is_swept:
            lost.append(_lost_events(t_s, 1, f"processes of {self.key} withstood SIGKILL; what they do is not seen"))
        self.processes.close()
        self._belongings.close()
        return [*self._with_patterns(lines), *lost]

    def pid_of(self, rank: int) -> int:
        """The process id that a rank has said, true or not; ``WHOLE_ATTEMPT`` stays what it is.

        Raises:
            LookupError: When it has said none.
        """
        if rank == WHOLE_ATTEMPT:
            return WHOLE_ATTEMPT
        if rank not in self._rank_pids:
            raise LookupError(f"rank {rank} of task {self.key.task} attempt {self.key.attempt} has not said its process id")
        return self._rank_pids[rank]

    def release(self, reached: BarrierReached) -> None:
        """Let a process go on that waits at the barrier."""
        if self._voices.barrier is not None:
            self._voices.barrier.release(reached)

    def resume(self, reached: OperationReached) -> None:
        """Let a process go on that is held at an operation."""
        if self._voices.stops is not None:
            self._voices.stops.resume(reached)

    def _look_at_processes(self, now_s: float) -> bool:
        """Whether nothing of the attempt is alive any more, or what is left withstands SIGKILL."""
        if self.processes.poll() is None:
            return False
        if self.exited_at_s is None:
            self.exited_at_s = now_s
        self._is_swept = self._is_swept or self.processes.sweep()
        return self._is_swept or self._is_late(now_s)

    def _is_late(self, now_s: float) -> bool:
        return self.exited_at_s is not None and now_s >= self.exited_at_s + DRAIN_S_MAX

    def _take_held(self) -> list[BarrierReached | OperationReached]:
        if not self._voices.events.is_caught_up:
            return []
        held, self._held = self._held, []
        return held

    def _with_patterns(self, lines: Sequence[LogLine]) -> list[Event]:
        stream: list[Event] = []
        for line in lines:
            stream.append(line)
            stream += self._voices.patterns.read(line)
        return stream

    def _watch(self, *, is_closing: bool = False) -> None:
        """Let the selector wake for what can still bring something, and for nothing that is at its end: that would never let it sleep."""
        wanted = set() if is_closing else set(self._voices.output.open_descriptors)
        if self.processes.exit_descriptor is not None and self.exited_at_s is None and not is_closing:
            wanted.add(self.processes.exit_descriptor)
        for descriptor in self._watched - wanted:
            self._selector.unregister(descriptor)
        for descriptor in wanted - self._watched:
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._watched = wanted


def _trains(event: JobEvent | OperationReached) -> bool:
    if isinstance(event, OperationReached):
        return False  # it may be any process of the rank
    word = event.event if isinstance(event, BarrierReached) else str(event.__struct_config__.tag)
    return word in TRAINING_WORDS


def _lost_events(t_s: float, count: int, detail: str) -> ObservationLost:
    return ObservationLost(t_s=t_s, what="events", count=count, detail=detail)
