"""An order in which early ones tell most: of every kind one after the other, and of each kind from all over the recording."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def spread(items: Sequence[Item]) -> list[Item]:
    """The same items, so that any beginning of the list is spread over all of them (van der Corput: the index with its bits reversed)."""
    bits = max(1, (len(items) - 1).bit_length())
    return [items[at] for at in sorted(range(len(items)), key=lambda at: int(f"{at:0{bits}b}"[::-1], 2))]


def in_turns(groups: Mapping[Hashable, Sequence[Item]]) -> Iterator[Item]:
    """One of each group, then the second of each, and so on."""
    for turn in range(max(map(len, groups.values()), default=0)):
        yield from (group[turn] for group in groups.values() if turn < len(group))
