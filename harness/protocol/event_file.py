"""Follows the file that ``HARNESS_EVENTS`` names: bounded in memory, in work a poll, and tolerant of whatever a job writes."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StoreError
from harness.history import JobEvent, ObservationLost
from harness.protocol.job_lines import JobLineReader
from harness.protocol.lines import LINE_BYTES_MAX, LineSplitter


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLimits:
    """How much of one attempt is kept: far more than a judged job says, far less than fills our memory."""

    events: int = 200_000
    bytes: int = 64 << 20


PIECE_BYTES = 16 << 10
"""Read at once: a hundred events, or eight thousand lines of garbage, which take some 20 ms."""

LINE_COST_BYTES = 64
"""What a line takes from the budget on top of its bytes: many short lines are slower than few long ones."""

COUNTING_FACTOR = 16
"""Counting newlines is that much cheaper than reading events, so what is over the limit is read in larger pieces."""


class EventFile:
    """The events of one attempt, in the order of the file.

    Attributes:
        is_caught_up: Whether the last ``read`` reached the end of the file.

    Raises:
        StoreError: When the file cannot be created.
    """

    def __init__(self, path: Path, *, reader: JobLineReader, limits: EventLimits | None = None) -> None:
        self.path = path
        self.is_caught_up = True
        self._reader = reader
        self._limits = limits or EventLimits()
        self._splitter = LineSplitter(LINE_BYTES_MAX, drops_long=True)
        self._offset = self._events = 0
        self._lost: Counter[str] = Counter()
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=path, attempted="create the event file", reason=error.strerror or str(error)) from error

    def read(self, now_s: float, budget_bytes: int) -> list[JobEvent]:
        """What the job has written since, as much as the budget allows; what is over the limits is only counted."""
        events: list[JobEvent] = []
        self.is_caught_up = False
        while budget_bytes > 0 and not self.is_caught_up:
            if self._is_full:
                self._count_rest(budget_bytes * COUNTING_FACTOR)
                break
            lines = self._splitter.feed(self._read_piece(PIECE_BYTES))
            budget_bytes -= PIECE_BYTES + LINE_COST_BYTES * len(lines)
            events += self._convert(lines, now_s)
        return events

    def finish(self, t_s: float) -> list[ObservationLost]:
        """Close the file and say, once, what was not recorded of it. The rest of a line that was never ended is not an event."""
        self._notice_leftovers()
        self.close()
        if self._splitter.long_count:
            self._lost[f"longer than {LINE_BYTES_MAX} bytes"] += self._splitter.long_count
        count = sum(self._lost.values())
        if not count:
            return []
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(self._lost.items()))
        detail = f"{self.path.name}: {reasons} (limits {self._limits.events} events, {self._limits.bytes} bytes)"
        return [ObservationLost(t_s=t_s, what="events", count=count, detail=detail)]

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def _is_full(self) -> bool:
        return self._events >= self._limits.events or self._offset >= self._limits.bytes

    def _read_piece(self, size: int) -> bytes:
        data = os.pread(self._descriptor, size, self._offset)
        self._offset += len(data)
        self.is_caught_up = len(data) < size
        if not data and os.fstat(self._descriptor).st_size < self._offset:
            self._lost["times the file was cut short"] += 1
            self._offset = os.fstat(self._descriptor).st_size
        return data

    def _count_rest(self, size: int) -> None:
        self._splitter.take_partial()  # its newline is still to come and is counted then
        count = self._read_piece(size).count(b"\n")
        if count:
            self._lost["over the limit"] += count

    def _convert(self, lines: list[bytes], now_s: float) -> list[JobEvent]:
        room = self._limits.events - self._events
        if len(lines) > room:
            self._lost["over the limit"] += len(lines) - room
            lines = lines[:room]
        self._events += len(lines)
        events: list[JobEvent] = []
        for line in lines:
            try:
                events.append(self._reader.read_event(line, now_s))
            except ValueError:
                self._lost["not an event"] += 1
        return events

    def _notice_leftovers(self) -> None:
        """A torn last line, bytes that we did not get to, and another file put in the place of this one."""
        status = os.fstat(self._descriptor)
        if status.st_size > self._offset:
            self._lost["unread rest of the file"] += 1
        elif self._splitter.has_partial:
            self._lost["torn last line"] += 1
        try:
            is_same = os.path.samestat(status, self.path.stat())
        except OSError:
            is_same = False
        if not is_same:
            self._lost["times the file was replaced or removed"] += 1
