"""One crash state with what was tried from it, held beside the uninterrupted run."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.explore.judgement import Recovery
from harness.explore.judging.expected import Expected


@dataclass(frozen=True, slots=True)
class Case:
    """What a promise is judged by.

    Attributes:
        expected: What every recovery owes.
        at: Index of the last entry of the log that was executed before the crash.
        first: The recovery from the state.
        second: The one from what the first left, where it was tried.
        standing: Steps whose checkpoints stand in the state.
    """

    expected: Expected
    at: int
    first: Recovery
    second: Recovery | None
    standing: frozenset[int] = frozenset()

    @property
    def promised(self) -> int:
        """The newest step that had been acknowledged; 0: none."""
        return self.expected.promised_step(self.at)

    @property
    def golden(self) -> Recovery:
        """The uninterrupted run."""
        return self.expected.golden

    @property
    def ended_well(self) -> bool:
        """Whether the first recovery came through."""
        return self.first.exit_code == 0

    @property
    def keeps_nothing_when_complete(self) -> bool:
        """Whether this job, once it is complete, goes on from less when it is started again: so it does without any crash."""
        again = self.expected.golden_again
        return again is not None and self.ended_well and 0 <= again.restored_step < end_of(self.golden)

    @property
    def saves_each_once(self) -> bool:
        """Whether this job, left alone, saves one step after the other and none again, so that a save that is told again was lost."""
        steps, again = [save.step for save in self.golden.saves], self.expected.golden_again
        return steps == sorted(steps) and not (again is not None and again.saves)

    @property
    def can_inspect(self) -> bool:
        """Whether the inspection counts as the job does: of what the uninterrupted run left it finds the last step."""
        golden = self.golden
        return golden.inspected_after in {max((save.step for save in golden.saves), default=0), end_of(golden)} - {0, -1}

    def newest_start(self, recovery: Recovery) -> int | None:
        """The newest step that a recovery can have gone on from, by the first one that it did; None: it told none.

        That is the step before, or that step itself where the job may count from 0: then its step N is the one after N.
        """
        return min(recovery.digests) - (not self.expected.may_count_from_0) if recovery.digests else None

    def shows_steps_from(self, promised: int) -> bool:
        """Whether its steps show that none up to the promised one was done again: left alone, the job tells exactly that one."""
        first, golden = self.first, self.golden
        if first.unheard or promised not in golden.digests or not first.digests.keys() <= golden.digests.keys():
            return False
        return min(first.digests, default=promised + 1) > promised and (bool(first.digests) or self.ended_well)

    def is_gone(self, step: int) -> bool:
        """Whether something of the checkpoint of a step, which only its save makes, is not there in the state."""
        return bool(self.expected.made.get(step)) and step not in self.standing

    def first_differing_step(self) -> str:
        """In words, where it leaves the uninterrupted trajectory first; empty where it does not."""
        first, golden = self.first, self.golden
        told = any(first.digests.values())
        if told and first.restored_step >= 0:
            difference = self._difference_while_training()
            if difference:
                return difference
        for save in first.saves:
            part = first_difference(golden.digests.get(save.step, {}), save.digests)
            if part:
                return f"it saved step {save.step} with another {part} than the uninterrupted run has after it"
        part = first_difference(golden.digests.get(first.restored_step, {}), first.restored_digests)
        if part and not told:
            return f"it restored step {first.restored_step} with another {part} than the uninterrupted run has after it"
        return ""

    def compared_with_golden(self) -> bool:
        """Whether bytes were compared with those of the uninterrupted run."""
        first, golden = self.first, self.golden
        if self.expected.golden_differs:
            return False
        if golden.result and first.result:
            return True
        pairs = [(golden.digests.get(step, {}), digests) for step, digests in first.digests.items()]
        pairs.append((golden.digests.get(first.restored_step, {}), first.restored_digests))
        return any(left.keys() & right.keys() for left, right in pairs)

    def compared_content(self) -> bool:
        """Whether anything but how it ended was compared with what was known beforehand."""
        told = self.expected.digests_at(self.first.restored_step, self.at)
        return self.compared_with_golden() or bool(told.keys() & self.first.restored_digests.keys())

    def _difference_while_training(self) -> str:
        first, golden = self.first, self.golden
        for step, digests in sorted(golden.digests.items()):
            if step <= first.restored_step or not digests:
                continue
            if step not in first.digests:
                return "" if first.unheard else f"it did not do step {step}"
            part = first_difference(digests, first.digests[step])
            if part:
                return f"{part} is {first.digests[step][part]} after step {step}, and {digests[part]} in the uninterrupted run"
        return ""


def end_of(recovery: Recovery) -> int:
    """The step that it ended at: the last that it did, or that which it restored where nothing was left to do; -1: not said."""
    return max(recovery.final_step, recovery.restored_step)


def first_difference(left: Mapping[str, str], right: Mapping[str, str]) -> str:
    """The first part that both say and that differs; empty when there is none."""
    return next((part for part in sorted(left.keys() & right.keys()) if left[part] != right[part]), "")
