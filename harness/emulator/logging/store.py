"""Where entries are kept: in memory, encoded, sorted by their timestamps, within bounds."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness.clock import Clock
from harness.emulator.logging.deliveries import Delivery, Key, Waiting
from harness.emulator.logging.disturbances import Disturbable, Disturbance, Disturbances, Fate, pad
from harness.emulator.logging.following import Follower
from harness.emulator.logging.notices import EXECUTION_LABEL, lost_notice
from harness.emulator.logging.query import Subject, TimeBounds, subjects_of
from harness.emulator.logging.query.values import NANOSECONDS_A_SECOND, format_moment, parse_moment, to_nanoseconds
from harness.emulator.logging.retention import Holdings, Retention
from harness.emulator.logging.shelf import Shelf, Stretch
from harness.emulator.project import project_of

DEFAULT_RETENTION = Retention()

SPACE_KEPT = 0.9
"""The share of the space that stays filled when room is made: so that it is not made anew for every entry."""

SETS_MAX = 1000

_EXECUTION = ("labels", EXECUTION_LABEL)

SCANNED_AT_ONCE = 1000
"""Entries that a scan takes at a time: others write between, and nothing is copied that nobody looks at."""


class LogEntryStore(Disturbable):
    """Keeps log entries of all projects. Safe to use from every thread.

    Args:
        clock: Says when an entry is received, when one that is held back can be found, and what is too old.
        retention: What is kept.
    """

    def __init__(self, clock: Clock, retention: Retention = DEFAULT_RETENTION) -> None:
        self._clock = clock
        self._retention = retention
        self._lock = threading.RLock()
        self._shelf = Shelf()
        self._waiting = Waiting()
        self._disturbances = Disturbances()
        self._followers: list[Follower] = []
        self._encoder = msgspec.json.Encoder()
        self._numbers = 0
        self._dropped_for_space = self._dropped_for_age = self._lost = 0
        self._sets: dict[frozenset[Subject], frozenset[Subject]] = {}
        self._crowded_out: Counter[tuple[str, str]] = Counter()

    def append(self, entries: Iterable[Mapping[str, object]]) -> None:
        """Take entries in their JSON form; a timestamp and an insert id are given to those without, in their order.

        Raises:
            ValueError: When an entry names no log, or its timestamp is none: a writer within the emulator is wrong.
        """
        with self._lock:
            for place, entry in enumerate(entries):
                self._take(dict(entry), place)
            self._settle()

    def disturb(self, disturbance: Disturbance) -> None:
        """From now on entries that match are late, doubled, lost, skewed or padded.

        Raises:
            FilterError: When its filter cannot be read.
        """
        with self._lock:
            self._disturbances.add(disturbance)

    def undisturb(self) -> None:
        """Entries that come from now on arrive as they should; those held back stay so."""
        with self._lock:
            self._disturbances.clear()

    def release(self) -> None:
        """Everything that is held back can be found."""
        with self._lock:
            self._settle(now_s=float("inf"))

    def scan(
        self,
        projects: frozenset[str],
        bounds: TimeBounds,
        *,
        after: Key | None = None,
        is_descending: bool = False,
        subjects: Sequence[frozenset[Subject]] = (),
    ) -> Iterator[Delivery]:
        """What can be found now, by timestamp and insert id, from behind ``after`` on; the same entry twice comes once.

        With ``subjects`` what has none of one of these sets may be left out.
        """
        stretch = Stretch(bounds=bounds, subjects=subjects, is_descending=is_descending)
        with self._lock:
            self._settle()
            seen = self._shelf.identities_until(after, is_descending=is_descending)
        while found := self._cut(stretch, after):
            for delivery in found:
                if delivery.project in projects and delivery.identity not in seen:
                    seen.add(delivery.identity)
                    yield delivery
            after = found[-1].key

    def _cut(self, stretch: Stretch, after: Key | None) -> list[Delivery]:
        with self._lock:
            return self._shelf.cut(stretch, after, count=SCANNED_AT_ONCE)

    def log_names(self, project: str) -> list[str]:
        """The logs of a project that have entries, sorted."""
        with self._lock:
            self._settle()
            return sorted(log_name for owner, log_name in self._shelf.logs if owner == project)

    def delete_log(self, log_name: str) -> int:
        """Delete the entries of a log that can be found; returns how many."""
        with self._lock:
            self._settle()
            gone = [delivery for delivery in self._shelf.entries if delivery.log_name == log_name]
            self._shelf.drop(gone)
            return len(gone)

    def follow(self) -> Follower:
        """Begin to follow: what can be found from now on is queued, until ``unfollow``."""
        follower = Follower()
        with self._lock:
            self._settle()
            self._followers.append(follower)
        return follower

    def unfollow(self, follower: Follower) -> None:
        """End it."""
        with self._lock:
            self._followers.remove(follower)

    def settle(self) -> None:
        """Let what is due be found: followers wait for nothing else."""
        with self._lock:
            self._settle()

    def holdings(self) -> Holdings:
        """What is held, and what is not any more."""
        with self._lock:
            self._settle()
            return Holdings(
                entries=len(self._shelf.entries),
                bytes=self._shelf.bytes,
                waiting=len(self._waiting.heap),
                dropped_for_space=self._dropped_for_space,
                dropped_for_age=self._dropped_for_age,
                lost=self._lost,
            )

    def _take(self, entry: dict[str, Any], place: int) -> None:
        log_name = entry.get("logName")
        if not isinstance(log_name, str) or "/logs/" not in log_name:
            raise ValueError(f"logName is {log_name!r}: write projects/PROJECT/logs/LOG")
        now_ns = to_nanoseconds(self._clock.utc())
        moment_ns = parse_moment(str(entry["timestamp"])) if entry.get("timestamp") else now_ns + place
        if moment_ns is None:
            raise ValueError(f"timestamp is {entry['timestamp']!r}: write a moment of RFC 3339")
        self._numbers += 1
        entry["insertId"] = entry.get("insertId") or f"{now_ns:020x}{self._numbers:08x}"
        fate = self._disturbances.fate({**entry, "timestamp": format_moment(moment_ns)}) if self._disturbances.are_any else Fate()
        moment_ns += round(fate.skew_s * NANOSECONDS_A_SECOND)
        if fate.padded_bytes:
            pad(entry, fate.padded_bytes)
        if fate.copies == 0:
            self._lost += 1
        self._deliver(entry, moment_ns, now_ns, fate)

    def _deliver(self, entry: dict[str, Any], moment_ns: int, now_ns: int, fate: Fate) -> None:
        late_ns = round(fate.late_s * NANOSECONDS_A_SECOND) if fate.late_s != float("inf") else 0
        entry |= {"timestamp": format_moment(moment_ns), "receiveTimestamp": format_moment(now_ns + late_ns)}
        encoded = self._encoder.encode(entry)
        subjects = self._shared(subjects_of(entry))
        for copy in range(fate.copies):
            self._numbers += 1
            delivery = Delivery(
                key=(moment_ns, entry["insertId"], self._numbers),
                project=project_of(entry["logName"]),
                log_name=entry["logName"],
                encoded=encoded,
                subjects=subjects,
                copy=copy,
            )
            self._waiting.add(self._clock.monotonic_s() + fate.late_s, delivery)

    def _shared(self, subjects: frozenset[Subject]) -> frozenset[Subject]:
        """One set for all entries that are found by the same."""
        if len(self._sets) >= SETS_MAX:
            self._sets.clear()
        return self._sets.setdefault(subjects, subjects)

    def _settle(self, now_s: float | None = None) -> None:
        due_s = self._clock.monotonic_s() if now_s is None else now_s
        for delivery in self._waiting.take(due_s):
            self._shelf.add(delivery)
            for follower in self._followers:
                follower.put(self._clock.monotonic_s(), delivery)
        self._keep_bounds()

    def _keep_bounds(self) -> None:
        now_ns = to_nanoseconds(self._clock.utc())
        oldest_ns = now_ns - round(self._retention.days * 86_400) * NANOSECONDS_A_SECOND
        newest_ns = now_ns + round(self._retention.ahead_hours * 3_600) * NANOSECONDS_A_SECOND
        aged = self._shelf.outside(oldest_ns, newest_ns)
        self._dropped_for_age += len(aged)
        self._shelf.drop(aged)
        if self._shelf.bytes > self._retention.bytes_max:
            crowded = self._shelf.first_come(self._shelf.bytes - round(SPACE_KEPT * self._retention.bytes_max))
            self._dropped_for_space += len(crowded)
            self._shelf.drop(crowded)
            self._tell_crowded(crowded, now_ns)

    def _tell_crowded(self, crowded: Sequence[Delivery], now_ns: int) -> None:
        """Say in the log itself whose entries had to make room: who reads it must not take it for whole."""
        gone = Counter(
            (delivery.project, subject.value)
            for delivery in crowded
            for subject in delivery.subjects
            if subject.path == _EXECUTION and subject.value
        )
        for (project, execution), count in gone.items():
            self._crowded_out[project, execution] += count
            lost = self._crowded_out[project, execution]
            why = f"the emulator keeps {self._retention.bytes_max} bytes of entries in all, and the first that came have made room"
            self._numbers += 1
            entry = {**lost_notice(project, execution, count=lost, why=why), "insertId": f"{now_ns:020x}{self._numbers:08x}"}
            self._deliver(entry, now_ns, now_ns, Fate())
