"""Objects of the cluster to events of the history: what is told of each, and nothing that did not change."""

from collections.abc import Iterable, Mapping

from harness.history import (
    CheckState,
    ClusterEventSeen,
    ConditionState,
    NodeSeen,
    PodSeen,
    ProvisioningSeen,
    SubmissionSeen,
    WorkloadSeen,
)
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.kind.topology import POOL_LABEL, TPU_RESOURCE
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import Object, annotations_of, conditions_of, labels_of, name_of, uid_of
from harness.targets.kubernetes.inventory import node_of, phase_of, rank_of, role_of

TOLD_LABELS = (
    "cloud.google.com/scheduled-maintenance-time",
    "cloud.google.com/active-node-maintenance",
    "cloud.google.com/perform-maintenance",
    "autoscaling.gke.io/provisioning-request",
)
"""Labels of nodes that tell of maintenance and of provisioning; the others never change."""

REPLACES_ANNOTATION = "kueue.x-k8s.io/workload-slice-replacement-for"
"""Source: sigs.k8s.io/kueue v0.17.0, pkg/workloadslicing/workloadslicing.go."""

MESSAGE_LENGTH_MAX = 1000
"""Characters of a message that are kept: the scheduler names every node in it."""

KILLED, ABORTED, SEGMENTATION_FAULT = 137, 134, 139
"""128 + a signal that ends PID 1 of a container: others do nothing to it unless it handles them, and then it exits as it likes."""


def pod_seen(pod: Object, key: AttemptKey, t_s: float, *, pools: Mapping[str, str], is_deleted: bool = False) -> PodSeen:
    """A pod; ``pools`` are those of the nodes."""
    metadata, spec, annotations = pod["metadata"], pod.get("spec") or {}, annotations_of(pod)
    is_terminating = bool(metadata.get("deletionTimestamp"))
    grace_s = metadata.get("deletionGracePeriodSeconds")
    return PodSeen(
        t_s=t_s,
        task=key.task,
        attempt=key.attempt,
        name=name_of(pod),
        uid=uid_of(pod),
        role=role_of(pod),
        rank=rank_of(pod),
        node=node_of(pod),
        pool=pools.get(node_of(pod), ""),
        phase="Deleted" if is_deleted else phase_of(pod),
        is_ready=_status(conditions_of(pod), "Ready") == "True",
        is_terminating=is_terminating,
        reason=reason_of(pod),
        exit_code=exit_code_of(pod),
        grace_s=float(grace_s) if is_terminating and grace_s is not None else None,
        provisioning_request=annotations.get(CONSUME_ANNOTATION, ""),
        provisioning_class=annotations.get(CLASS_ANNOTATION, ""),
        selector=_pairs(spec.get("nodeSelector") or {}),
    )


