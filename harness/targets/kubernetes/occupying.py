"""Another job in the queue that holds chips: it sleeps, and is Kueue's to admit like any."""

import hashlib
import re
from dataclasses import dataclass

from harness.kind import RUN_ID_LABEL
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.kubernetes.api import (
    JOBS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_FLAVORS,
    WORKLOADS,
    Api,
    Object,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.needs import PRIORITY_LABEL, QUEUE_LABEL
from harness.undo import DeleteObject

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""On the pods of a Job. Source: https://kubernetes.io/docs/reference/labels-annotations-taints/."""

PRIORITY = 1_000_000
"""Above whatever a job of ours asks for: the guide's jobs have none, which is 0."""

POD_CHIPS_MAX = 4
"""Chips of one host of a ct6e-standard-4t: what a pod of a training job asks for."""

GRACE_S = 1
"""It has nothing to save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """A job that holds chips.

    Attributes:
        namespace: Of the run.
        name: Of the Job.
        queue: Its LocalQueue.
        flavor: Of which it takes chips.
        chips: How many.
        run_id: Of the run.
        is_preempting: Whether it has the higher priority.
    """

    namespace: str
    name: str
    queue: str
    flavor: str
    chips: int
    run_id: str
    is_preempting: bool = False


def occupant_name(injection: str) -> str:
    """What the job of an injection is called: a name that Kubernetes takes."""
    return "occupant-" + re.sub(r"[^a-z0-9]+", "-", injection.lower()).strip("-")[:40].rstrip("-")


def submit(api: Api, image: str, occupant: Occupant) -> Object:
    """Submit the job, suspended; it is admitted when Kueue has the chips. Its pods sleep in ``image``.

    Raises:
        LookupError: When there is no such flavor.
        ApiError: When the API server does not take it.
    """
    flavor = api.get(RESOURCE_FLAVORS, occupant.flavor)
    if flavor is None:
        raise LookupError(f"there is no flavor {occupant.flavor!r}")
    if occupant.is_preempting:
        api.apply(PRIORITY_CLASSES, _priority_class(occupant))
    return api.create(JOBS, _job(occupant, image, (flavor.get("spec") or {}).get("nodeLabels") or {}), occupant.namespace)


def workload_of(api: Api, job: Object) -> Object | None:
    """Kueue's workload of a Job.

    Raises:
        ApiError: When the API server does not answer.
    """
    found = api.list(WORKLOADS, job["metadata"]["namespace"])
    return next((one for one in found if is_owned_by(one, uid_of(job))), None)


def admitted_chips(workload: Object) -> dict[str, int]:
    """By flavor, the chips to which a workload is admitted; empty while it is not."""
    chips: dict[str, int] = {}
    for pod_set in ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or []:
        flavor = (pod_set.get("flavors") or {}).get(TPU_RESOURCE)
        if flavor:
            chips[flavor] = chips.get(flavor, 0) + whole_number((pod_set.get("resourceUsage") or {}).get(TPU_RESOURCE, 0))
    return chips


def is_admitted(workload: Object | None) -> bool:
    """Whether Kueue has admitted a workload."""
    conditions = ((workload or {}).get("status") or {}).get("conditions") or []
    return any((condition["type"], condition["status"]) == ("Admitted", "True") for condition in conditions)


def is_gone(api: Api, namespace: str, name: str) -> bool:
    """Whether the job is gone, with its workload, whose end frees the quota, and its pods, whose end frees the chips.

    Raises:
        ApiError: When the API server does not answer.
    """
    if api.get(JOBS, name, namespace) is not None or api.list(PODS, namespace, f"{JOB_NAME_LABEL}={name}"):
        return False
    return not any(
        owner.get("kind") == "Job" and owner.get("name") == name
        for workload in api.list(WORKLOADS, namespace)
        for owner in workload["metadata"].get("ownerReferences") or []
    )


def deletions(namespace: str, name: str) -> tuple[DeleteObject, ...]:
    """What removes the job of that name and all that may have been made for it."""
    priority = class_name(namespace, name)
    return (
        DeleteObject(api_version=JOBS.api_version, resource=JOBS.plural, namespace=namespace, name=name),
        DeleteObject(api_version=PRIORITY_CLASSES.api_version, resource=PRIORITY_CLASSES.plural, namespace="", name=priority),
    )


def class_name(namespace: str, name: str) -> str:
    """Of the priority class of a job; these have no namespace. It is the value of a label, which has 63 characters at most.

    Each job has its own: one that goes must not take away what another one asks for.
    """
    return f"{namespace}-{hashlib.sha256(name.encode()).hexdigest()[:9]}"


def is_owned_by(thing: Object, uid: str) -> bool:
    """Whether an object is another's."""
    return any(owner.get("uid") == uid for owner in thing["metadata"].get("ownerReferences") or [])


def told(workload: Object) -> str:
    """What a workload holds, as evidence."""
    chips = " and ".join(f"{count} chips of flavor {flavor}" for flavor, count in admitted_chips(workload).items())
    return f"workload {name_of(workload)} ({uid_of(workload)}) was admitted to {chips or 'no chips'}"


def _priority_class(occupant: Occupant) -> Object:
    return {
        "apiVersion": PRIORITY_CLASSES.api_version,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": class_name(occupant.namespace, occupant.name), "labels": {RUN_ID_LABEL: occupant.run_id}},
        "value": PRIORITY,
        "description": "Preempts every training job of its run.",
    }


def _job(occupant: Occupant, image: str, node_labels: dict[str, str]) -> Object:
    """One pod for as many chips as a host has, so that the pods fit on nodes as a training job's do."""
    size = next(size for size in range(min(POD_CHIPS_MAX, occupant.chips), 0, -1) if occupant.chips % size == 0)
    labels = {QUEUE_LABEL: occupant.queue, RUN_ID_LABEL: occupant.run_id}
    if occupant.is_preempting:
        labels[PRIORITY_LABEL] = class_name(occupant.namespace, occupant.name)
    chips = {TPU_RESOURCE: str(size)}
    container = {
        "name": "sleep",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi", **chips}, "limits": chips},
    }
    pod: Object = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "nodeSelector": node_labels,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
    }
    spec = {"suspend": True, "parallelism": occupant.chips // size, "completions": occupant.chips // size, "backoffLimit": 0}
    return {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "metadata": {"name": occupant.name, "namespace": occupant.namespace, "labels": labels},
        "spec": {**spec, "template": {"metadata": {"labels": {RUN_ID_LABEL: occupant.run_id}}, "spec": pod}},
    }
