"""The history: the ordered record of a run, one event a line, from which everything is judged.

An event says what was seen, never what was hoped. Writing and judging are apart: ``harness check`` judges a history that was
written long ago. A process killed while it appends leaves at most one torn line at the end, which reading tolerates and reports.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from harness.errors import HistoryCorruptError, StoreError

SCHEMA_VERSION = 1
"""Raised when an old reader would misread a new history."""

Cause = Literal["job", "fault", "timeout", "cancel", "grace", "stop", "platform"]
"""Who is behind a signal or an exit: the job itself, an injection, the per-attempt timeout, a cancel, the end of the grace period,
the harness ending the run, or the platform for a reason of its own."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    """Something that was seen.

    Attributes:
        t_s: Seconds since the run was opened, on the machine's monotonic clock. For an event of the job it is when the job wrote it.
    """

    t_s: float


class Located(Event, kw_only=True, frozen=True, gc=False):
    """An event of one attempt of one task. ``attempt`` counts from 0, as ``CLOUD_RUN_TASK_ATTEMPT`` does."""

    task: int = 0
    attempt: int = 0


# ---- the run ---------------------------------------------------------------------------------------------------------


class RunOpened(Event, frozen=True, kw_only=True, tag="run.opened"):
    """The header of a history."""

    schema: int
    run_id: str
    scenario: str
    target: str
    seed: int
    opened_at: str
    commit: str = ""
    argv: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class RunClosed(Event, frozen=True, kw_only=True, tag="run.closed"):
    """Why the loop ended: the execution finished, the deadline passed, a hang was called, or the run was interrupted or broke."""

    reason: Literal["finished", "deadline", "hang", "interrupted", "error"]
    detail: str = ""


class GoldenKnown(Event, frozen=True, kw_only=True, tag="golden"):
    """What the uninterrupted runs of the same workload said: whether two of them were equal, and where they differed."""

    key: str
    equal: bool
    detail: str = ""


class ObservationLost(Event, frozen=True, kw_only=True, tag="observation.lost"):
    """Something was not recorded (a limit, garbage, an unreadable file): what depends on it is unknown."""

    what: Literal["events", "logs", "checkpoints"]
    count: int
    detail: str


# ---- the platform ----------------------------------------------------------------------------------------------------


class ExecutionStarted(Event, frozen=True, kw_only=True, tag="execution.started"):
    """An execution of the job began. Times in seconds."""

    execution: str
    tasks: int
    max_retries: int
    timeout_s: float
    grace_s: float


class AttemptStarted(Located, frozen=True, kw_only=True, tag="attempt.started"):
    """An attempt's first process runs."""

    pid: int


class SignalSent(Located, frozen=True, kw_only=True, tag="signal.sent"):
    """A signal was delivered; ``rank`` -1 means the whole attempt."""

    signal: str
    cause: Cause
    pids: tuple[int, ...]
    rank: int = -1


class AttemptExited(Located, frozen=True, kw_only=True, tag="attempt.exited"):
    """The attempt's first process has been waited for; exactly one of ``exit_code`` and ``signal`` is set.

    Attributes:
        cause: Who ended it, by what the platform did before: not a guess from the code.
        leftovers: Processes of the attempt that outlived the first one and were killed.
        retried: Whether the platform will start another attempt.
    """

    exit_code: int | None = None
    signal: int | None = None
    cause: Cause = "job"
    leftovers: int = 0
    retried: bool = False


class AttemptAbandoned(Located, frozen=True, kw_only=True, tag="attempt.abandoned"):
    """The platform holds the attempt for dead and starts the next one although its processes still run."""


class TaskFinished(Event, frozen=True, kw_only=True, tag="task.finished"):
    """A task will not be tried again."""

    task: int
    succeeded: bool
    attempts: int
    detail: str = ""


class ExecutionFinished(Event, frozen=True, kw_only=True, tag="execution.finished"):
    """All tasks have ended."""

    succeeded: int
    failed: int
    cancelled: int
    retried: int


