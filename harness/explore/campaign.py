"""Recovery tried from one state after the other as far as a budget goes, each tree once however many surfaces leave it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from harness.clock import Clock
from harness.explore.blobs import BlobStore
from harness.explore.budget import Budget
from harness.explore.data_file import DataFile
from harness.explore.frontier import Due, Frontier
from harness.explore.judgement import Broken
from harness.explore.ranks import RANKS
from harness.explore.recipe import Executor, Recipe, Tried
from harness.explore.result import Recorded
from harness.explore.trials_file import Trial, TrialsFile
from harness.verdict import Outcome

BATCH = 64
"""States that are given to an executor at once: it waits for the last of them, and contents of more would be written in vain when time is
over."""

COUNTING_S_MAX = 10.0
"""For counting what time did not suffice for."""


class Watcher(Protocol):
    """Who is told how it goes."""

    def recorded(self, recorded: Recorded) -> None:
        """The job was recorded."""

    def planned(self, states: int) -> None:
        """So many states are to be judged, as far as is known."""

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None:
        """A state of a surface was judged."""


class Campaign:
    """Tries states and has them judged.

    Args:
        executor: Where they are tried.
        recipe: How.
        trials: What was tried, and will be.
        blobs: Contents of their files.
        budget: How much is granted, from now on.
        clock: The machine's.
        watcher: Who is told how it goes.

    Attributes:
        recipe: How recovery is tried.
        blobs: Contents of files of states.
        trials: What was tried.
        began_s: When it began, on the monotonic clock.
    """

    def __init__(
        self, executor: Executor, recipe: Recipe, trials: TrialsFile, blobs: BlobStore, *, budget: Budget, clock: Clock, watcher: Watcher
    ) -> None:
        self.recipe, self.blobs, self.trials = recipe, blobs, trials
        self.began_s = clock.monotonic_s()
        self._executor, self._budget, self._clock, self._watcher = executor, budget, clock, watcher
        self._before = len(trials)
        self._frontiers: list[Frontier] = []

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._clock.monotonic_s() - self.began_s

    @property
    def is_spent(self) -> bool:
        """Whether no state is granted any more, however long it takes."""
        return self._room <= 0

    def deadline_s(self, rank: int) -> float:
        """When no state of a rank is begun any more, on the monotonic clock."""
        return self.began_s + self._budget.seconds_for(rank)

    def judge(self, frontier: Frontier, data: DataFile, *, rank: int, deadline_s: float) -> None:
        """Judge the states of a rank, as far as is granted."""
        self.judge_all(frontier, data, self.look(frontier, rank=rank, deadline_s=deadline_s), deadline_s=deadline_s)

    def look(self, frontier: Frontier, *, rank: int, deadline_s: float) -> Sequence[Due]:
        """The states of a rank that were not found before, as far as is granted."""
        return frontier.look(rank, lambda: self._clock.monotonic_s() < deadline_s)

    def suffices_for(self, dues: Sequence[Due], *, deadline_s: float) -> bool:
        """Whether all of some states can be expected to be judged, when they take as long as those before."""
        new = {due.task.state for due in dues if due.task.state not in self.trials}
        tried = len(self.trials) - self._before
        if self._budget.states is not None and len(new) > self._budget.states - tried:
            return False
        return self._clock.monotonic_s() + len(new) * self.seconds / max(1, tried) <= deadline_s

    def judge_all(self, frontier: Frontier, data: DataFile, dues: Sequence[Due], *, deadline_s: float) -> None:
        """Judge states of a recording, as far as is granted."""
        if frontier not in self._frontiers:
            self._frontiers.append(frontier)
        self._watcher.planned(sum(each.planned for each in self._frontiers))
        for due in dues:
            if due.task.state in self.trials:
                self._settle(frontier, self.trials.read(due.task.state).tried)
        new = {due.task.state: due for due in dues if due.task.state not in self.trials}
        for batch in self._batches(list(new.values()), deadline_s):
            for due in batch:
                self.blobs.keep_all(due.found.crash.tree, data)
            for tried in self._executor.try_all([due.task for due in batch], self.recipe, deadline_s=deadline_s):
                self.trials.keep(Trial(task=new[tried.state].task, tried=tried))
                self._settle(frontier, tried)

    def count(self, *frontiers: Frontier) -> None:
        """Find what is left, so that it can be said how much that is; that is given up when it takes too long."""
        end_s = self._clock.monotonic_s() + COUNTING_S_MAX
        for frontier in frontiers:
            frontier.look(RANKS, lambda: self._clock.monotonic_s() < end_s)

    def _batches(self, dues: Sequence[Due], deadline_s: float) -> Iterator[Sequence[Due]]:
        while dues and self._clock.monotonic_s() < deadline_s and not self.is_spent:
            room = self._room
            yield dues[:room]
            dues = dues[room:]

    @property
    def _room(self) -> int:
        """How many states may be tried at once."""
        granted = self._budget.states
        return BATCH if granted is None else min(BATCH, granted - (len(self.trials) - self._before))

    def _settle(self, frontier: Frontier, tried: Tried) -> None:
        for due in frontier.take(tried):
            broken = due.judgement.broken if due.judgement is not None else ()
            worst = next((each for each in broken if each.outcome is Outcome.INVALID), None)
            self._watcher.judged(due.side.name, due.outcome or Outcome.UNKNOWN, worst)
