"""The samples of the retained steps are those of the uninterrupted run, each once, in the same order."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.successions import name_of_life
from harness.history import StepDone
from harness.lineage import Incarnation, Lineage
from harness.scenario.expectations import ExactlyOnceData
from harness.verdict import Finding

CHECKER = "exactly-once-data"

Batch = tuple[int, ...]
"""Identities of the samples of one step."""

Place = tuple[int, int, int]
"""Task, rank and step."""

IDS_MAX = 8
"""Samples named in a reason: enough to see a shift or a restart."""


class _Execution(msgspec.Struct, frozen=True, gc=False):
    """One execution of one step by one rank.

    Attributes:
        place: Task, rank and step.
        life: In which life.
        resume: How many times the task had resumed by then.
        done: The step and its samples.
        is_retained: Whether it counts in the effective lineage.
    """

    place: Place
    life: Incarnation
    resume: int
    done: StepDone
    is_retained: bool

    def __str__(self) -> str:
        when = f"after resume {self.resume} from step {self.life.restored_step}" if self.resume else "before any resume"
        kept = "" if self.is_retained else ", work that was not retained"
        rank = f" on rank {self.done.rank}" if self.done.rank else ""
        return f"{name_of_life(self.life)} ({when}{kept}) took samples {_named(self.done.batch_ids)} at step {self.done.step}{rank}"


def check(_expectation: ExactlyOnceData, evidence: Evidence) -> Finding:
    """Compare every execution of every step, retained or lost, with the uninterrupted run; without one, with other executions of it."""
    ruling = Ruling()
    executions = [execution for task in evidence.lineage.tasks for execution in _executions(task, evidence.lineage)]
    nothing = "" if executions else "no step names its samples"
    compared = 0
    if evidence.golden is not None:
        compared = _compare(executions, evidence.golden.step_at, evidence, ruling)
        for task in evidence.lineage.tasks if executions else ():
            _judge_gaps(task, evidence.golden, evidence, ruling)
    elif executions:
        nothing = "there is no uninterrupted run whose order could be compared"
        _compare_replays(executions, ruling)
        _judge_epochs(executions, ruling)
    (ruling.doubts if evidence.lost_words() else ruling.broken).extend(_repetitions(executions))  # a resume may be what was not recorded
    ruling.doubt_lost(evidence.lost_words())
    retained = sum([execution.is_retained for execution in executions])
    ruling.measures = {"batches_compared": float(compared), "batches_retained": float(retained)}
    replayed = len(executions) - retained
    kept = f"{retained} retained batches are those of the uninterrupted run in its order, and {replayed} lost ones took the same samples"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _executions(task: int, lineage: Lineage) -> Iterator[_Execution]:
    lives = lineage.incarnations_of(task)
    cuts = _cuts(lives)
    resume = -1
    for life in lives:
        resume += life.restored_step is not None
        count, cut = max(resume, 0), cuts[life.number]
        for step in life.all_steps:
            if step.batch_ids:
                yield _Execution((task, step.rank, step.step), life, count, step, step.step <= cut)


def _cuts(lives: Sequence[Incarnation]) -> Mapping[int, float]:
    """For each life the step up to which its work was retained: no later life went back behind it."""
    cuts: dict[int, float] = {}
    lowest = math.inf
    for life in reversed(lives):
        cuts[life.number] = lowest
        if life.restored_step is not None:
            lowest = min(lowest, life.restored_step)
    return cuts


def _compare(executions: list[_Execution], golden: Mapping[Place, StepDone], evidence: Evidence, ruling: Ruling) -> int:
    """The first difference decides; where the uninterrupted run does not repeat itself, it proves nothing."""
    is_repeatable = evidence.golden_known is not None and evidence.golden_known.equal
    compared = different = 0
    for execution in executions:
        known = golden.get(execution.place)
        expected = known.batch_ids if known is not None else ()
        if not expected:
            ruling.doubts.append(f"{execution}, and the uninterrupted run has no such step")
            continue
        compared += 1
        if execution.done.batch_ids == expected:
            continue
        different += 1
        if different == 1:
            difference = f"{execution}, and the uninterrupted run {_named(expected)}"
            if is_repeatable:
                ruling.broken.append(difference)
            else:
                ruling.doubts.append(f"the uninterrupted run is not known to repeat itself: {difference}")
    if different > 1:
        ruling.facts.append(f"{different} of {compared} batches differ")
    return compared


def _judge_gaps(task: int, golden: Lineage, evidence: Evidence, ruling: Ruling) -> None:
    """Steps of the uninterrupted run that the retained lineage has passed over, or whose samples it does not tell, on each rank."""
    named: dict[int, list[int]] = defaultdict(list)
    for (of_task, rank, step), done in golden.step_at.items():
        if of_task == task and done.batch_ids:
            named[rank].append(step)
    for rank in sorted(named):
        retained = evidence.lineage.retained_steps(task, rank)
        last = max([step.step for step in retained], default=0)
        owed = sorted(step for step in named[rank] if step <= last)
        _judge_passed_over(owed, retained, evidence, ruling)
        silent = sorted({step.step for step in retained if not step.batch_ids}.intersection(owed))
        if silent:
            ruling.doubts.append(f"task {task} rank {rank}: step {silent[0]} does not tell its samples; {len(silent)} do not in all")


def _judge_passed_over(owed: Sequence[int], retained: Sequence[StepDone], evidence: Evidence, ruling: Ruling) -> None:
    """Nobody has trained on the samples of a step that is not there."""
    executed = {step.step for step in retained}
    missing = [step for step in owed if step not in executed]
    if not missing:
        return
    task, rank, last = retained[-1].task, retained[-1].rank, max(executed)
    saved = {event.step for life in evidence.lineage.incarnations_of(task) for event in life.saves_begun}
    where = f"task {task} rank {rank}" if rank else f"task {task}"
    gap = f"{where}: step {missing[0]} is not among the retained steps up to {last}; {len(missing)} are missing in all"
    if saved.issuperset(missing):
        notes = ruling.facts if rank else ruling.doubts  # rank 0 saves, and need not wait until the others have told what they did
        notes.append(f"{gap}: it was saved, so it was executed, and a kill came before it could be said")
    else:
        (ruling.doubts if evidence.lost_words() else ruling.broken).append(gap)  # it may be among what was not recorded


def _repetitions(executions: list[_Execution]) -> Iterator[str]:
    """A step that is retained twice has put its samples into the state twice."""
    counts = Counter([each.place for each in executions if each.is_retained])
    if not counts or max(counts.values()) == 1:
        return
    for each in executions:
        if each.is_retained and counts[each.place] > 1:
            yield f"{each}, which is retained {counts[each.place]} times"
            return


def _compare_replays(executions: list[_Execution], ruling: Ruling) -> None:
    first: dict[Place, _Execution] = {}
    for execution in executions:
        before = first.setdefault(execution.place, execution)
        if execution.done.batch_ids != before.done.batch_ids:
            ruling.broken.append(f"{execution}, and {_named(before.done.batch_ids)} in attempt {before.life.attempt}")
            return


def _judge_epochs(executions: list[_Execution], ruling: Ruling) -> None:
    """No sample twice in an epoch, whose size shows where the first life, which nobody disturbed, took its first sample again."""
    for task in sorted({each.done.task for each in executions}):
        of_first_rank = [each for each in executions if (each.done.task, each.done.rank) == (task, 0)]
        size = _epoch_size([sample for each in of_first_rank if each.resume == 0 for sample in each.done.batch_ids])
        epoch: set[int] = set()
        retained = [(each, sample) for each in of_first_rank if size and each.is_retained for sample in each.done.batch_ids]
        for taken, sample in retained:
            if sample in epoch:
                ruling.broken.append(f"{taken}: sample {sample} came twice in an epoch of {size} samples")
                return
            epoch.add(sample)
            if len(epoch) == size:
                epoch.clear()


def _epoch_size(samples: Sequence[int]) -> int:
    """How many samples come before the first that came before; 0 when none came twice."""
    seen: set[int] = set()
    for sample in samples:
        if sample in seen:
            return len(seen)
        seen.add(sample)
    return 0


def _named(ids: Batch) -> str:
    more = f" and {len(ids) - IDS_MAX} more" if len(ids) > IDS_MAX else ""
    return "(" + ", ".join(map(str, ids[:IDS_MAX])) + more + ")"
