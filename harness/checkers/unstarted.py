"""Why a task never ran, or why its pods ended: in Kubernetes' own words, for the job has none of its own there."""

from harness.checkers.cluster import is_on_cluster
from harness.checkers.evidence import Evidence
from harness.history import ClusterEventSeen, PodSeen, SubmissionSeen, WorkloadSeen

WAITING = ("Pending", "Deleted")
"""Phases of a pod that say nothing of its having run."""

WHY_NOT = "Failed"
"""Begins the reasons of events that tell why something is not made, bound or begun: ``FailedCreate``, ``FailedScheduling``,
``FailedMount``, ``FailedToCreateWorkerPod``. Others, as ``BackOff``, tell what came of that.

Source: kubernetes, pkg/kubelet/events/event.go, pkg/controller/controller_utils.go; kuberay, controllers/ray/utils/constant.go.
"""


def was_submitted(task: int, evidence: Evidence) -> bool:
    """Whether anything of a task was seen; on a cluster it is submitted some time after the start, elsewhere with it."""
    seen = (event.task == task for kind in (SubmissionSeen, WorkloadSeen, PodSeen) for event in evidence.of_type(kind))
    return not is_on_cluster(evidence) or bool(evidence.lineage.attempts_of(task)) or any(seen)


def why_never_run(task: int, evidence: Evidence) -> str:
    """That a task never ran, and what Kubernetes and Kueue say of it; empty when it ran, or nothing is said."""
    if not is_on_cluster(evidence) or _has_run(task, evidence):
        return ""
    words = [told for told in (_warning(task, evidence), _note(task, evidence)) if told]
    return f"task {task} never ran: {'; '.join(words)}" if words else ""


def why_pods_ended(task: int, evidence: Evidence) -> str:
    """What Kubernetes says of the last pod of a task that failed, or does not begin; empty when it says nothing of any."""
    end_s = evidence.looked_s
    told: dict[str, PodSeen] = {}
    for seen in evidence.of_type(PodSeen):
        if seen.task != task or seen.t_s > end_s:
            continue
        if seen.phase in ("Running", "Succeeded") and not seen.reason:
            told.pop(seen.name, None)  # what had kept it from that is over
        elif seen.reason:
            told[seen.name] = seen
    if not told:
        return ""
    last = max(told.values(), key=lambda seen: seen.t_s)
    code = "" if last.exit_code is None else f", exit code {last.exit_code}"
    alike = sum(seen.reason == last.reason for seen in told.values())
    others = f" (the last of {alike} pods that ended so)" if alike > 1 else ""
    return f"pod {last.name}: {last.reason}{code}{others}{_failure(last.name, evidence)}"


def _failure(pod: str, evidence: Evidence) -> str:
    """The last event that tells why a container of a pod did not begin."""
    telling = [event for event in _warnings(evidence) if event.object_name == f"Pod/{pod}" and event.reason.startswith(WHY_NOT)]
    return f": {' '.join(telling[-1].message.split())}" if telling else ""


def _has_run(task: int, evidence: Evidence) -> bool:
    """An attempt of a RayJob begins with its head, while its hosts may never come, or not all: its driver waits for them."""
    attempts = evidence.lineage.attempts_of(task)
    is_ray = any(event.object_kind == "RayJob" for event in evidence.of_type(SubmissionSeen) if event.task == task)
    if not is_ray or any(life.events for attempt in attempts for life in attempt.incarnations):
        return bool(attempts)
    seen = [pod for pod in evidence.of_type(PodSeen) if pod.task == task and pod.role == "host"]
    hosts, ran = {pod.name for pod in seen}, {pod.name for pod in seen if pod.phase not in WAITING}
    if not hosts:
        return bool(attempts) and not _warning(task, evidence)
    return ran == hosts or bool(ran and not evidence.scenario.workload.speaks_protocol)


def _warning(task: int, evidence: Evidence) -> str:
    """The last event that warns of what keeps its objects from running."""
    names = _names_of(task, evidence)
    mine = [event for event in _warnings(evidence) if _is_of(event.object_name, names)]
    telling = [event for event in mine if event.reason.startswith(WHY_NOT)] or mine
    return f"{telling[-1].object_name}: {telling[-1].reason}: {' '.join(telling[-1].message.split())}" if telling else ""


def _warnings(evidence: Evidence) -> list[ClusterEventSeen]:
    """Those of the run; what comes later is of our own healing and cleaning."""
    end_s = evidence.looked_s
    return [event for event in evidence.of_type(ClusterEventSeen) if event.is_warning and event.t_s <= end_s]


def _names_of(task: int, evidence: Evidence) -> set[str]:
    """Of its object and of what that makes, which is named after it. What Kueue says of the workload is in its conditions."""
    submitted = [event for event in evidence.of_type(SubmissionSeen) if event.task == task]
    pods = {event.name for event in evidence.of_type(PodSeen) if event.task == task}
    return {event.name for event in submitted} | {event.ray_cluster for event in submitted if event.ray_cluster} | pods


def _is_of(object_name: str, names: set[str]) -> bool:
    kind, _, name = object_name.partition("/")
    return kind != "Workload" and any(name == own or name.startswith(f"{own}-") for own in names)


def _note(task: int, evidence: Evidence) -> str:
    """What Kueue said last of its place in the queue."""
    end_s = evidence.looked_s
    stays = [stay for stay in evidence.lineage.stays_of(task) if stay.begin_s <= end_s]
    said = [(note, stay.state) for stay in stays for t_s, note in stay.notes if t_s <= end_s]
    return f"its workload was {said[-1][1]}: {said[-1][0]}" if said else ""
