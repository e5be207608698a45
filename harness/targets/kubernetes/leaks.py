"""What a job has left when it is over: looked at once it had time to go, and before anything is cleaned."""

from collections import Counter
from typing import Literal

from harness.history import ClusterLeft
from harness.kind.topology import TPU_RESOURCE
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    WORKLOADS,
    Api,
    ApiError,
    Object,
    conditions_of,
    name_of,
)
from harness.targets.kubernetes.inventory import Inventory, phase_of
from harness.targets.kubernetes.occupying import admitted_chips
from harness.targets.kubernetes.quota import reserved_chips

PATIENCE_S = 45.0
"""Kueue frees the quota of a finished job within a second. ``shutdownAfterJobFinishes`` deletes a RayCluster at once, but the shell that is
PID 1 of Ray's head hears no SIGTERM: its pod takes the whole grace of 30 s, and some seconds more on a busy node."""

ASKED_S = 1.0
"""Kueue's books are read no more often: it writes them within that."""

ANSWERED = {"Provisioned", "Failed", "CapacityRevoked"}
"""Conditions of a request that will bring no more capacity for a job that is over."""


class LeakLook:
    """One look at the end of a run, as soon as nothing is left or the patience is over: at objects, then at Kueue's books.

    Nodes are not looked at: they are the autoscaler's to take away, and what keeps one is a pod.

    Attributes:
        is_done: Whether it was told.
    """

    def __init__(self, inventory: Inventory, api: Api, namespace: str) -> None:
        self.is_done = False
        self._inventory, self._api, self._namespace = inventory, api, namespace
        self._since_s: float | None = None
        self._next_s = 0.0

    def tell(self, t_s: float) -> list[ClusterLeft]:
        """What is left, once.

        Raises:
            ApiError: When the API server refuses to say what is reserved; one that does not answer is asked again.
        """
        if self._since_s is None:
            self._since_s = t_s
        left, is_late = self._find(t_s), t_s >= self._since_s + PATIENCE_S
        if self.is_done or (left and not is_late) or t_s < self._next_s:
            return []
        self._next_s = t_s + ASKED_S
        try:
            left += self._reserved_for_nobody(t_s)
        except ApiError as error:
            if not error.is_passing:
                raise
            return []
        if left and not is_late:
            return []
        self.is_done = True
        return left or [ClusterLeft(t_s=t_s, what="none", detail=f"looked {t_s - self._since_s:.1f} s after the end of the execution")]

    def _find(self, t_s: float) -> list[ClusterLeft]:
        inventory = self._inventory
        left = [ClusterLeft(t_s=t_s, what="ray-cluster", name=name_of(one), detail=_state_of(one)) for one in inventory.all(RAY_CLUSTERS)]
        left += [
            ClusterLeft(t_s=t_s, what="pod", name=name_of(pod), detail=phase_of(pod))
            for pod in inventory.all(PODS)
            if inventory.task_of(pod) is not None and phase_of(pod) in ("Pending", "Running", "Unknown")
        ]
        for workload in inventory.all(WORKLOADS):
            held = _true_conditions(workload)
            if inventory.task_of(workload) is not None and "Finished" not in held:
                what: Literal["quota", "workload"] = "quota" if "QuotaReserved" in held else "workload"
                left.append(ClusterLeft(t_s=t_s, what=what, name=name_of(workload), detail=", ".join(sorted(held))))
        left += [
            ClusterLeft(t_s=t_s, what="provisioning-request", name=name_of(request), detail="nothing has come of it yet")
            for request in inventory.all(PROVISIONING_REQUESTS)
            if inventory.task_of(request) is not None and not _true_conditions(request) & ANSWERED
        ]
        return left

    def _reserved_for_nobody(self, t_s: float) -> list[ClusterLeft]:
        """Chips that the run's queues count as reserved beyond those of the workloads that are there, whosever they are."""
        names = {str((queue.get("spec") or {}).get("clusterQueue", "")) for queue in self._api.list(LOCAL_QUEUES, self._namespace)}
        queues = [queue for queue in self._api.list(CLUSTER_QUEUES) if name_of(queue) in names]
        held: Counter[tuple[str, str]] = Counter()
        for workload in self._api.list(WORKLOADS):
            conditions = _true_conditions(workload)
            if "QuotaReserved" in conditions and "Finished" not in conditions:
                queue = str(((workload.get("status") or {}).get("admission") or {}).get("clusterQueue", ""))
                held.update({(queue, flavor): chips for flavor, chips in admitted_chips(workload).items()})
        return [
            ClusterLeft(
                t_s=t_s,
                what="quota",
                name=f"{name_of(queue)}/{flavor}",
                detail=f"{chips} of {TPU_RESOURCE} are reserved, {held[name_of(queue), flavor]} of them for a workload that is there",
            )
            for queue in queues
            for flavor, chips in reserved_chips(queue).items()
            if chips > held[name_of(queue), flavor]
        ]


def _state_of(cluster: Object) -> str:
    return str((cluster.get("status") or {}).get("state", ""))


def _true_conditions(thing: Object) -> set[str]:
    return {one["type"] for one in conditions_of(thing) if one["status"] == "True"}
