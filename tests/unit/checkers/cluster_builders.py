"""Tells what was seen of a cluster, in the words of the queue: ``ClusterRun().submit().queued().admit("on-demand").evict("Preempted")``."""

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.history import (
    CheckState,
    ClusterEventSeen,
    ClusterLeft,
    ConditionState,
    NodeSeen,
    PodSeen,
    ProvisioningSeen,
    SubmissionSeen,
    WorkloadSeen,
)
from harness.scenario.expectations import WATCHED_S
from tests.unit.checkers.builders import Run

STOCKOUT = "Waiting for resources. Currently there are not enough resources available to fulfill the request."
NO_QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for google.com/tpu in flavor on-demand, 4 more needed"
REQUEST, CLASS = "job-0-dws-prov-1", "queued-provisioning.gke.io"


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> ConditionState:
    return ConditionState(type=kind, status=status, reason=reason, message=message)


@dataclass
class ClusterRun(Run):
    """A history with a cluster in it. Conditions, flavor and checks of a workload are kept from word to word, as Kueue keeps them."""

    conditions: dict[int, dict[str, ConditionState]] = field(default_factory=dict)
    flavors: dict[int, dict[str, str]] = field(default_factory=dict)
    checks: dict[int, tuple[CheckState, ...]] = field(default_factory=dict)
    is_active: dict[int, bool] = field(default_factory=dict)
    target: str = "kind"

    # ---- the submitted object ----

    def submit(self, *, task: int = 0, uid: str = "", **fields: Any) -> "ClusterRun":
        """The object of a task is seen for the first time, or again."""
        self.task = task
        self.here(
            SubmissionSeen, **{"object_kind": "Job", "name": f"job-{task}", "uid": uid or f"u{task}", "status": "Suspended", **fields}
        )
        return self

    # ---- Kueue's workload ----

    def kueue(self, *changes: ConditionState, uid: str = "", **fields: Any) -> "ClusterRun":
        """The workload of the current task after a change."""
        known = self.conditions.setdefault(self.task, {})
        known.update({change.type: change for change in changes})
        told: dict[str, Any] = {
            "name": f"job-job-{self.task}",
            "uid": uid or f"w{self.task}",
            "queue": "user-queue",
            "is_active": self.is_active.get(self.task, True),
            "conditions": tuple(known.values()),
            "flavors": self.flavors.get(self.task, {}),
            "checks": self.checks.get(self.task, ()),
            **fields,
        }
        self.here(WorkloadSeen, **told)
        return self

    def queued(self, message: str = NO_QUOTA) -> "ClusterRun":
        """It has no quota."""
        self.flavors[self.task], self.checks[self.task] = {}, ()
        return self.kueue(condition("QuotaReserved", "False", "Pending", message))

    def reserve(
        self, flavor: str = "dws", *, check: Literal["Pending", "Ready", "Retry", "Rejected"] = "Pending", said: str = ""
    ) -> "ClusterRun":
        """It has quota and waits for its check."""
        self.flavors[self.task] = {"main": flavor}
        self.checks[self.task] = (CheckState(name="dws-prov", state=check, message=said),)
        return self.kueue(condition("QuotaReserved"), condition("Evicted", "False", "QuotaReserved"))

    def admit(self, flavor: str = "on-demand", *, head: str = "") -> "ClusterRun":
        """It is admitted, after its check where it has one."""
        self.flavors[self.task] = {"main": flavor} if not head else {"head": head, "hosts": flavor}
        self.checks[self.task] = tuple(CheckState(name=check.name, state="Ready") for check in self.checks.get(self.task, ()))
        return self.kueue(condition("QuotaReserved"), condition("Evicted", "False", "QuotaReserved"), condition("Admitted"))

    def evict(self, reason: str = "Preempted", message: str = "by a job of higher priority") -> "ClusterRun":
        """It is told to go, then it has gone."""
        self.kueue(condition("Evicted", "True", reason, message))
        self.flavors[self.task], self.checks[self.task] = {}, ()
        return self.kueue(condition("QuotaReserved", "False", "Pending", message), condition("Admitted", "False", "NoReservation"))

    def deactivate(self, reason: str = "AdmissionCheck", message: str = "dws-prov was rejected") -> "ClusterRun":
        """It is deactivated for good."""
        self.is_active[self.task] = False
        return self.evict(reason, message)

    def reactivate(self) -> "ClusterRun":
        """Somebody has activated it again."""
        self.is_active[self.task] = True
        return self.kueue(condition("Requeued", "True", "Reactivated"))

    def end_workload(self, reason: str = "Succeeded") -> "ClusterRun":
        """It is finished."""
        return self.kueue(condition("Finished", "True", reason, "Job finished"))

    # ---- capacity ----

    def provisioning(self, *conditions: ConditionState, number: int = 1) -> "ClusterRun":
        """What is seen of its ProvisioningRequest."""
        self.here(ProvisioningSeen, name=f"job-{self.task}-dws-prov-{number}", uid=f"p{number}", number=number, conditions=conditions)
        return self

    def node(self, name: str = "node-1", *, pool: str = "on-demand-pool", state: str = "True", **fields: Any) -> "ClusterRun":
        """What is seen of a node."""
        taints = (
            ("cloud.google.com/gke-queued:NoSchedule", "google.com/tpu:NoSchedule")
            if pool == "dws-pool"
            else ("google.com/tpu:NoSchedule",)
        )
        self.add(NodeSeen, **{"name": name, "uid": f"n-{name}", "pool": pool, "state": state, "taints": taints, **fields})
        return self

    def pod(
        self, name: str = "pod-0", *, node: str = "node-1", pool: str = "on-demand-pool", phase: str = "Running", **fields: Any
    ) -> "ClusterRun":
        """What is seen of a host of the current attempt."""
        self.here(PodSeen, **{"name": name, "uid": f"u-{name}", "rank": 0, "node": node, "pool": pool, "phase": phase, **fields})
        return self

    def warns(self, object_name: str, reason: str, message: str) -> "ClusterRun":
        """An event of Kubernetes warns of something."""
        self.add(ClusterEventSeen, object_name=object_name, reason=reason, message=message, is_warning=True)
        return self

    # ---- the end ----

    def watch(self, seconds: float = WATCHED_S) -> "ClusterRun":
        """Time passes, and nothing happens."""
        self.t_s = round(self.t_s + seconds, 6)
        return self

    def left(self, what: str = "none", name: str = "", detail: str = "") -> "ClusterRun":
        """Somebody looks at what is left in the cluster."""
        self.add(ClusterLeft, what=what, name=name, detail=detail)
        return self


def fallen_back() -> ClusterRun:
    """On-demand, preempted after step 7, then dws after a stockout; the same run goes on from step 5."""
    run = ClusterRun()
    run.submit().queued("").admit("on-demand").pod(phase="Pending").attempt(0).pod().begin().steps(1, 7)
    run.evict().exit(143, cause="platform").pod(phase="Deleted")
    run.queued().reserve("dws").provisioning(condition("Accepted")).reserve("dws", said=STOCKOUT)
    run.provisioning(condition("Accepted"), condition("Provisioned")).admit("dws").node("node-2", pool="dws-pool").attempt(1)
    run.pod("pod-1", node="node-2", pool="dws-pool", provisioning_request=REQUEST, provisioning_class=CLASS)
    run.begin(5).steps(6, 20).done().exit(0, retried=False)
    run.submit(status="Complete").end_workload().left().finish()
    return run
