"""Fingerprints of the job's state: which part of two states differs first, and whether what was loaded is what was saved."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from harness.history import Restored, SaveBegun, SaveEnded, StepDone
from harness.lineage import Lineage

State = Mapping[str, str]
"""A fingerprint for each part of the state."""


def first_difference(left: State, right: State, parts: Iterable[str] = ()) -> str:
    """The first part, by name, that both states have and that differs; empty when there is none."""
    wanted = set(parts) or set(left) | set(right)
    return next((part for part in sorted(wanted & left.keys() & right.keys()) if left[part] != right[part]), "")


class SavedStates:
    """What one task's job said that it saved, by step, to compare with what it said that it loaded.

    The digests of a save are taken from memory before anything is written: whatever storage or a library does later, they are what should
    come back.
    """

    def __init__(self, lineage: Lineage, task: int) -> None:
        self._saves: dict[int, list[SaveBegun | SaveEnded]] = defaultdict(list)
        self._steps: dict[int, list[StepDone]] = defaultdict(list)
        lives = lineage.incarnations_of(task)
        restored = {event.step for life in lives for event in life.restores}
        for life in lives:
            saves: tuple[SaveBegun | SaveEnded, ...] = life.saves_begun + life.saves_ended
            for save in saves:
                if save.step in restored and save.digests:
                    self._saves[save.step].append(save)
            for step in life.all_steps:
                if step.step in restored and step.digests:
                    self._steps[step.step].append(step)

    def compare(self, restored: Restored) -> str | None:
        """The first part in which a loaded state differs from each that was saved; empty when it equals one; None: nothing to compare with.

        All parts must be of one save: a mixture of two saves is torn. A rank that writes nothing is compared with its own steps, for parts
        like a data cursor may differ from rank to rank.
        """
        references = self._references(restored)
        differences = [first_difference(restored.digests, state) for state in references if restored.digests.keys() & state.keys()]
        if not differences:
            return None
        return "" if "" in differences else differences[-1]

    def _references(self, restored: Restored) -> Sequence[State]:
        saves = [event for event in self._saves[restored.step] if event.t_s <= restored.t_s]
        steps = [event for event in self._steps[restored.step] if event.t_s <= restored.t_s and event.rank == restored.rank]
        own = [event.digests for event in saves if event.rank == restored.rank]
        return own or [event.digests for event in steps] or [event.digests for event in saves]
