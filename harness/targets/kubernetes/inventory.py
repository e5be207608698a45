"""What is known of the run's objects: the newest look at each, and to which task each belongs."""

from collections.abc import Iterable, Sequence
from typing import Literal

from harness.capabilities import PodName, Processes
from harness.history.cluster import PodRole
from harness.kind import RUN_ID_LABEL
from harness.scenario.cluster_faults import Part
from harness.targets.kubernetes.api import (
    JOBS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_JOBS,
    WORKLOADS,
    Object,
    Resource,
    labels_of,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.watching import Change

TASK_LABEL = "chaos-harness/task"
"""On every submitted object and on the templates of its pods: the index of the task."""

ROLE_LABEL = "chaos-harness/role"
"""On pods: ``host``, ``head`` or ``submitter``."""

RANK_LABELS = ("batch.kubernetes.io/job-completion-index", "ray.io/replica-host-index")
"""On a pod, which host it is. Source: Indexed Jobs; KubeRay with gate RayMultiHostIndexing."""

POD_GRACE_S = 30
"""``terminationGracePeriodSeconds`` where a pod says none."""

_ROLES: dict[Part, PodRole] = {"hosts": "host", "head": "head", "submitter": "submitter"}


class Inventory:
    """Objects by uid, as the watches told them last. Objects of others are kept out by the run id."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._objects: dict[Resource, dict[str, Object]] = {}
        self._task_of: dict[str, int] = {}

    def see(self, change: Change) -> None:
        """Take in a change."""
        found = self._objects.setdefault(change.resource, {})
        uid = uid_of(change.object)
        if change.kind == "deleted":
            found.pop(uid, None)
        else:
            found[uid] = change.object
        self._place(change.object)

    def task_of(self, thing: Object) -> int | None:
        """The task that an object belongs to, by its label or its owner; None for what belongs to none, also after it was deleted."""
        self._place(thing)
        return self._task_of.get(uid_of(thing))

    def all(self, resource: Resource, task: int | None = None) -> list[Object]:
        """What is there, the oldest first; of one task or of any."""
        found = self._objects.get(resource, {}).values()
        chosen = [thing for thing in found if task is None or self.task_of(thing) == task]
        return sorted(chosen, key=lambda thing: (thing["metadata"].get("creationTimestamp", ""), name_of(thing)))

    def submission(self, task: int) -> Object | None:
        """The submitted object of a task."""
        return next(iter([*self.all(RAY_JOBS, task), *[job for job in self.all(JOBS, task) if is_submission(job)]]), None)

    def workload(self, task: int) -> Object | None:
        """Kueue's workload of a task; of several slices of an elastic job the newest that is not finished."""
        found = self.all(WORKLOADS, task)
        open_ones = [one for one in found if not _holds(one, "Finished")]
        return next(reversed(open_ones or found), None)

    def requests(self, task: int) -> list[Object]:
        """The ProvisioningRequests of a task."""
        return self.all(PROVISIONING_REQUESTS, task)

    def node(self, name: str) -> Object | None:
        """A node."""
        return next((node for node in self.all(NODES) if name_of(node) == name), None)

    def nodes(self) -> list[Object]:
        """All nodes."""
        return self.all(NODES)

    def pods(self, task: int | None = None, role: PodRole | None = None) -> list[Object]:
        """Pods of the job that are there, those that have ended too."""
        return [pod for pod in self.all(PODS, task) if self.task_of(pod) is not None and (role is None or role_of(pod) == role)]

    def living(self, victim: Processes, part: Part) -> list[Object]:
        """The pods that stand for a victim, those that have ended or are being deleted left out.

        Raises:
            LookupError: When there is none.
        """
        wanted = [pod for pod in self.pods(victim.task, _ROLES[part]) if part != "hosts" or victim.rank in (-1, rank_of(pod))]
        found = [pod for pod in wanted if is_living(pod)]
        if not found:
            whom = f"task {victim.task}" + (f" rank {victim.rank}" if victim.rank >= 0 and part == "hosts" else "")
            raise LookupError(f"no pod of {part} of {whom} is there ({len(wanted)} have ended or are ending)")
        return found

    def _place(self, thing: Object) -> None:
        uid = uid_of(thing)
        if uid in self._task_of:
            return
        labels = labels_of(thing)
        if TASK_LABEL in labels and labels.get(RUN_ID_LABEL) == self._run_id:
            self._task_of[uid] = int(labels[TASK_LABEL])
            return
        for owner in thing["metadata"].get("ownerReferences") or []:
            if owner.get("uid") in self._task_of:
                self._task_of[uid] = self._task_of[owner["uid"]]


def is_submission(job: Object) -> bool:
    """Whether a Job was submitted by us, and not made by KubeRay for its submitter."""
    return not job["metadata"].get("ownerReferences")


def is_living(pod: Object) -> bool:
    """Whether a pod has neither ended nor begun to be deleted."""
    return phase_of(pod) in ("Pending", "Running", "Unknown") and not pod["metadata"].get("deletionTimestamp")


def phase_of(pod: Object) -> Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]:
    """Its phase."""
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] = (pod.get("status") or {}).get("phase", "Pending")
    return phase


def role_of(pod: Object) -> PodRole:
    """What a pod is to its job, by our label, or as KubeRay's own labels tell it."""
    labels = labels_of(pod)
    role = labels.get(ROLE_LABEL, "")
    if role in ("head", "submitter") or labels.get("ray.io/node-type") == "head":
        return "head" if role != "submitter" else "submitter"
    return "host"


def rank_of(pod: Object) -> int:
    """Which host a pod is; 0 for the pod of a job with one host, -1 for what is no host."""
    if role_of(pod) != "host":
        return -1
    labels = labels_of(pod)
    return next((int(labels[label]) for label in RANK_LABELS if labels.get(label, "").isdecimal()), 0)


def node_of(pod: Object) -> str:
    """The node that a pod is bound to; empty while it is not."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def names_of(pods: Iterable[Object]) -> tuple[PodName, ...]:
    """Pods by names that cannot be mistaken."""
    return tuple(
        PodName(
            namespace=str(pod["metadata"].get("namespace", "")),
            name=name_of(pod),
            uid=uid_of(pod),
            node=node_of(pod),
            grace_s=int((pod.get("spec") or {}).get("terminationGracePeriodSeconds", POD_GRACE_S)),
        )
        for pod in pods
    )


def on_node(pods: Sequence[Object], node: str) -> list[Object]:
    """Those that are bound to a node."""
    return [pod for pod in pods if node_of(pod) == node]


def _holds(thing: Object, kind: str) -> bool:
    conditions = (thing.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == kind and condition.get("status") == "True" for condition in conditions)
