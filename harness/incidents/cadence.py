"""How often the job of an incident tells of its steps: what its log does not say is only missing where it should have been said."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from harness.incidents.moments import step_pace_s
from harness.incidents.progress import Progress

DISTANCES_MIN = 5
"""From so many distances between two told steps on it is known how often the job tells of one; an excerpt of a log holds fewer."""

SHARE_MIN = 0.05
"""A distance that comes more rarely than this is no cadence of the job, though it comes twice."""

TIME_SHARE = 0.5
"""Steps for which there was less than this share of their usual time were done by nobody; with more of it their lines may be missing."""


@dataclass(frozen=True)
class Cadence:
    """How a job tells of its steps, in all tasks and attempts: each, every so many, or when it has come to some."""

    progress: Progress

    @cached_property
    def longest(self) -> int | None:
        """The longest distance between two steps that an attempt told one after the other; None where no two were told."""
        return min((max(rhythm.distances) for rhythm in self._rhythms if rhythm.distances), default=None)

    @cached_property
    def stride(self) -> int | None:
        """The longest distance that is usual: a job may tell of ten steps first, and then of every tenth. None: it is not known."""
        return min((rhythm.stride for rhythm in self._rhythms if rhythm.stride is not None), default=None)

    @cached_property
    def slack(self) -> int:
        """Steps that may have been done after the last one that was told."""
        return (self.stride or self.longest or 1) - 1

    def is_missing_between(self, step: int, later: int) -> bool:
        """Whether a step between two should have been told."""
        if self.stride is None or later <= step:
            return False
        steps, saves = self._rhythms
        expected = (steps if steps.distances else saves).last_before(later)  # a save may be left out, where steps are told
        return expected > step if expected is not None else later - step >= 2 * self.stride

    def is_without_time(self, steps: int, seconds: float) -> bool:
        """Whether so many steps cannot have been done in that time; False where the pace is not told."""
        return self._pace_s is not None and seconds < TIME_SHARE * steps * self._pace_s

    @cached_property
    def _rhythms(self) -> tuple["_Rhythm", "_Rhythm"]:
        """Of steps and of saves, each for itself: in both together the one comes soon after the other, as neither is told."""
        apart = [self.progress.told_apart(story) for story in self.progress.timeline.attempts]
        return _Rhythm([sorted(steps) for steps, _ in apart]), _Rhythm([sorted(saves) for _, saves in apart])

    @cached_property
    def _pace_s(self) -> float | None:
        return step_pace_s(self.progress.timeline)


@dataclass(frozen=True)
class _Rhythm:
    """Of one kind of words: which steps each attempt tells of, in order."""

    told: list[list[int]]

    @cached_property
    def distances(self) -> Counter[int]:
        return Counter(later - step for steps in self.told for step, later in pairwise(steps))

    @cached_property
    def stride(self) -> int | None:
        if self.distances.total() < DISTANCES_MIN:
            return None
        least = max(2.0, SHARE_MIN * self.distances.total())
        return max((distance for distance, count in self.distances.items() if count >= least), default=None)

    def last_before(self, later: int) -> int | None:
        """The last step before another one that is due to be told; None where told steps are not the multiples of anything."""
        if self.stride is None or self.remainder is None:
            return None
        return later - 1 - (later - 1 - self.remainder) % self.stride

    @cached_property
    def remainder(self) -> int | None:
        """What all told steps leave when divided by the stride; None where they differ, the first one of an attempt left out."""
        if self.stride is None:
            return None
        found = {step % self.stride for steps in self.told for step in steps[1:]}
        return found.pop() if len(found) == 1 else None
