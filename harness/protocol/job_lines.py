"""A line of the workload protocol to an event of the history (``workloads/protocol.md``).

The task and the attempt are those of the file that the line stands in: what a job says about that is not evidence.
"""

import math
import re
from collections.abc import Callable
from typing import Annotated, Literal, TypedDict

import msgspec

from harness.history import (
    BarrierReached,
    Booted,
    Done,
    JobEvent,
    Marked,
    RestoreBegun,
    Restored,
    SaveBegun,
    SaveEnded,
    SigtermSeen,
    Started,
    StepDone,
)
from harness.protocol.attempt_key import AttemptKey

FUTURE_TOLERANCE_S = 1.0
"""CLOCK_MONOTONIC is one for all processes of a machine; a stamp further ahead than this is not from it."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Step = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # beyond it, numbers of JSON are not exact everywhere
Rank = Annotated[int, msgspec.Meta(ge=0, le=1 << 20)]
ProcessNumber = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
SampleId = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]  # what the history's encoder can write

KNOWN_EVENTS = frozenset({"boot", "restore.begin", "restore", "start", "step", "save.begin", "save.end", "sigterm", "done"})
"""The names of the protocol; every other name is a marker of the job's own."""

_NOT_JSON = re.compile(rb"\b(?:NaN|Infinity)\b|-Infinity\b")
"""What Python's ``json`` writes for numbers that JSON does not have: a loss that is NaN must not hide its line."""


class MarkerLine(msgspec.Struct, frozen=True, kw_only=True):
    """What every line has; ``t`` stays raw, since a silly one does not make the line worthless."""

    event: Name
    t: msgspec.Raw = msgspec.Raw(b"")
    pid: ProcessNumber = 0
    rank: Rank = 0
    step: Step | None = None


class JobLine(MarkerLine, frozen=True, kw_only=True):
    """What the lines of the protocol have."""

    restored_step: Step | None = None
    steps: Step = 0
    batch_ids: tuple[SampleId, ...] = ()
    digests: dict[str, str] = {}


class BarrierLine(MarkerLine, frozen=True, kw_only=True):
    """A request at the barrier."""

    when: Literal["before", "after"]


class _Common(TypedDict):
    t_s: float
    task: int
    attempt: int
    rank: int
    pid: int


_job_decoder = msgspec.json.Decoder(JobLine)
_marker_decoder = msgspec.json.Decoder(MarkerLine)
_barrier_decoder = msgspec.json.Decoder(BarrierLine)


class JobLineReader:
    """Reads the lines of one attempt.

    Args:
        key: Which attempt.
        epoch_s: The zero of the history on the monotonic clock.
        pid_here: Where the job has process ids of its own: which of this machine one of them is, now; 0 when it is none.
    """

    def __init__(self, key: AttemptKey, epoch_s: float, pid_here: Callable[[int, float], int] | None = None) -> None:
        self._key = key
        self._epoch_s = epoch_s
        self._pid_here = pid_here

    def read_event(self, data: bytes, now_s: float) -> JobEvent:
        """An event.

        Raises:
            ValueError: When the line is not one.
        """
        try:
            line = _job_decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            line = _decode_leniently(data)
        return _to_event(line, self._common(line, now_s))

    def read_barrier(self, data: bytes, now_s: float) -> BarrierReached:
        """A request at the barrier; its time is ours, since it comes after all that was written before it.

        Raises:
            ValueError: When the line is not one.
        """
        try:
            line = _barrier_decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"not a request at the barrier: {error}") from error
        common = self._common(line, now_s)
        common["t_s"] = now_s - self._epoch_s
        return BarrierReached(**common, event=line.event, when=line.when, step=-1 if line.step is None else line.step)

    def _common(self, line: MarkerLine, now_s: float) -> _Common:
        return {
            "t_s": _stamp_s(line.t, earliest_s=self._epoch_s, now_s=now_s) - self._epoch_s,
            "task": self._key.task,
            "attempt": self._key.attempt,
            "rank": line.rank,
            "pid": line.pid if self._pid_here is None else self._pid_here(line.pid, now_s),
        }


def _stamp_s(raw: msgspec.Raw, *, earliest_s: float, now_s: float) -> float:
    """The job's stamp, or the time of reading when there is none that can be true: it was not before the run, and is not to come.

    Seconds since the process started, as a wrong clock gives them, would put all that the job says before what it says it of.
    """
    try:
        stamp_s = float(bytes(raw))
    except ValueError:
        return now_s
    if not math.isfinite(stamp_s) or not earliest_s <= stamp_s <= now_s + FUTURE_TOLERANCE_S:
        return now_s
    return min(stamp_s, now_s)


def _decode_leniently(data: bytes) -> JobLine:
    """Numbers that JSON lacks become null; of a marker only the fields that we use must be right."""
    data = _NOT_JSON.sub(b"null", data)
    try:
        return _decode_line(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _decode_line(data: bytes) -> JobLine:
    try:
        return _job_decoder.decode(data)
    except msgspec.ValidationError:
        marker = _marker_decoder.decode(data)
        if marker.event in KNOWN_EVENTS:
            raise
        return JobLine(event=marker.event, t=marker.t, pid=marker.pid, rank=marker.rank, step=marker.step)


def _to_event(line: JobLine, common: _Common) -> JobEvent:
    match line.event:
        case "step":
            return StepDone(
                **common, step=_required(line.step, f"{line.event} without a step"), batch_ids=line.batch_ids, digests=line.digests
            )
        case "save.begin":
            return SaveBegun(**common, step=_required(line.step, f"{line.event} without a step"), digests=line.digests)
        case "save.end":
            return SaveEnded(**common, step=_required(line.step, f"{line.event} without a step"), digests=line.digests)
        case "boot":
            return Booted(**common)
        case "start":
            return Started(**common, restored_step=_required(line.restored_step, "start without a restored_step"), steps=line.steps)
        case "restore.begin":
            return RestoreBegun(**common, step=_required(line.step, f"{line.event} without a step"))
        case "restore":
            return Restored(**common, step=_required(line.step, f"{line.event} without a step"), digests=line.digests)
        case "sigterm":
            return SigtermSeen(**common)
        case "done":
            return Done(**common, step=_required(line.step, f"{line.event} without a step"))
        case name:
            return Marked(**common, name=name, step=-1 if line.step is None else line.step)


def _required(step: int | None, problem: str) -> int:
    if step is None:
        raise ValueError(problem)
    return step