class LogLine(Located, frozen=True, kw_only=True, tag="log"):
    """One line as an operator sees it; ``system`` and ``audit`` lines are the platform's.

    ``is_redrawn``: a carriage return began or ended it, as in a progress bar, of which only some states are ever written.
    """

    stream: Literal["stdout", "stderr", "system", "audit"]
    text: str
    severity: str = "DEFAULT"
    reason: str = ""
    is_redrawn: bool = False

    def search(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        """Where it first matches, in its first ``SEARCHED_CHARACTERS_MAX`` characters."""
        return re.compile(pattern).search(self.text, 0, SEARCHED_CHARACTERS_MAX)


SEARCHED_CHARACTERS_MAX = 4096
"""What a person would call a line of a log; a pattern that backtracks is not let loose on the 256 KiB that a line may have."""


# ---- the job (workloads/protocol.md) ---------------------------------------------------------------------------------


class JobEvent(Located, kw_only=True, frozen=True, gc=False):
    """An event that the job wrote."""

    rank: int = 0
    pid: int = 0


class Booted(JobEvent, frozen=True, kw_only=True, tag="boot"):
    """A process of the job is up."""


class RestoreBegun(JobEvent, frozen=True, kw_only=True, tag="restore.begin"):
    """The job chose a checkpoint."""

    step: int


class Restored(JobEvent, frozen=True, kw_only=True, tag="restore"):
    """The job loaded a checkpoint; digests of the state in memory."""

    step: int
    digests: dict[str, str] = {}


class Started(JobEvent, frozen=True, kw_only=True, tag="start"):
    """The job is ready to train; ``restored_step`` 0 is from scratch, ``steps`` the final step (0: not said)."""

    restored_step: int
    steps: int = 0


class StepDone(JobEvent, frozen=True, kw_only=True, tag="step"):
    """A step was executed."""

    step: int
    batch_ids: tuple[int, ...] = ()
    digests: dict[str, str] = {}


class SaveBegun(JobEvent, frozen=True, kw_only=True, tag="save.begin"):
    """A save was decided; digests of the state in memory before anything is written."""

    step: int
    digests: dict[str, str] = {}


class SaveEnded(JobEvent, frozen=True, kw_only=True, tag="save.end"):
    """The job acknowledged a save as durable."""

    step: int
    digests: dict[str, str] = {}


class SigtermSeen(JobEvent, frozen=True, kw_only=True, tag="sigterm"):
    """The job noticed SIGTERM."""


class Done(JobEvent, frozen=True, kw_only=True, tag="done"):
    """The job holds itself to be complete."""

    step: int


class Marked(JobEvent, frozen=True, kw_only=True, tag="marker"):
    """A marker of the job's own; ``step`` -1 when it has none."""

    name: str
    step: int = -1


class BarrierReached(JobEvent, frozen=True, kw_only=True, tag="barrier"):
    """A process of the job waits before or after an armed event, until it is released or killed."""

    event: str
    when: Literal["before", "after"]
    step: int = -1


# ---- faults ----------------------------------------------------------------------------------------------------------


class FaultRequested(Located, frozen=True, kw_only=True, tag="fault.requested"):
    """An injection acted, or began to and then failed; nothing is known yet of its effect. ``rank`` -1 means the whole attempt."""

    injection: str
    fault: str
    rank: int = -1
    detail: str = ""


class FaultObserved(Located, frozen=True, kw_only=True, tag="fault.observed"):
    """The effect of an injection was seen: a wait status, a process state, a failed operation."""

    injection: str
    evidence: str


class FaultHealed(Located, frozen=True, kw_only=True, tag="fault.healed"):
    """An injection was undone, or had nothing left to undo."""

    injection: str
    evidence: str


class FaultFailed(Located, frozen=True, kw_only=True, tag="fault.failed"):
    """An injection could not act; after a ``fault.requested`` of its own it may have acted in part."""

    injection: str
    detail: str


# ---- artefacts and watchdogs -----------------------------------------------------------------------------------------


class CheckpointSeen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One checkpoint as found on storage.

    Attributes:
        step: The step that its name says; -1 when the name says none.
        path: Relative to the checkpoint directory.
        state: ``committed`` by the layout's own rule, ``incomplete`` under a final name, ``temporary`` under a temporary name.
        digest: Fingerprint of its files' paths, sizes and contents; empty when it could not be read.
        is_latest: Whether the layout's own rule offers it to the next restore.
    """

    step: int
    path: str
    state: Literal["committed", "incomplete", "temporary"]
    digest: str = ""
    files: int = 0
    size_bytes: int = 0
    is_latest: bool = False


class CheckpointsSeen(Located, frozen=True, kw_only=True, tag="checkpoints"):
    """What storage held at a moment; ``occasion`` says which. ``is_whole`` false: only the checkpoint just saved was looked at."""

    occasion: Literal["save-end", "attempt-end", "after-fault", "end"]
    checkpoints: tuple[CheckpointSeen, ...]
    is_whole: bool = True


class Inspected(Located, frozen=True, kw_only=True, tag="inspected"):
    """What the workload's own ``inspect`` command said of a copy of the checkpoint directory after an attempt; ``step`` -1: it failed."""

    step: int
    digests: dict[str, str] = {}
    detail: str = ""


class ResultSeen(Event, frozen=True, kw_only=True, tag="result"):
    """The workload's result file at the end of the run; ``sha256`` empty: it was not there."""

    path: str
    sha256: str = ""
    size_bytes: int = 0


class HangCalled(Located, frozen=True, kw_only=True, tag="hang"):
    """Our watchdog saw no progress for too long while processes were alive; ``ranks`` are the least advanced ones."""

    ranks: tuple[int, ...]
    quiet_s: float
    detail: str = ""


AnyEvent = (
    RunOpened
    | RunClosed
    | GoldenKnown
    | ObservationLost
    | ExecutionStarted
    | AttemptStarted
    | SignalSent
    | AttemptExited
    | AttemptAbandoned
    | TaskFinished
    | ExecutionFinished
    | LogLine
    | Booted
    | RestoreBegun
    | Restored
    | Started
    | StepDone
    | SaveBegun
    | SaveEnded
    | SigtermSeen
    | Done
    | Marked
    | BarrierReached
    | FaultRequested
    | FaultObserved
    | FaultHealed
    | FaultFailed
    | CheckpointsSeen
    | Inspected
    | ResultSeen
    | HangCalled
)


@dataclass(frozen=True, slots=True)
class History:
    """A history as read: its events in the order they were appended, and whether its last line was torn off by a kill."""

    events: tuple[Event, ...]
    is_torn: bool = False


class HistoryWriter:
    """Appends events to a file; what ``append`` returned from has left this process and survives its death.

    Raises:
        StoreError: When the file cannot be opened or written, for example on a full disk.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=path, attempted="open the history", reason=error.strerror or str(error)) from error

    def append(self, events: Iterable[Event]) -> None:
        """Append events with as few writes as the system allows; of those that do not fit, none is left half written."""
        data = self._encode(list(events))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, memoryview(data)[written:])
        except OSError as error:
            self._drop(written - (data.rfind(b"\n", 0, written) + 1))
            raise StoreError(path=self._path, attempted="append to the history", reason=error.strerror or str(error)) from error

    def _encode(self, events: Sequence[Event]) -> bytes:
        try:
            return self._encoder.encode_lines(events)
        except UnicodeEncodeError:  # a file name or an argument that is no UTF-8
            return self._encoder.encode_lines([_printable(msgspec.to_builtins(event)) for event in events])

    def _drop(self, size: int) -> None:
        """Take back the beginning of a line: what is appended once there is room again must not stand behind it."""
        if size:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - size)

    def close(self) -> None:
        """Make the history durable and close it."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise StoreError(path=self._path, attempted="make the history durable", reason=error.strerror or str(error)) from error
        finally:
            os.close(descriptor)


def _printable(value: object) -> object:
    """A value with a question mark for each byte that Python could not decode."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list | tuple) else value


READ_BYTES = 1 << 20
"""Read at once: some five thousand events. The bytes of a long history need not lie in memory beside the events made of them."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """What steps repeat, kept once: ranks, attempts and the uninterrupted run name the same states and samples.

    A long history with the uninterrupted run beside it takes a third of the memory, and equal states are found equal at once.

    Attributes:
        digests: By step, as they were said last.
        batches: Each by itself.
    """

    digests: dict[int, dict[str, str]] = field(default_factory=dict)
    batches: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def share(self, events: Iterable[Event]) -> None:
        """Let steps that were just read, and that nobody else has seen, hold the values seen before."""
        put = msgspec.structs.force_setattr
        for event in events:
            if type(event) is StepDone:
                known = self.digests.get(event.step)
                if known == event.digests:
                    put(event, "digests", known)
                else:
                    self.digests[event.step] = event.digests
                put(event, "batch_ids", self.batches.setdefault(event.batch_ids, event.batch_ids))


_DECODER = msgspec.json.Decoder(AnyEvent)


def open_regular(path: Path) -> io.FileIO:
    """Open a document, unless something else stands there: a FIFO that nobody writes would hold us up for ever.

    Raises:
        OSError: When it is no regular file, or not there.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return io.FileIO(descriptor)


def read_regular(path: Path) -> bytes:
    """The content of a document.

    Raises:
        OSError: As ``open_regular``.
    """
    with open_regular(path) as file:
        return file.readall()


def read_history(path: Path, *, repeated: Repeated | None = None) -> History:
    """Read a history; one that is read beside another shares ``repeated`` with it.

    Raises:
        StoreError: When the file cannot be read.
        HistoryCorruptError: When a line other than a torn last one is not an event; names the line.
    """
    known = Repeated() if repeated is None else repeated
    events: list[Event] = []
    unread: list[bytes] = []
    try:
        with open_regular(path) as file:
            while block := file.read(READ_BYTES):
                whole, newline, rest = block.rpartition(b"\n")
                if not newline:
                    unread.append(block)
                    continue
                found = _decode(b"".join([*unread, whole, newline]), path, first_line=len(events) + 1)
                known.share(found)
                events += found
                unread = [rest] if rest else []
    except OSError as error:
        raise StoreError(path=path, attempted="read the history", reason=error.strerror or str(error)) from error
    return History(events=tuple(events), is_torn=bool(unread))


def read_header(path: Path) -> RunOpened | None:
    """The first event of a history, whatever follows it; None where that is no header, or where there is no history."""
    try:
        with path.open("rb") as file:
            event = _DECODER.decode(file.readline())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return event if isinstance(event, RunOpened) else None


def _decode(lines: bytes, path: Path, *, first_line: int) -> list[Event]:
    """Decode whole lines at once; only where one is bad, look for it line by line."""
    try:
        events: list[Event] = list(_DECODER.decode_lines(lines))
    except (msgspec.MsgspecError, RecursionError):
        events = []
    if len(events) == lines.count(b"\n"):
        return events
    events = []
    for number, line in enumerate(lines[:-1].split(b"\n"), start=first_line):
        try:
            events.append(_DECODER.decode(line))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise HistoryCorruptError(path=path, line=number, reason=str(error)) from error
    return events