def node_seen(node: Object, t_s: float, *, is_deleted: bool = False) -> NodeSeen:
    """A node."""
    spec, labels = node.get("spec") or {}, labels_of(node)
    state = _status(conditions_of(node), "Ready") or "Unknown"
    return NodeSeen(
        t_s=t_s,
        name=name_of(node),
        uid=uid_of(node),
        pool=labels.get(POOL_LABEL, ""),
        state="Deleted" if is_deleted else "True" if state == "True" else "False" if state == "False" else "Unknown",
        is_schedulable=not spec.get("unschedulable", False),
        taints=tuple(sorted(f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints") or [])),
        labels=_pairs({name: labels[name] for name in TOLD_LABELS if name in labels}),
    )


def workload_seen(workload: Object, key: AttemptKey, t_s: float) -> WorkloadSeen:
    """A workload of Kueue."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    return WorkloadSeen(
        t_s=t_s,
        task=key.task,
        attempt=key.attempt,
        name=name_of(workload),
        uid=uid_of(workload),
        queue=str(spec.get("queueName", "")),
        is_active=bool(spec.get("active", True)),
        conditions=_conditions(conditions_of(workload)),
        flavors=_flavors(status),
        checks=tuple(
            CheckState(name=check["name"], state=check["state"], message=_short(check.get("message", "")))
            for check in status.get("admissionChecks") or []
        ),
        requeues=int((status.get("requeueState") or {}).get("count", 0)),
        replaces=annotations_of(workload).get(REPLACES_ANNOTATION, ""),
    )


def provisioning_seen(request: Object, key: AttemptKey, t_s: float, *, is_deleted: bool = False) -> ProvisioningSeen:
    """A ProvisioningRequest; Kueue ends its name with the number of the attempt."""
    number = name_of(request).rpartition("-")[2]
    return ProvisioningSeen(
        t_s=t_s,
        task=key.task,
        attempt=key.attempt,
        name=name_of(request),
        uid=uid_of(request),
        number=int(number) if number.isdecimal() else 1,
        conditions=_conditions(conditions_of(request)),
        is_deleted=is_deleted,
    )


def submission_seen(thing: Object, key: AttemptKey, t_s: float, *, is_deleted: bool = False) -> SubmissionSeen:
    """A Job or a RayJob that was submitted."""
    status = thing.get("status") or {}
    is_ray = thing.get("kind") == "RayJob" or "rayClusterSpec" in (thing.get("spec") or {})
    return SubmissionSeen(
        t_s=t_s,
        task=key.task,
        attempt=key.attempt,
        object_kind="RayJob" if is_ray else "Job",
        name=name_of(thing),
        uid=uid_of(thing),
        status="Deleted" if is_deleted else str(status.get("jobDeploymentStatus", "")) if is_ray else job_status(thing),
        job_status=str(status.get("jobStatus", "")),
        reason=str(status.get("reason") or "") if is_ray else _failure_of(thing),
        failed=int(status.get("failed") or 0),
        ray_cluster=str(status.get("rayClusterName", "")),
    )


def event_seen(event: Object, t_s: float) -> ClusterEventSeen:
    """An Event."""
    concerned = event.get("involvedObject") or {}
    return ClusterEventSeen(
        t_s=t_s,
        object_name=f"{concerned.get('kind', '')}/{concerned.get('name', '')}",
        reason=str(event.get("reason", "")),
        message=_short(event.get("message", "")),
        is_warning=event.get("type") == "Warning",
    )


def job_status(job: Object) -> str:
    """Where a Job stands: ``Complete`` and ``Failed`` are for ever."""
    conditions = conditions_of(job)
    for kind in ("Complete", "Failed"):
        if _status(conditions, kind) == "True":
            return kind
    is_suspended = bool((job.get("spec") or {}).get("suspend", False))
    return "Suspended" if is_suspended else "Running"


def exit_code_of(pod: Object) -> int | None:
    """Of its main container; None while it has not ended."""
    ended = _terminated(pod)
    return None if ended is None else int(ended.get("exitCode", 0))


def reason_of(pod: Object) -> str:
    """Why a pod does not run or how it ended, by the most telling of the places where that stands."""
    status = pod.get("status") or {}
    ended = _terminated(pod) or {}
    waiting = [(container.get("state") or {}).get("waiting") or {} for container in status.get("containerStatuses") or []]
    disrupted = next((one for one in conditions_of(pod) if one["type"] == "DisruptionTarget" and one["status"] == "True"), {})
    unscheduled = next((one for one in conditions_of(pod) if one["type"] == "PodScheduled" and one["status"] == "False"), {})
    told = (status, disrupted, {} if ended.get("reason") == "Completed" else ended, *waiting, unscheduled)
    return next((str(one["reason"]) for one in told if one.get("reason")), "")


def has_started(pod: Object) -> bool:
    """Whether its main container runs or has run."""
    state = _main_state(pod)
    return "running" in state or "terminated" in state


def signal_in(exit_code: int) -> int | None:
    """The signal that an exit code of PID 1 stands for; None: it has exited by itself."""
    return exit_code - 128 if exit_code in (KILLED, ABORTED, SEGMENTATION_FAULT) else None


def pool_of(node: Object) -> str:
    """The pool of a node; empty for the control plane."""
    return labels_of(node).get(POOL_LABEL, "")


def _terminated(pod: Object) -> Object | None:
    ended: Object | None = _main_state(pod).get("terminated")
    return ended


def _main_state(pod: Object) -> Object:
    """State of the first container: sidecars come after it."""
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    found: Object = next((status for status in statuses if status.get("name") == containers[0].get("name")), {})
    state: Object = found.get("state") or {}
    return state


def _failure_of(job: Object) -> str:
    return next((str(one.get("reason", "")) for one in conditions_of(job) if one["type"] == "Failed" and one["status"] == "True"), "")


def _flavors(status: Object) -> dict[str, str]:
    assigned: dict[str, str] = {}
    for pod_set in (status.get("admission") or {}).get("podSetAssignments") or []:
        flavors = pod_set.get("flavors") or {}
        assigned[str(pod_set.get("name", ""))] = str(flavors.get(TPU_RESOURCE) or flavors.get("cpu") or "")
    return assigned


def _conditions(conditions: Iterable[Object]) -> tuple[ConditionState, ...]:
    return tuple(
        ConditionState(
            type=str(one["type"]), status=str(one["status"]), reason=str(one.get("reason", "")), message=_short(one.get("message", ""))
        )
        for one in conditions
    )


def _status(conditions: Iterable[Object], kind: str) -> str:
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def _pairs(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in sorted(labels.items()))


def _short(message: str) -> str:
    return message[:MESSAGE_LENGTH_MAX]
