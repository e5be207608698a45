"""The faults of an incident on a cluster, and how the emulated parts of a cluster answer as the platform did then."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.incidents.diagnosis import Diagnosis, DiagnosisKind
from harness.incidents.entries import Entry
from harness.incidents.timeline import AttemptStory, Timeline
from harness.incidents.timestamps import NANOSECONDS, read_timestamp
from harness.scenario import Cluster, Fault, Injection, Phase, ProvisioningScript, Trigger
from harness.scenario.cluster_faults import (
    EvictWorkload,
    InterruptNode,
    LoseNode,
    OccupyCapacity,
    PreemptWorkload,
    RevokeCapacity,
)
from harness.scenario.triggers import AtStep, AtSubmission, OnCondition

STOCKOUT_S_MAX = 600.0
"""A stockout of days is played with ten minutes: that the job waits is what is tried."""

_FAULTS: Mapping[DiagnosisKind, Callable[[], Fault]] = {
    "evicted": EvictWorkload,
    "preempted-in-the-queue": PreemptWorkload,
    "node-maintenance": InterruptNode,
    "host-error": LoseNode,
    "node-preempted": lambda: InterruptNode(profile="gke-spot"),
    "capacity-revoked": RevokeCapacity,
}


def cluster_injections(
    diagnoses: Sequence[Diagnosis], timeline: Timeline, step_before: Callable[[AttemptStory, Entry], int]
) -> list[Injection]:
    """The faults, each where the job was then; what kept it waiting acts before it is submitted."""
    found: list[Injection] = []
    if any(diagnosis.kind == "fell-back-to-dws" for diagnosis in diagnoses):
        found.append(Injection(fault=OccupyCapacity(), at=AtSubmission(), name="on-demand-quota-is-taken"))
    hits = [(diagnosis, _FAULTS[diagnosis.kind]) for diagnosis in diagnoses if diagnosis.kind in _FAULTS and diagnosis.evidence]
    for number, (diagnosis, fault) in enumerate(sorted(hits, key=lambda hit: hit[0].evidence[0].at), start=1):
        attempt, trigger = _moment(read_timestamp(diagnosis.evidence[0].at), timeline, step_before)
        found.append(Injection(fault=fault(), at=trigger, attempts=(min(attempt, 3),), name=f"{number}-{diagnosis.kind}"))
    return found


def cluster_notes(diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
    """What no fault of a cluster can do."""
    for kind in ("out-of-memory", "retries-exhausted", "failed-by-itself"):
        if any(diagnosis.kind == kind for diagnosis in diagnoses):
            yield f"{kind}: no fault does that, the job has to do it again by itself"


def _moment(t_ns: int, timeline: Timeline, step_before: Callable[[AttemptStory, Entry], int]) -> tuple[int, Trigger]:
    """In which attempt, and at which step; where the job said nothing yet, as soon as it is admitted."""
    begun = [story for story in timeline.attempts if story.first.t_ns <= t_ns]
    if begun:
        last = max((each.entry for each in begun[-1].seen if each.entry.t_ns <= t_ns), key=lambda entry: entry.t_ns)
        step = step_before(begun[-1], last)
        if step:
            return begun[-1].number, AtStep(step=step)
    return 0, OnCondition(of="workload", condition="Admitted")


def cluster_of(diagnoses: Sequence[Diagnosis], timeline: Timeline, *, speed: float) -> Cluster:
    """How long the emulated DWS says that there is no capacity."""
    stockout = next((diagnosis for diagnosis in diagnoses if diagnosis.kind == "stockout" and diagnosis.evidence), None)
    if timeline.platform != "kubernetes" or stockout is None:
        return Cluster()
    since_ns = read_timestamp(stockout.evidence[0].at)
    until_ns = max(read_timestamp(each.at) for each in stockout.evidence)
    waited_s = min(max((until_ns - since_ns) / NANOSECONDS / speed, 1.0), STOCKOUT_S_MAX)
    phases = (Phase(state="stockout", after_s=0.0), Phase(state="granted", after_s=round(waited_s, 3)))
    return Cluster(provisioning=(ProvisioningScript(phases=phases),))
