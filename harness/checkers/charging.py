"""What was charged to the retry budget of the submitted object: failures of its own, and no eviction by the queue.

jobset#1117: preemptions by Kueue were counted as restarts, until the budget was used up and the job failed for good.
"""

from collections.abc import Iterator, Sequence

from harness.checkers.cluster import admissions_of, doubt_end, tasks_of, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, SubmissionSeen
from harness.lineage import Charge, read_charges
from harness.scenario.expectations import ChargesRetries
from harness.verdict import Finding

CHECKER = "charges-retries"


def check(expectation: ChargesRetries, evidence: Evidence) -> Finding:
    """Follow the count of failures of each object; one that was made anew begins again from 0."""
    ruling = Ruling()
    doubt_end(evidence, ruling)
    failed = evictions = 0
    for task in tasks_of(evidence):
        seen = [event for event in evidence.of_type(SubmissionSeen) if event.task == task and event.t_s <= evidence.looked_s]
        if not seen:
            ruling.doubts.append(f"task {task}: {unseen('no submitted object', evidence)}")
            continue
        charges = list(read_charges(seen))
        total = sum(charge.failed for charge in charges)
        failed, evictions = failed + total, evictions + len(_evicted_s(task, evidence))
        ruling.facts += [f"task {task}: {charge.failed} failures were charged by {charge.t_s:.2f} s" for charge in charges]
        if total > expectation.failed_max:
            ruling.broken.append(f"task {task}: {total} failures were charged to {seen[-1].name}, {expectation.failed_max} are allowed")
        ruling.broken += _charged_evictions(task, charges, evidence)
    ruling.measures = {"failures_charged": float(failed), "evictions": float(evictions)}
    kept = f"failures charged to backoffLimit: {failed}, of at most {expectation.failed_max} a task; evictions, uncharged: {evictions}"
    return ruling.conclude(CHECKER, kept)


def _evicted_s(task: int, evidence: Evidence) -> Sequence[tuple[float, float, str]]:
    """When the task was evicted, when it was admitted again, and by what."""
    admissions = admissions_of(task, evidence)
    evicted = [each for each in admissions if each.ended_s is not None and not each.end.startswith("finished")]
    later = {each.number: each.admitted_s for each in admissions}
    return [(each.ended_s or 0.0, later.get(each.number + 1, float("inf")), each.end) for each in evicted]


def _charged_evictions(task: int, charges: Sequence[Charge], evidence: Evidence) -> Iterator[str]:
    """Charges that came up while the task was evicted, and that no death of the job itself explains."""
    ends = [event for event in evidence.of_type(AttemptExited) if event.task == task and event.cause == "job"]
    deaths_s = [event.t_s for event in ends if event.exit_code != 0]
    for charge in charges:
        by_job = sum(charge.before_s <= death_s <= charge.t_s for death_s in deaths_s)
        for evicted_s, admitted_s, why in _evicted_s(task, evidence):
            if evicted_s <= charge.t_s <= admitted_s and charge.failed > by_job:
                told = f"task {task}: {charge.failed} failures were charged at {charge.t_s:.2f} s"
                yield f"{told} for the eviction at {evicted_s:.2f} s ({why})"
