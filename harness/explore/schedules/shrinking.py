"""Making a failing case small within a budget of runs: faults are left out first, then what is left is made plainer.

Hypothesis shrinks by hundreds of runs, which is nothing for a function and hours for a job. What a schedule is made of is known here, so a
dozen do. A step is taken only if the very same failure comes again.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.explore.schedules.cases import Case, Signature, Trial
from harness.explore.schedules.dropping import keep_only
from harness.explore.schedules.passes import PASSES

RUNS_MAX = 12
"""Runs that are made to shrink a failure."""

REPEATS = 5
"""Runs that tell how often a failure comes again."""

Runner = Callable[[Case], Trial]
"""Runs a case and says what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """What is left of a failing case.

    Attributes:
        case: The smallest that failed in the same way.
        trial: What came of it.
        done: What was taken away, in order.
        runs: How many runs that took.
        is_cut: Whether the budget ended it: it may get smaller still.
    """

    case: Case
    trial: Trial
    done: tuple[str, ...] = ()
    runs: int = 0
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How often a failure came again."""

    times: int
    of: int

    def __str__(self) -> str:
        return f"reproduces {self.times} of {self.of}" if self.of else "nobody has tried how often it comes"


Recall = Callable[[Case], Trial | None]
"""What came of a case that was run before; None: nobody knows."""


def shrink(case: Case, trial: Trial, run: Runner, *, known: Recall = lambda _: None, runs_max: int = RUNS_MAX, tries: int = 1) -> Shrunk:
    """Make a failing case small.

    Args:
        case: It failed.
        trial: In this way.
        run: Runs a case. What was tried before in this shrinking is not run again.
        known: What is known without running; that costs nothing.
        runs_max: No more runs than that.
        tries: Of a failure that does not always come, how often a smaller case is given the chance.
    """
    shrinking = _Shrinking(case, trial, run=run, known=known, runs_max=runs_max, tries=tries)
    try:
        shrinking.drop_faults()
        while shrinking.make_plainer():
            pass
    except _BudgetSpentError:
        return shrinking.result(is_cut=True)
    return shrinking.result(is_cut=False)


def reproduce(case: Case, signature: Signature, run: Runner, *, repeats: int = REPEATS) -> Reproduction:
    """Run a case again and again and count how often it fails in the same way."""
    return Reproduction(sum(run(case).signature == signature for _ in range(repeats)), repeats)


class _BudgetSpentError(Exception):
    """No run is left."""


@dataclass
class _Shrinking:
    case: Case
    trial: Trial
    run: Runner = field(kw_only=True)
    known: Recall = field(kw_only=True)
    runs_max: int = field(kw_only=True)
    tries: int = field(kw_only=True)
    runs: int = 0
    _done: list[str] = field(default_factory=list)
    _tried: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._tried.add(self.case.key())

    def result(self, *, is_cut: bool) -> Shrunk:
        return Shrunk(case=self.case, trial=self.trial, done=tuple(self._done), runs=self.runs, is_cut=is_cut)

    def drop_faults(self) -> None:
        """Delta debugging (ddmin): parts of the schedule alone, then the schedule without them, in ever smaller parts.

        Source: A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002.
        """
        parts = 2
        while (size := len(self.case.injections)) >= 2:
            chunks = _chunks(range(size), min(parts, size))
            rests = [[index for index in range(size) if index not in chunk] for chunk in chunks]
            if any(self._keeps(chunk) for chunk in chunks):
                parts = 2
            elif len(chunks) > 2 and any(self._keeps(rest) for rest in rests):
                parts = max(2, parts - 1)
            elif parts < size:
                parts = min(size, 2 * parts)
            else:
                return

    def make_plainer(self) -> bool:
        """Take the first step of each pass that still fails; whether there was one."""
        before = self.case
        for offer in PASSES:
            while any(self._accepts(done, smaller) for done, smaller in offer(self.case, self.trial)):
                pass
        return self.case != before

    def _keeps(self, kept: Sequence[int]) -> bool:
        injections = keep_only(self.case.injections, kept)
        if not injections or len(injections) == len(self.case.injections):
            return False
        try:
            smaller = self.case.with_injections(injections)
        except ValueError:  # no schedule: it lacks what another one waits for
            return False
        return self._accepts(f"{len(injections)} of {len(self.case.injections)} faults", smaller)

    def _accepts(self, done: str, smaller: Case) -> bool:
        """Whether it fails in the same way; then it is the case from now on."""
        key = smaller.key()
        if key in self._tried:
            return False
        self._tried.add(key)
        trial = self.known(smaller)
        for _ in range(self.tries if trial is None else 0):
            trial = self._run(smaller)
            if trial.signature == self.trial.signature:
                break
        if trial is None or trial.signature != self.trial.signature:
            return False
        self.case, self.trial = smaller, trial
        self._done.append(done)
        return True

    def _run(self, smaller: Case) -> Trial:
        if self.runs >= self.runs_max:
            raise _BudgetSpentError
        self.runs += 1
        return self.run(smaller)


def _chunks(indices: Sequence[int], parts: int) -> list[list[int]]:
    size, more = divmod(len(indices), parts)
    bounds = [part * size + min(part, more) for part in range(parts + 1)]
    return [list(indices[begin:end]) for begin, end in itertools.pairwise(bounds)]
