"""How many steps lie between two that a job says: what its log alone tells of skipped steps, where there is no run to compare with.

A job may log every step or every k-th, counted from wherever it likes; the distance that it keeps is its *stride*. A longer way from one
step to the next has left steps out. A log that keeps no distance tells nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.checkers.evidence import Evidence
from harness.lineage import Incarnation

SEEN_MIN = 2
"""Equal distances that make a stride: one alone may be anything."""


@dataclass(frozen=True, slots=True)
class Stride:
    """The distances between the steps that a task says.

    Attributes:
        every: Steps from one that is said to the next; 0 where the log keeps no distance, or has too few lines to tell.
        longest: The longest way in any life; 0 where no life said two steps.
        opening: The first step of the first life, from scratch: some jobs say their first one late.
    """

    every: int
    longest: int
    opening: int


def stride_of(task: int, evidence: Evidence) -> Stride:
    """Read the stride from all lives of a task, but not from what the first step of a resumed one leaves out."""
    lives = [rises(life) for life in evidence.lineage.incarnations_of(task)]
    ways = [[after - before for before, after in pairwise(steps)] for steps in lives]
    first = evidence.lineage.incarnations_of(task)[:1]
    opening = lives[0][0] if first and lives[0] and first[0].started is None else 0
    counts = Counter(way for life in ways for way in life)
    longest = max(counts, default=0)
    if opening:
        counts[opening] += 1
    every, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    is_kept = times >= SEEN_MIN and all(_is_kept(life, every) for life in ways)
    return Stride(every if is_kept else 0, longest, opening)


def rises(life: Incarnation) -> Sequence[int]:
    """The steps of a life from where it went on, each when it was said first: several ranks, or lines, may tell of the same ones."""
    return list(_rises(life))


def _rises(life: Incarnation) -> Iterator[int]:
    highest = life.started.restored_step - 1 if life.started is not None else -1
    for event in life.steps:
        if event.step > highest:
            highest = event.step
            yield highest


def _is_kept(ways: Sequence[int], every: int) -> bool:
    """Whether a life keeps a stride: it comes back to it after each longer way, or else it may have begun to log less often."""
    longer = [index for index, way in enumerate(ways) if way > every]
    return all(every in ways[index + 1 : index + 2] for index in longer)
