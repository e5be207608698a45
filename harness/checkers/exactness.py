"""Each part of the state at each step is, bit for bit, that of the uninterrupted run."""

from collections.abc import Iterator, Mapping

import msgspec

from harness.checkers.evidence import Evidence, Ruling, unknown
from harness.checkers.states import State, first_difference
from harness.checkers.successions import name_of_life
from harness.history import Inspected, Restored, StepDone
from harness.lineage import Incarnation, Lineage
from harness.scenario.expectations import BitExactResume
from harness.verdict import Finding, counted

CHECKER = "bit-exact-resume"


class _Pair(msgspec.Struct, frozen=True, gc=False):
    """A state of the run and the state of the uninterrupted run that it must equal.

    Attributes:
        event: Says the state.
        life: Which did; None for an inspection.
        golden: Fingerprints of the uninterrupted run.
        is_after_resume: Whether it says something of a resume: a step after one, or a restore where nothing was left to train.
    """

    event: StepDone | Restored | Inspected
    life: Incarnation | None
    golden: State
    is_after_resume: bool

    def __str__(self) -> str:
        event = self.event
        if self.life is None or isinstance(event, Inspected):
            return f"the checkpoint that attempt {event.attempt} of task {event.task} left, inspected, of step {event.step}"
        verb = "executed" if isinstance(event, StepDone) else "restored"
        return f"{name_of_life(self.life)} rank {event.rank} {verb} step {event.step} at {event.t_s:.2f} s"


def check(expectation: BitExactResume, evidence: Evidence) -> Finding:
    """Compare every step of every life, retained or lost, and every restore, in the order of execution; a tolerance is never granted."""
    known = evidence.golden_known
    if evidence.golden is None or known is None:
        return unknown(CHECKER, "there is no uninterrupted run to compare with")
    if not known.equal:
        return unknown(
            CHECKER, f"the uninterrupted run is not known to repeat itself, so no difference would prove anything: {known.detail}"
        )
    ruling = Ruling()
    compared = after_resume = different = 0
    for pair in _pairs(evidence.lineage, evidence.golden):
        mine = pair.event.digests
        if not expectation.parts and mine == pair.golden:
            compared, after_resume = compared + 1, after_resume + pair.is_after_resume
            continue
        owed = expectation.parts or tuple(sorted(mine.keys() | pair.golden.keys()))
        missing = [part for part in owed if part not in mine or part not in pair.golden]
        if len(missing) == len(owed):
            continue
        if missing and not ruling.doubts:
            ruling.doubts.append(f"{pair}: {missing[0]} is reported by only one of the two runs")
        compared += 1
        after_resume += pair.is_after_resume
        part = first_difference(mine, pair.golden, expectation.parts)
        different += bool(part)
        if part and different == 1:
            ruling.broken.append(f"{pair}: {part} is {mine[part]}, and {pair.golden[part]} in the uninterrupted run")
    if different > 1:
        ruling.facts.append(f"{different} of {compared} compared states differ")
    ruling.doubts += _failed_inspections(evidence)
    ruling.doubt_lost(evidence.lost_words())
    ruling.measures = {
        "states_compared": float(compared),
        "states_compared_after_resume": float(after_resume),
        "states_different": float(different),
    }
    nothing = "" if after_resume else _nothing(compared)
    kept = f"{_equal(compared)} of the uninterrupted run, {after_resume} of them after a resume"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _nothing(compared: int) -> str:
    if compared:
        return f"{_equal(compared)} of the uninterrupted run, none of them after a resume: nothing was proved of resuming"
    return "no state has a fingerprint in both runs"


def _failed_inspections(evidence: Evidence) -> list[str]:
    """What a task has left at its end, where nobody could look into it; before its first save there may be nothing to look into."""
    last: dict[int, Inspected] = {}
    for event in sorted(evidence.of_type(Inspected), key=lambda event: event.attempt):
        last[event.task] = event
    return [
        f"the inspection of what attempt {event.attempt} of task {event.task}, the last one, left failed: {event.detail}"
        for event in last.values()
        if event.step < 0
    ]


def _pairs(lineage: Lineage, golden: Lineage) -> Iterator[_Pair]:
    for task in lineage.tasks:
        for life in lineage.incarnations_of(task):
            yield from _pairs_of_life(life, golden.step_at)
    mine = lineage.of_type(Inspected)
    inspected = {(event.task, event.step): event.digests for event in golden.of_type(Inspected)} if mine else {}
    for event in mine:
        if event.digests and (event.task, event.step) in inspected:
            yield _Pair(event, None, inspected[event.task, event.step], event.attempt > 0)


def _pairs_of_life(life: Incarnation, known: Mapping[tuple[int, int, int], StepDone]) -> Iterator[_Pair]:
    has_nothing_left = life.done is not None and not life.all_steps
    for event in life.events:
        if not isinstance(event, (StepDone, Restored)) or not event.digests:
            continue
        golden = known.get((event.task, event.rank, event.step))
        if golden is not None and golden.digests:
            is_after_resume = life.number > 0 and (isinstance(event, StepDone) or has_nothing_left)
            yield _Pair(event, life, golden.digests, is_after_resume)


def _equal(states: int) -> str:
    return f"{counted(states, 'state')} {'equals that' if states == 1 else 'equal those'}"
