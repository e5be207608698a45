"""Histories on disk: appended while a run goes on, read when it is judged."""

import errno
import io
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.errors import HistoryCorruptError, StoreError
from harness.history.cluster import (
    ClusterEventSeen,
    ClusterLeft,
    NodeSeen,
    PodSeen,
    PoolScaled,
    ProvisioningSeen,
    SubmissionSeen,
    WorkloadSeen,
)
from harness.history.events import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    Booted,
    CheckpointsSeen,
    Done,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    FaultFailed,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    GoldenKnown,
    HangCalled,
    Inspected,
    LogLine,
    Marked,
    ObservationLost,
    OperationReached,
    RestoreBegun,
    Restored,
    ResultSeen,
    RunClosed,
    RunOpened,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
    TaskFinished,
)

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
    | OperationReached
    | FaultRequested
    | FaultObserved
    | FaultHealed
    | FaultFailed
    | CheckpointsSeen
    | Inspected
    | ResultSeen
    | HangCalled
    | PodSeen
    | NodeSeen
    | WorkloadSeen
    | ProvisioningSeen
    | SubmissionSeen
    | ClusterEventSeen
    | PoolScaled
    | ClusterLeft
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

DOCUMENT_BYTES_MAX = 64 << 20
"""Of a scenario, a plan, a list of faults: the largest known is a thousandth of it, and what has no end does not fill the memory."""


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


def read_document(path: Path) -> bytes:
    """The content of a document that somebody has named: what is no file, or has no end, holds nobody up.

    Raises:
        OSError: As ``open_regular``, and when it is larger than a document is.
    """
    data = bytearray()
    with open_regular(path) as file:
        while block := file.read(READ_BYTES):
            data += block
            if len(data) > DOCUMENT_BYTES_MAX:
                raise OSError(errno.EFBIG, f"larger than {DOCUMENT_BYTES_MAX >> 20} MiB, which no document is", str(path))
    return bytes(data)


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
        with io.BufferedReader(open_regular(path)) as file:
            event = _DECODER.decode(file.readline(DOCUMENT_BYTES_MAX))
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
