"""The operations of a recording as a strip of cells: one each, or one for several where there are too many to be seen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from harness.report.wording import count

Shade = Literal["invalid", "unknown", "unjudged", "valid"]
"""The worst that is known of the states that end at an operation."""

SHADES: tuple[Shade, ...] = ("invalid", "unknown", "unjudged", "valid")
"""The worst first: what nobody judged is not shown as valid."""

SAID: dict[Shade, str] = {"invalid": "invalid", "unknown": "unknown", "unjudged": "not judged", "valid": "valid"}

CELLS_MAX = 160
"""Of one strip: on a page of its full width each has 6 pixels, the least that can be pointed at."""

CELL_PX_MAX, WIDTH_PX, CHARACTER_PX = 22, 1100, 6.2
"""Of a cell where there are few, of a page's strip, and of a character of a label on average."""

GROUPS_MAX = 24
"""Of one strip; where there are more, neighbours share a label: lines without one say nothing."""

NAMES_MAX = 3
"""Kinds of operations that are named of one cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation, and what is known of a crash right after it or in it.

    Attributes:
        number: From 1; 0: the moment before the first.
        name: Kind and class, like ``write step_*/data``.
        marker: What the job had said last.
        states: States that end here, by shade.
    """

    number: int
    name: str
    marker: str
    states: Counter[Shade]

    @property
    def shade(self) -> Shade:
        """The worst of them; where none ends, nothing was judged."""
        return next((shade for shade in SHADES if self.states[shade]), "unjudged")


@dataclass(frozen=True, slots=True)
class Cell:
    """One or several operations; ``told`` says which, for who points at it."""

    shade: Shade
    told: str


@dataclass(frozen=True, slots=True)
class Group:
    """Cells after the same marker; ``label`` is the marker where there is room for it, else empty."""

    marker: str
    cells: tuple[Cell, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A strip; ``per_cell``: how many operations share a cell."""

    groups: tuple[Group, ...]
    per_cell: int


def strip_of(operations: Sequence[Operation]) -> Strip:
    """Lay operations out in their order; of those that share a cell the worst decides how it looks."""
    per_cell = max(1, -(-len(operations) // CELLS_MAX))
    cells = list(_cells(operations, per_cell))
    cell_px = min(CELL_PX_MAX, WIDTH_PX / max(1, len(cells)))
    return Strip(tuple(_groups(cells, cell_px)), per_cell)


def _groups(cells: Sequence[tuple[str, Cell]], cell_px: float) -> Iterator[Group]:
    groups = [(marker, tuple(cell for _, cell in some)) for marker, some in groupby(cells, key=lambda each: each[0])]
    if len(groups) > GROUPS_MAX:
        groups = _merged(groups, cell_px)
    for marker, members in groups:
        yield Group(marker, members, label=marker if _fits(marker, len(members), cell_px) else "")


def _merged(groups: Sequence[tuple[str, tuple[Cell, ...]]], cell_px: float) -> list[tuple[str, tuple[Cell, ...]]]:
    """Neighbours together until there is room for a label, which is that of the first."""
    merged: list[tuple[str, tuple[Cell, ...]]] = []
    for marker, members in groups:
        if merged and not _fits(merged[-1][0], len(merged[-1][1]), cell_px):
            first, before = merged.pop()
            merged.append((first if first.endswith("…") else f"{first} …", before + members))
        else:
            merged.append((marker, members))
    return merged


def _fits(label: str, cells: int, cell_px: float) -> bool:
    return len(label) * CHARACTER_PX <= cells * cell_px


def _cells(operations: Sequence[Operation], per_cell: int) -> Iterator[tuple[str, Cell]]:
    total = max((operation.number for operation in operations), default=0)
    for begin in range(0, len(operations), per_cell):
        some = operations[begin : begin + per_cell]
        shade = min((operation.shade for operation in some), key=SHADES.index)
        worst = [operation for operation in some if operation.shade == shade]
        yield some[0].marker, Cell(shade, f"{SAID[shade]}: {_named(worst)}{_placed(some, total)}{_counted(some)}")


def _named(operations: Sequence[Operation]) -> str:
    """The names of operations, each once."""
    names = list(dict.fromkeys(operation.name for operation in operations))
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more


def _placed(operations: Sequence[Operation], total: int) -> str:
    """Where they stand."""
    first, last = operations[0], operations[-1]
    if last.number == 0:
        return ""
    numbers = f"operation {first.number}" if first is last else f"operations {first.number} to {last.number}"
    return f"; {numbers} of {total:,}, after {first.marker}"


def _counted(operations: Sequence[Operation]) -> str:
    """How many states end there."""
    states: Counter[Shade] = Counter()
    for operation in operations:
        states.update(operation.states)
    told = [f"{states[shade]:,} {SAID[shade]}" for shade in SHADES if states[shade]]
    return f"; {count(states.total(), 'state')}: {', '.join(told)}" if told else "; no state ends here"
