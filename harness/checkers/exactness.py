"""Each part of the state at each step is, bit for bit, that of the uninterrupted run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.checkers.evidence import Evidence, Ruling, unknown
from harness.checkers.states import State, first_difference
from harness.checkers.successions import name_of_life
from harness.history import Inspected, Restored, StepDone
from harness.lineage import Incarnation, Lineage
from harness.scenario.expectations import BitExactResume
from harness.verdict import Finding

CHECKER = "bit-exact-resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A state of the run and the state of the uninterrupted run that it must equal.

    Attributes:
        where: Attempt, rank, what was done, step and moment.
        mine, golden: Fingerprints.
        is_after_resume: Whether it says something of a resume: a step after one, or a restore where nothing was left to train.
    """

    where: str
    mine: State
    golden: State
    is_after_resume: bool


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
        missing = [part for part in _owed_parts(expectation, pair) if part not in pair.mine or part not in pair.golden]
        if missing and len(missing) == len(_owed_parts(expectation, pair)):
            continue
        if missing and not ruling.doubts:
            ruling.doubts.append(f"{pair.where}: {missing[0]} is reported by only one of the two runs")
        compared += 1
        after_resume += pair.is_after_resume
        part = first_difference(pair.mine, pair.golden, expectation.parts)
        different += bool(part)
        if part and different == 1:
            ruling.broken.append(f"{pair.where}: {part} is {pair.mine[part]}, and {pair.golden[part]} in the uninterrupted run")
    if different > 1:
        ruling.facts.append(f"{different} of {compared} compared states differ")
    ruling.doubt_lost(evidence.lost("events"))
    ruling.measures = {
        "states_compared": float(compared),
        "states_compared_after_resume": float(after_resume),
        "states_different": float(different),
    }
    nothing = "" if after_resume else _nothing(compared, evidence)
    kept = f"{compared} states equal those of the uninterrupted run, {after_resume} of them after a resume"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _owed_parts(expectation: BitExactResume, pair: _Pair) -> tuple[str, ...]:
    return expectation.parts or tuple(sorted(pair.mine.keys() | pair.golden.keys()))


def _nothing(compared: int, evidence: Evidence) -> str:
    if compared:
        return f"{compared} states equal those of the uninterrupted run, none of them after a resume: nothing was proved of resuming"
    failed = next((event for event in evidence.events if isinstance(event, Inspected) and event.step < 0), None)
    why = f"; the inspection failed: {failed.detail}" if failed is not None else ""
    return f"no state has a fingerprint in both runs{why}"


def _pairs(lineage: Lineage, golden: Lineage) -> Iterator[_Pair]:
    known = {
        (step.task, step.rank, step.step): step.digests
        for task in golden.tasks
        for life in golden.incarnations_of(task)
        for step in life.all_steps
        if step.digests
    }
    for task in lineage.tasks:
        for life in lineage.incarnations_of(task):
            yield from _pairs_of_life(life, known)
    inspected = {(event.task, event.step): event.digests for event in golden.events if isinstance(event, Inspected)}
    for event in lineage.events:
        if isinstance(event, Inspected) and event.digests and (event.task, event.step) in inspected:
            where = f"the checkpoint that attempt {event.attempt} of task {event.task} left, inspected, of step {event.step}"
            yield _Pair(where=where, mine=event.digests, golden=inspected[event.task, event.step], is_after_resume=event.attempt > 0)


def _pairs_of_life(life: Incarnation, known: Mapping[tuple[int, int, int], State]) -> Iterator[_Pair]:
    has_nothing_left = not life.all_steps
    for event in life.events:
        if not isinstance(event, Restored | StepDone) or not event.digests:
            continue
        golden = known.get((event.task, event.rank, event.step))
        if golden is None:
            continue
        is_step = isinstance(event, StepDone)
        what = f"{'executed' if is_step else 'restored'} step {event.step} at {event.t_s:.2f} s"
        is_after_resume = life.number > 0 and (is_step or (has_nothing_left and life.done is not None))
        yield _Pair(
            where=f"{name_of_life(life)} rank {event.rank} {what}", mine=event.digests, golden=golden, is_after_resume=is_after_resume
        )
