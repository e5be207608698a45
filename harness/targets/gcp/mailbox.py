"""Orders to agents and reports from them, as objects in the run's own prefix of the bucket."""

from collections.abc import Collection
from dataclasses import dataclass, field

from harness.clock import Clock
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.bucket import BucketPrefix, ObjectSeen
from harness.targets.gcp.failures import PreconditionError
from harness.targets.gcp.reports import Report, ReportFile, ReportOrder, attempt_of, encode_order, folder_of, number_of, read_report_file

REPORT_BYTES_MAX = 8 << 20
"""An agent writes files of one megabyte, and a line of one more; what is larger is not its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Reports of an attempt, in order.

    Attributes:
        key: Whose.
        reports: What it said.
        seen_s: When they were read, on the monotonic clock.
        lost: What of it cannot be known, in words; empty: nothing.
    """

    key: AttemptKey
    reports: tuple[Report, ...]
    seen_s: float
    lost: str = ""


@dataclass(slots=True, kw_only=True)
class _Inbox:
    order: ReportOrder = field(default_factory=ReportOrder)
    tried: dict[int, int] = field(default_factory=dict)
    """Generations that were not whole: they never will be."""


class ReportReader:
    """Reads what agents say; ``look`` is called again and again, by one thread.

    Args:
        said: The prefix of reports.
        clock: For patience, and for when things were seen.
    """

    def __init__(self, said: BucketPrefix, clock: Clock) -> None:
        self._said, self._clock = said, clock
        self._inboxes: dict[AttemptKey, _Inbox] = {}
        self._closed: set[AttemptKey] = set()

    def close(self, keys: Collection[AttemptKey]) -> None:
        """Attempts that will say nothing more are not looked at any more."""
        self._closed |= set(keys)

    def look(self) -> list[Said]:
        """What was said since.

        Raises:
            CallError: When the bucket cannot be read.
        """
        for name in self._said.list_folders(""):
            key = attempt_of(name)
            if key is not None and key not in self._closed:
                self._inboxes.setdefault(key, _Inbox())
        said: list[Said] = []
        for key in [key for key in self._inboxes if key not in self._closed]:
            said += self._look_at(key, self._inboxes[key])
        return said

    def _look_at(self, key: AttemptKey, inbox: _Inbox) -> list[Said]:
        folder = f"{folder_of(key)}/"
        found: list[Said] = []
        there: set[int] = set()
        for seen in self._said.list_objects(below=folder, from_name=f"{folder}{inbox.order.next_number:08d}"):
            number = number_of(seen.name.rpartition("/")[2])
            if not number:
                continue
            there.add(number)
            if inbox.order.wants(number) and inbox.tried.get(number) != seen.generation:
                found += self._read(key, inbox, number, seen)
        passed, files = inbox.order.give_up(there, self._clock.monotonic_s())
        if passed:
            found.append(self._said_of(key, [], lost=f"report {passed} of its agent never came whole"))
        return found + ([self._said_of(key, files)] if files else [])

    def _read(self, key: AttemptKey, inbox: _Inbox, number: int, seen: ObjectSeen) -> list[Said]:
        file: ReportFile | None = None
        if seen.size_bytes <= REPORT_BYTES_MAX:
            data = self._said.read(seen.name, generation=seen.generation)
            if data is None:
                return []  # it has changed since it was listed
            file = read_report_file(data, number)
        if file is None:
            inbox.tried[number] = seen.generation
            return []
        files = inbox.order.take(number, file)
        return [self._said_of(key, files)] if files else []

    def _said_of(self, key: AttemptKey, files: list[ReportFile], *, lost: str = "") -> Said:
        garbage_count = sum(file.garbage_count for file in files)
        if garbage_count:
            lost = f"{garbage_count} lines of its agent are no reports"
        reports = tuple(report for file in files for report in file.reports)
        return Said(key=key, reports=reports, seen_s=self._clock.monotonic_s(), lost=lost)


class OrderWriter:
    """Writes orders: numbered without gaps, each once, none ever changed."""

    def __init__(self, orders: BucketPrefix, clock: Clock) -> None:
        self._orders, self._clock = orders, clock
        self._last: dict[AttemptKey, int] = {}
        self._sent_s: dict[tuple[AttemptKey, int], float] = {}

    def write(self, key: AttemptKey, do: str, **fields: object) -> int:
        """Give an order; returns its number.

        Raises:
            CallError: When the bucket did not take it; it may have been given all the same.
        """
        while True:
            number = self._last.get(key, 0) + 1
            asked_s = self._clock.monotonic_s()
            is_taken = self._put(key, number, encode_order(number, do=do, **fields))
            self._last[key] = number
            if is_taken:
                self._sent_s[key, number] = asked_s
                return number

    def _put(self, key: AttemptKey, number: int, data: bytes) -> bool:
        """Write an order; false where one stands there that was thought not to have been given."""
        name = f"{folder_of(key)}/{number:08d}.json"
        try:
            self._orders.write(name, data, generation=0)
        except PreconditionError:
            return self._orders.read(name) == data
        return True

    def asked_s(self, key: AttemptKey, number: int) -> float | None:
        """Before which moment an order cannot have been seen."""
        return self._sent_s.get((key, number))
