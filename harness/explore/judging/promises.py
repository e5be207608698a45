"""The promises, one function each, all of them pure: kept, broken, not known, or nothing to check (None)."""

from collections.abc import Callable, Mapping

from harness.explore.judgement import Recovery
from harness.explore.judging.acknowledgements import keeps
from harness.explore.judging.case import Case, end_of, first_difference
from harness.explore.judging.rulings import (
    COMPLETES,
    KEEPS,
    KEEPS_GOOD,
    KEPT,
    RECOVERS,
    RESTORES,
    SAVES,
    TWICE,
    Ruling,
    broken,
    doubtful,
    unknown,
)
from harness.explore.judging.wording import how_it_ended, steps_in_words


def _recovers(case: Case) -> Ruling:
    """It ends by itself, with 0."""
    if case.ended_well:
        return KEPT
    how = how_it_ended(case.first)
    waits = _may_wait(case, case.first, case.second)
    if waits:
        return unknown(RECOVERS, f"{how}; {waits}")
    if case.second is None:
        return broken(RECOVERS, how)
    if case.second.exit_code == 0:
        return broken(RECOVERS, f"{how}; the next one came through")
    again = how_it_ended(case.second)
    says = "the next one, on what it left, did not either" if again == how else f"nor did the next one, on what it left: {again}"
    return broken(RECOVERS, f"{how}; {says}")


def _may_wait(case: Case, recovery: Recovery, following: Recovery | None) -> str:
    """Why one that did not end in a time that nobody but us has set may only wait for something; empty: it does not seem to."""
    came_through = following is not None and following.exit_code == 0
    if case.expected.is_timeout_given or not recovery.timed_out or not (came_through or recovery.slept):
        return ""
    seen = "the next one came through" if came_through else "it slept for the last half of that"
    return f"{seen}, so it may only have waited; say how long one may take, with --recovery-timeout SECONDS or recovery_timeout_s"


def _restores(case: Case) -> Ruling:
    """What is in memory after restoring is what was in memory before the save, not what the same library makes of its files."""
    step, digests = case.first.restored_step, case.first.restored_digests
    if step <= 0:
        return None
    if case.expected.was_begun(step, case.at) is False:
        return broken(RESTORES, f"it restored step {step}, of which no save had been begun")
    told = case.expected.digests_at(step, case.at)
    if not told or not digests:
        return None
    part = first_difference(told, digests)
    if part:
        return broken(RESTORES, f"it restored step {step} with {part} {digests[part]}; in memory it was {told[part]} before the save")
    missing = sorted(told.keys() - digests.keys())
    if missing:
        return unknown(RESTORES, f"it restored step {step} and does not say what {', '.join(missing)} is")
    return KEPT


def _completes(case: Case) -> Ruling:
    """It ends where the uninterrupted run ends, with the same bytes; a difference counts only where that run repeats itself."""
    if not case.ended_well:
        return None
    first, golden = case.first, case.golden
    if golden.done and not first.done:
        return doubtful(case, COMPLETES, f"it left with 0 at step {end_of(first)} and did not say that it was done")
    if min(end_of(first), end_of(golden)) >= 0 and end_of(first) != end_of(golden):
        return doubtful(case, COMPLETES, f"it ended at step {end_of(first)}, the uninterrupted run at step {end_of(golden)}")
    if case.expected.golden_differs:
        return unknown(COMPLETES, f"no difference from the uninterrupted run would prove anything: {case.expected.golden_differs}")
    if golden.result and first.result != golden.result:
        what = f"its result is {first.result[:16]}" if first.result else "it left no result"
        return broken(COMPLETES, f"{what}, and {golden.result[:16]} in the uninterrupted run")
    differing = case.first_differing_step()
    if differing:
        return broken(COMPLETES, differing)
    return KEPT if case.compared_with_golden() or min(end_of(first), end_of(golden)) >= 0 else None


def _saves(case: Case) -> Ruling:
    """After the restored step it saves every step that the uninterrupted run saves, but for those whose checkpoints stand already."""
    first = case.first
    if not case.ended_well or first.restored_step < 0:
        return None
    owed = [save.step for save in case.golden.saves if save.step > first.restored_step and save.step not in case.standing]
    if not owed:
        return None
    missing = sorted(set(owed) - {save.step for save in first.saves})
    if not missing:
        return KEPT
    saved = steps_in_words(save.step for save in first.saves)
    where = f"after step {first.restored_step}" if first.restored_step else "from scratch"
    says = f"{where} it saved {saved}; owed were {steps_in_words(owed)}"
    if case.expected.golden_differs:
        return unknown(SAVES, f"{says}; but no difference from the uninterrupted run proves anything: {case.expected.golden_differs}")
    return doubtful(case, SAVES, says)


def _keeps_good(case: Case) -> Ruling:
    """What was a good checkpoint before recovery, or was made by it, can be restored afterwards."""
    first, second = case.first, case.second
    before, after = first.inspected_before, first.inspected_after
    is_kept = False
    if before is not None and after is not None and before > 0:
        if after < before:
            left = f"is of step {after}" if after > 0 else "is gone"
            return broken(KEEPS_GOOD, f"step {before} was good before recovery, and what is good afterwards {left}")
        is_kept = True
    good = max(case.promised, first.restored_step, *(save.step for save in first.saves), 0)
    if second is None or good == 0 or case.keeps_nothing_when_complete:
        return KEPT if is_kept else None
    if 0 <= second.restored_step < good:
        where = f"went on from step {second.restored_step}" if second.restored_step else "started from scratch"
        return broken(KEEPS_GOOD, f"step {good} was good, and after recovery the next one {where}")
    newest = case.newest_start(second)
    if newest is not None and newest < good:
        return broken(KEEPS_GOOD, f"step {good} was good, and after recovery the next one did step {min(second.digests)} again")
    return KEPT if is_kept or second.restored_step >= 0 else None


def _twice(case: Case) -> Ruling:
    """A second recovery, on what the first one left, ends where the first one did."""
    first, second = case.first, case.second
    if second is None or not case.ended_well:
        return None
    if second.exit_code != 0:
        says, waits = f"the first one came through; the second, on what it left: {how_it_ended(second)}", _may_wait(case, second, None)
        return unknown(TWICE, f"{says}; {waits}") if waits else broken(TWICE, says)
    if first.result != second.result:
        results = [each.result[:16] or "missing" for each in (first, second)]
        says = f"the result is {results[0]} after the first one and {results[1]} after the second"
        if case.expected.golden_differs:
            return unknown(TWICE, f"{says}; but it does not repeat itself without a crash either: {case.expected.golden_differs}")
        return broken(TWICE, says)
    if min(end_of(first), end_of(second)) >= 0 and end_of(first) != end_of(second):
        return doubtful(case, TWICE, f"the first one ended at step {end_of(first)}, the second at step {end_of(second)}")
    step = second.restored_step
    part = first_difference(first.digests.get(step, {}), second.restored_digests)
    if part:
        return broken(TWICE, f"the second one restored step {step} with another {part} than the first one had in memory")
    return KEPT if first.result or min(end_of(first), end_of(second)) >= 0 else None


CHECKS: Mapping[str, Callable[[Case], Ruling]] = {
    RECOVERS: _recovers,
    RESTORES: _restores,
    KEEPS: keeps,
    COMPLETES: _completes,
    SAVES: _saves,
    KEEPS_GOOD: _keeps_good,
    TWICE: _twice,
}
