"""Reads the log of one execution while it runs and once more at its end, within bounds; what is beyond them is told.

Entries come late, out of order and twice, or not at all. Each is told once, by its own time; nothing is told twice because a query overlaps
the one before.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from harness.targets.gcp.calling import CALL_DEADLINE_S
from harness.targets.gcp.log_reading import Document, EntrySeen, Fetch, Reading, filter_for, is_quiet, log_of, read_entry, read_time

ENTRIES_MAX = 50_000
"""Of one execution. A page is a thousand, and a project may read sixty a minute: so all of it can be read twice."""

BYTES_MAX = 64 << 20
"""Of one execution, in their JSON shape: so much lies beside the history."""

QUIET_ENTRIES_MAX = 5_000
"""More, of logs that jobs do not write to: how attempts have ended is read however much a job has printed."""

LATE_S = 120.0
"""Entries that come later than this after their own time are seen at the last look only, which goes back to the beginning."""

OVERLAP_ENTRIES = 900
"""At most as many known ones are read again by a look, which is one page of them: a job that prints more has a shorter overlap."""

Entries = list[tuple[EntrySeen, Document]]


@dataclass(slots=True)
class EntrySieve:
    """Lets each entry through once, and as many as there is room for.

    Attributes:
        newest: The newest time of an entry so far.
        is_full: Whether there is no room for what a job prints: the first entry beyond the bound has come.
    """

    newest: datetime | None = None
    is_full: bool = False
    _bytes: int = 0
    _known: set[tuple[str, str, str]] = field(default_factory=set)
    _last: list[datetime] = field(default_factory=list)

    @property
    def is_overfull(self) -> bool:
        """Whether there is no room for anything any more."""
        return len(self._known) >= ENTRIES_MAX + QUIET_ENTRIES_MAX

    def take(self, entry: Mapping[str, object]) -> bool:
        """Whether it is new, and there is room for it."""
        identity = (str(entry.get("logName", "")), str(entry.get("timestamp", "")), str(entry.get("insertId", "")))
        if identity in self._known:
            return False
        size = len(msgspec.json.encode(entry))
        has_room = len(self._known) < ENTRIES_MAX and self._bytes + size <= BYTES_MAX and not self.is_full
        if not (has_room or (is_quiet(entry) and not self.is_overfull)):
            self.is_full = True
            return False
        self._bytes += size
        self._known.add(identity)
        at = read_time(identity[1])
        if at is not None:
            self.newest = at if self.newest is None else max(at, self.newest)
            heapq.heappush(self._last, at)
            if len(self._last) > OVERLAP_ENTRIES:
                heapq.heappop(self._last)
        return True

    def overlap_from(self) -> datetime | None:
        """From when on entries are to be read again: some may have come since. None: from the beginning."""
        if self.newest is None:
            return None
        late = self.newest - timedelta(seconds=LATE_S)
        return max(late, self._last[0]) if len(self._last) >= OVERLAP_ENTRIES else late


class LogReader:
    """Reads the log of one execution, a page at a look. Once there is no room for more of what the job prints, the rest is read.

    Args:
        fetch: Gets pages.
        project: Whose log it is.
        execution: The last part of its name.

    Attributes:
        sieve: Lets each entry through once.
        unknown: Entries of logs that are not known here, by the log's name.
        has_looked_back: Whether all of it was read once more.
    """

    def __init__(self, fetch: Fetch, *, project: str, execution: str) -> None:
        self._fetch, self._project, self._execution = fetch, project, execution
        self._reading: Reading | None = None
        self._last: Reading | None = None
        self.sieve = EntrySieve()
        self.unknown: Counter[str] = Counter()
        self.has_looked_back = False

    @property
    def is_behind(self) -> bool:
        """Whether there are more pages of what the last look has begun to read."""
        return self._reading is not None

    def look(self) -> Entries:
        """A page of entries that are new, by their own times, each as a line and as it came; the next look goes on behind it.

        Raises:
            CallError: When it cannot be had.
        """
        if self._reading is None:
            self._reading = Reading(self._fetch, self._query_from, self.sieve.overlap_from())
        was_full = self.sieve.is_full
        found = self._sift(self._reading.next_page())
        if self._reading.is_over or self.sieve.is_full != was_full or self.sieve.is_overfull:
            self._reading = None
        return found

    def look_back(self, deadline_s: float = CALL_DEADLINE_S) -> Entries:
        """A page of all there is, from the beginning, until ``has_looked_back``: those of its entries that were not seen before.

        Raises:
            CallError: When it cannot be had within ``deadline_s``.
        """
        if self._last is None:
            self._last = Reading(self._fetch, self._query_from)
        was_full = self.sieve.is_full
        found = self._sift(self._last.next_page(deadline_s))
        self.has_looked_back = self._last.is_over or self.sieve.is_overfull
        if self.sieve.is_full != was_full and not self._last.is_over:
            self._last = None  # what the job prints is not asked for any more
        return found

    def _query_from(self, since: datetime | None) -> str:
        return filter_for(self._project, self._execution, since=since, is_quiet=self.sieve.is_full)

    def _sift(self, entries: Sequence[Document]) -> Entries:
        found: Entries = []
        for entry in entries:
            if not self.sieve.take(entry):
                continue
            line = read_entry(entry)
            if line is None:
                self.unknown[log_of(entry)[:100]] += 1
            else:
                found.append((line, entry))
        return found
