"""What entries say, as events of a history, each with the entry that it was read from."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.history import Event
from harness.incidents.entries import Entry, order_of

UNKNOWN_KINDS_MAX = 50
"""Kinds of unknown entries that are listed with a sample; those of all others are counted together."""

SAMPLE_CHARACTERS_MAX = 200

OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, and the entry that says it."""

    event: Event
    entry: Entry


class UnknownKind(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that nothing was read from, of one kind.

    Attributes:
        what: The log and the resource, or why they could not be read.
        count: How many.
        insert_id, at, sample: The first of them.
    """

    what: str
    count: int
    insert_id: str
    at: str
    sample: str


@dataclass(slots=True)
class UnknownEntries:
    """Counts what nothing was read from: nothing that stands in an export is dropped without a word."""

    _counts: Counter[str] = field(default_factory=Counter)
    _first: dict[str, Entry] = field(default_factory=dict)

    def add(self, entry: Entry, what: str = "") -> None:
        """Count an entry."""
        kind = what or f"{entry.log or 'no log'} of {entry.resource_type or 'no resource'}"
        kind = kind[:SAMPLE_CHARACTERS_MAX]
        if kind not in self._first and len(self._first) >= UNKNOWN_KINDS_MAX:
            kind = OTHERS
        self._counts[kind] += 1
        self._first.setdefault(kind, entry)

    @property
    def count(self) -> int:
        """All of them."""
        return self._counts.total()

    def kinds(self) -> tuple[UnknownKind, ...]:
        """Each kind with its first entry, the most frequent first."""
        return tuple(self._kind(what, count) for what, count in sorted(self._counts.items(), key=lambda item: (-item[1], item[0])))

    def _kind(self, what: str, count: int) -> UnknownKind:
        first = self._first[what]
        sample = first.text[:SAMPLE_CHARACTERS_MAX]
        return UnknownKind(what=what, count=count, insert_id=first.insert_id, at=first.at, sample=sample)


def in_order(seen: Iterable[Seen]) -> Sequence[Seen]:
    """As their entries are; what one entry says stays in the order in which it says it."""
    return sorted(seen, key=lambda each: order_of(each.entry))
