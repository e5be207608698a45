"""Crashes in recovery, as far as their part of the time goes: recoveries are recorded one after the other, and what cuts them is judged.

A recovery that is begun is judged like the job itself: all that tells most, as long as that is granted. One for which too little is left is
not begun, but cut.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.clock import Clock
from harness.explore.campaign import Campaign
from harness.explore.data_file import DataFile
from harness.explore.frontier import Frontier
from harness.explore.moments import timeline
from harness.explore.recipe import Recipe
from harness.explore.relapses import Origin, Unrecorded, changes_anything, expected_in, origins_of
from harness.explore.replay import Replay
from harness.explore.result import Surface
from harness.report.wording import count

Record = Callable[[Origin], Replay | Unrecorded]

SHARE = 3
"""Of the time that is left once the most telling states are judged, recoveries are begun in this part."""


@dataclass(frozen=True, slots=True)
class Relapse:
    """A recovery that was recorded, and the states that a crash of it leaves."""

    origin: Origin
    replayed: Replay
    data: DataFile
    frontier: Frontier


class Recoveries:
    """The recoveries of one recording.

    Args:
        campaign: Tries states.
        recipe: How recovery is tried.
        record: Records the recovery from a state, and leaves no process.
        stack: Closes what is opened.
        clock: The machine's.

    Attributes:
        begun: Those that change anything, and for which enough was left.
        cut: How many were left out, since the budget was spent.
    """

    def __init__(self, campaign: Campaign, recipe: Recipe, record: Record, *, stack: contextlib.ExitStack, clock: Clock) -> None:
        self.begun: list[Relapse] = []
        self.cut = 0
        self._campaign, self._recipe, self._record, self._stack, self._clock = campaign, recipe, record, stack, clock
        self._unrecorded: Counter[str] = Counter()

    @property
    def unrecorded(self) -> tuple[str, ...]:
        """Why crashes in some were not looked at, a sentence each; what the budget cut is not among them."""
        return tuple(
            f"after {count(states, 'state')} recovery could not be recorded, so no crash in it was tried: {why}"
            for why, states in self._unrecorded.most_common()
        )

    def judge(self, frontier: Frontier) -> None:
        """Record recoveries from states of the job's own recording, and judge what tells most of their crashes."""
        now_s = self._clock.monotonic_s()
        deadline_s = now_s + max(0.0, self._campaign.deadline_s(1) - now_s) / SHARE
        origins = origins_of(frontier)
        for number, origin in enumerate(origins):
            if self._clock.monotonic_s() >= deadline_s or self._campaign.is_spent:
                self.cut += len(origins) - number
                return
            relapse = self._recorded(origin, frontier)
            if relapse is not None:
                self._judge(relapse)

    def surfaces(self, *, run_directory: str) -> Iterator[Surface]:
        """What is known of each of their surfaces."""
        for relapse in self.begun:
            strip = timeline(relapse.replayed).strip
            yield from relapse.frontier.surfaces(strip, run_directory=run_directory, after=relapse.origin.task.state)

    def _judge(self, relapse: Relapse) -> None:
        deadline_s = self._campaign.deadline_s(0)
        dues = self._campaign.look(relapse.frontier, rank=0, deadline_s=deadline_s)
        if relapse.frontier.has_found(0) and self._campaign.suffices_for(dues, deadline_s=deadline_s):
            self.begun.append(relapse)
            self._campaign.judge_all(relapse.frontier, relapse.data, dues, deadline_s=deadline_s)
        else:
            self.cut += 1

    def _recorded(self, origin: Origin, frontier: Frontier) -> Relapse | None:
        replayed = self._record(origin)
        if isinstance(replayed, Unrecorded):
            self.cut += replayed.is_cut
            self._unrecorded.update(() if replayed.is_cut else (replayed.why,))
            return None
        if not changes_anything(replayed):
            return None
        data = self._stack.enter_context(DataFile(replayed.log.data_path))
        expected = expected_in(replayed, frontier.expected, origin.at, self._recipe, data)
        return Relapse(origin, replayed, data, Frontier(replayed, data, expected, origin.surfaces))
