"""What a figure is: its rows with their goals, and what was measured of them."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A bound that a median must keep."""

    limit: float
    kind: Literal["at most", "at least"] = "at most"

    def is_met_by(self, value: float) -> bool:
        """Whether a value keeps it."""
        return value <= self.limit if self.kind == "at most" else value >= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        name: How the line is called on the command line, kebab-case.
        what: What is measured, in a reader's words.
        unit: Of the values; empty for a ratio.
        goal: The bound; None for a figure that is only shown.
        decimals: Of the values as they are written.
    """

    name: str
    what: str
    unit: str = ""
    goal: Goal | None = None
    decimals: int = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """The samples of one row, one a round; ``details`` is a section of its own below the table, in Markdown."""

    samples: Sequence[float]
    note: str = ""
    details: str = ""

    @property
    def median(self) -> float:
        """The middle one: a round that another program has slowed down does not move it."""
        return statistics.median(self.samples)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: ``quick`` is for development, its figures are rough."""

    is_quick: bool = False

    def rounds(self, full: int, quick: int) -> int:
        """One of two numbers of rounds."""
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Rows that one measurement fills."""

    rows: Sequence[Row]
    measure: Callable[[Effort], Mapping[str, Measured]]
