"""Each task is one object for the whole run: whatever happened to it, nobody submitted it again."""

from collections.abc import Sequence

from harness.checkers.cluster import doubt_end, tasks_of, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import SubmissionSeen, WorkloadSeen
from harness.scenario.expectations import SubmittedOnce
from harness.verdict import Finding, counted

CHECKER = "submitted-once"

DOUBLED_WITHIN_S = 5.0
"""Between the two looks lie milliseconds; a workload that is made anew long after is another matter, as when somebody deleted the first."""

ADVICE = "write no field of an elastic RayJob at its zero value, like `readOnly: false`"


def check(_expectation: SubmittedOnce, evidence: Evidence) -> Finding:
    """Count the objects of each task by their uid: one of the same name that was made anew is another one."""
    ruling = Ruling()
    doubt_end(evidence, ruling)
    objects = 0
    for task in tasks_of(evidence):
        seen = [event for event in evidence.of_type(SubmissionSeen) if event.task == task]
        if not seen:
            ruling.doubts.append(f"task {task}: {unseen('no submitted object', evidence)}")
            continue
        first_seen = {event.uid: event for event in reversed(seen)}
        objects += len(first_seen)
        ruling.facts += [_told(task, event) for event in sorted(first_seen.values(), key=lambda event: event.t_s)]
        if len(first_seen) > 1:
            ruling.broken.append(f"task {task} was submitted {len(first_seen)} times: {_listed(list(first_seen.values()))}")
        ruling.broken += _doubled(task, evidence)
    ruling.measures = {"objects": float(objects)}
    return ruling.conclude(CHECKER, f"{counted(objects, 'object')} for {counted(len(tasks_of(evidence)), 'task')}, none submitted again")


def _doubled(task: int, evidence: Evidence) -> list[str]:
    """A second workload right after a first one that it does not replace: Kueue has queued one object twice.

    Kueue 0.17 and 0.19 name the workload of an elastic RayJob by the generation of the RayJob. KubeRay's first update drops the fields that
    are written at their zero value, which makes another generation: where Kueue looks again before it has seen its own first workload, it
    makes a second one, and the RayJob may follow neither. One that grows gets one more too, which names the one that it replaces.

    Source: sigs.k8s.io/kueue v0.17.0, ``GetWorkloadNameExtraPart`` (pkg/controller/jobs/raycluster/common.go), ``EnsureWorkloadSlices``
        (pkg/workloadslicing/workloadslicing.go); kuberay v1.5.0, ray-operator/controllers/ray/rayjob_controller.go (the finalizer).
    """
    unfinished: dict[str, WorkloadSeen] = {}  # as each was first seen
    known, found = set[str](), list[str]()
    for seen in (event for event in evidence.of_type(WorkloadSeen) if event.task == task):
        if seen.uid not in known:
            beside = [] if seen.replaces else [one for one in unfinished.values() if seen.t_s - one.t_s < DOUBLED_WITHIN_S]
            found += [
                f"Kueue made a second workload of task {task}, {seen.name} at {seen.t_s:.2f} s, beside {first.name} of {first.t_s:.2f} s: "
                f"one object queued twice is Kueue's mistake, not the job's; {ADVICE}"
                for first in beside
            ]
            known.add(seen.uid)
            unfinished[seen.uid] = seen
        if seen.holds("Finished"):
            unfinished.pop(seen.uid, None)
    return found


def _told(task: int, seen: SubmissionSeen) -> str:
    return f"task {task}: {seen.object_kind} {seen.name} (uid {seen.uid}) since {seen.t_s:.2f} s"


def _listed(seen: Sequence[SubmissionSeen]) -> str:
    in_order = sorted(seen, key=lambda event: event.t_s)
    return ", ".join(f"{event.name} (uid {event.uid}) at {event.t_s:.2f} s" for event in in_order)
