"""What a job has left when it is over: looked at once it had time to go, and before anything is cleaned."""

from typing import Literal

from harness.history import ClusterLeft
from harness.targets.kubernetes.api import PODS, PROVISIONING_REQUESTS, RAY_CLUSTERS, WORKLOADS, Object, conditions_of, name_of
from harness.targets.kubernetes.inventory import Inventory, phase_of

PATIENCE_S = 45.0
"""Kueue frees the quota of a finished job within a second. ``shutdownAfterJobFinishes`` deletes a RayCluster at once, but the shell that is
PID 1 of Ray's head hears no SIGTERM: its pod takes the whole grace of 30 s, and some seconds more on a busy node."""

ANSWERED = {"Provisioned", "Failed", "CapacityRevoked"}
"""Conditions of a request that will bring no more capacity for a job that is over."""


class LeakLook:
    """One look at the end of a run, as soon as nothing is left or the patience is over.

    Attributes:
        is_done: Whether it was told.
    """

    def __init__(self, inventory: Inventory) -> None:
        self.is_done = False
        self._inventory = inventory
        self._since_s: float | None = None

    def tell(self, t_s: float) -> list[ClusterLeft]:
        """What is left, once."""
        if self._since_s is None:
            self._since_s = t_s
        left = self._find(t_s)
        if self.is_done or (left and t_s < self._since_s + PATIENCE_S):
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


def _state_of(cluster: Object) -> str:
    return str((cluster.get("status") or {}).get("state", ""))


def _true_conditions(thing: Object) -> set[str]:
    return {one["type"] for one in conditions_of(thing) if one["status"] == "True"}
