"""Deliveries that can be found, sorted by their timestamps, all of them and those of each subject."""

import bisect
import heapq
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.emulator.logging.deliveries import Delivery, Key
from harness.emulator.logging.query import Subject, TimeBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What of a shelf is wanted.

    Attributes:
        bounds: The moments.
        subjects: Of each of these sets an entry must have one at least; none: any entry will do.
        is_descending: Whether the newest come first.
    """

    bounds: TimeBounds
    subjects: Sequence[frozenset[Subject]]
    is_descending: bool


class Shelf:
    """Not safe to use from several threads; its store is.

    Attributes:
        entries: Sorted by their keys.
        bytes: Of all of them.
        logs: How many entries there are, by project and name of the log.
    """

    def __init__(self) -> None:
        self.entries: list[Delivery] = []
        self.bytes = 0
        self.logs: Counter[tuple[str, str]] = Counter()
        self._of_subject: dict[Subject, list[Delivery]] = {}
        self._arrived: dict[int, Delivery] = {}

    def add(self, delivery: Delivery) -> None:
        """Put one in its place."""
        _insert(self.entries, delivery)
        for subject in delivery.subjects:
            _insert(self._of_subject.setdefault(subject, []), delivery)
        self._arrived[delivery.key[2]] = delivery
        self.bytes += len(delivery.encoded)
        self.logs[delivery.project, delivery.log_name] += 1

    def drop(self, deliveries: Sequence[Delivery]) -> None:
        """Take some away."""
        if not deliveries:
            return
        numbers = {delivery.key[2] for delivery in deliveries}
        self.entries = _without(self.entries, numbers)
        for subject in {subject for delivery in deliveries for subject in delivery.subjects}:
            self._of_subject[subject] = _without(self._of_subject[subject], numbers)
            if not self._of_subject[subject]:
                del self._of_subject[subject]
        for delivery in deliveries:
            del self._arrived[delivery.key[2]]
            self.bytes -= len(delivery.encoded)
        self.logs -= Counter((delivery.project, delivery.log_name) for delivery in deliveries)

    def outside(self, first_ns: int, last_ns: int) -> list[Delivery]:
        """Those before the first moment or after the last."""
        return self.entries[: _place(self.entries, first_ns)] + self.entries[_place(self.entries, last_ns + 1) :]

    def first_come(self, over_bytes: int) -> list[Delivery]:
        """The first that came, until they make up so many bytes."""
        taken: list[Delivery] = []
        for delivery in self._arrived.values():
            if over_bytes <= 0:
                break
            taken.append(delivery)
            over_bytes -= len(delivery.encoded)
        return taken

    def cut(self, stretch: Stretch, after: Key | None, *, count: int) -> list[Delivery]:
        """The first so many of a stretch from behind a place on, in its order. It costs what is cut, whatever else lies here."""
        cuts = [_cut(row, stretch, after, count) for row in self._rows(stretch.subjects)]
        if len(cuts) == 1:
            return cuts[0]
        merged = heapq.merge(*cuts, key=lambda found: found.key, reverse=stretch.is_descending)
        once = (found for found, _ in itertools.groupby(merged))
        return list(itertools.islice(once, count))

    def identities_until(self, after: Key | None, *, is_descending: bool) -> set[tuple[str, int, str, int]]:
        """What stands at the end of the page before, and may come again on the next."""
        if after is None:
            return set()
        first = bisect.bisect_left(self.entries, (after[0], after[1], 0), key=lambda found: found.key)
        near = (self.entries[place] for place in range(first, len(self.entries)))
        alike = itertools.takewhile(lambda found: found.key[:2] == after[:2], near)
        return {found.identity for found in alike if found.key == after or (found.key > after) == is_descending}

    def _rows(self, subjects: Iterable[frozenset[Subject]]) -> list[list[Delivery]]:
        """Where to look: in the rows of the set with the fewest entries, or in all there is."""
        choices = [[row for subject in each if (row := self._of_subject.get(subject)) is not None] for each in subjects]
        return min([[self.entries], *choices], key=lambda rows: sum(len(row) for row in rows))


def _insert(row: list[Delivery], delivery: Delivery) -> None:
    if not row or row[-1].key < delivery.key:
        row.append(delivery)  # most come in order
    else:
        bisect.insort(row, delivery, key=lambda found: found.key)


def _without(row: list[Delivery], numbers: Collection[int]) -> list[Delivery]:
    return [delivery for delivery in row if delivery.key[2] not in numbers]


def _cut(row: list[Delivery], stretch: Stretch, after: Key | None, count: int) -> list[Delivery]:
    bounds = stretch.bounds
    first = 0 if bounds.first_ns is None else _place(row, bounds.first_ns)
    last = len(row) if bounds.last_ns is None else _place(row, bounds.last_ns + 1)
    if stretch.is_descending:
        last = last if after is None else min(last, bisect.bisect_left(row, after, key=lambda found: found.key))
        return row[max(first, last - count) : last][::-1]
    first = first if after is None else max(first, bisect.bisect_right(row, after, key=lambda found: found.key))
    return row[first : min(last, first + count)]


def _place(row: list[Delivery], moment_ns: int) -> int:
    """Where the first of that moment or later stands."""
    return bisect.bisect_left(row, (moment_ns, "", 0), key=lambda found: found.key)
