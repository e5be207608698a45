"""A run of a two-host job on a cluster in memory: what faults find there, and the parts of the target that hurt it."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from harness.capabilities import Launch
from harness.clock import ManualClock
from harness.kind import NodeContainers
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    JOBS,
    LOCAL_QUEUES,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RESOURCE_FLAVORS,
    WORKLOADS,
    Object,
    Resource,
)
from harness.targets.kubernetes.control_plane import ControlPlaneHosting
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.inventory import TASK_LABEL, Inventory
from harness.targets.kubernetes.nodes import NodeHosting
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.queue import QueueHosting
from harness.targets.kubernetes.watching import Change
from tests.unit.clusters import cluster_at
from tests.unit.targets.kubernetes.fake_api import FakeApi
from tests.unit.targets.kubernetes.fake_node_containers import FakeNodeContainers

RUN = "run-1"
NAMESPACE = "harness-run-1"
POOL = "cloud.google.com/gke-nodepool"
TPU = "google.com/tpu"


class Host(NodeHosting, QueueHosting, ControlPlaneHosting):
    """The parts of the target together, on a cluster in memory."""

    def __init__(self, directory: Path) -> None:
        self.api = FakeApi()
        self.machines = FakeNodeContainers(self.api)
        self.clock = ManualClock(monotonic_s=100.0)
        self.revoked: list[str] = []
        self.given_back: set[str] = set()
        self.put_away: list[str] = []
        launch = Launch(
            run_id=RUN,
            job="job",
            command=("job",),
            directory=directory,
            environment={},
            checkpoint_dir=directory,
            logs_dir=directory,
            ranks=2,
        )
        self._grounds = Grounds(
            launch=launch,
            clock=self.clock,
            cluster=cluster_at(directory),
            api=self.api,
            machines=cast("NodeContainers", self.machines),
            namespace=NAMESPACE,
            directory=directory,
            inventory=Inventory(RUN),
        )
        for name, pool in (("worker", "default-pool"), ("worker2", "on-demand-pool"), ("worker3", "on-demand-pool"), ("plane", "")):
            labels = {POOL: pool} if pool else {}
            taints = [{"key": TPU, "value": "present", "effect": "NoSchedule"}] if pool == "on-demand-pool" else []
            self.put(NODES, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}})
        self._make_queue()
        self._make_job()

    @property
    def grounds(self) -> Grounds:
        return self._grounds

    @property
    def pools(self) -> NodePools:
        return cast("NodePools", SimpleNamespace(holds=lambda name: name not in self.given_back, put_away=self._put_away))

    @property
    def dws(self) -> DwsSimulator:
        return cast("DwsSimulator", SimpleNamespace(revoke=self._revoke))

    def put(self, resource: Resource, item: Object) -> Object:
        """An object is so, and the run knows it."""
        stored = self.api.put(resource, item)
        self._grounds.inventory.see(Change("modified", resource, stored))
        return stored

    def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return self.api.get(resource, name, namespace)

    def provisioned(self, *conditions: str) -> Object:
        """A request of task 0."""
        owner = [{"uid": self.job["metadata"]["uid"]}]
        status = {"conditions": [{"type": kind, "status": "True"} for kind in conditions]}
        return self.put(
            PROVISIONING_REQUESTS, {"metadata": {"name": "request-1", "namespace": NAMESPACE, "ownerReferences": owner}, "status": status}
        )

    def _revoke(self, name: str) -> tuple[str, ...]:
        self.revoked.append(name)
        return ("worker2",)

    def _put_away(self, names: Sequence[str], _why: str) -> None:
        self.put_away += names

    def _make_queue(self) -> None:
        flavors = [{"name": name, "resources": [{"name": TPU, "nominalQuota": quota}]} for name, quota in (("on-demand", 16), ("dws", 16))]
        reserved = [{"name": "on-demand", "resources": [{"name": TPU, "total": "8"}]}]
        status = {"conditions": [{"type": "Active", "status": "True", "observedGeneration": 1}], "flavorsReservation": reserved}
        groups = [{"coveredResources": [TPU], "flavors": flavors}]
        self.put(
            CLUSTER_QUEUES, {"metadata": {"name": "cluster-queue", "generation": 1}, "spec": {"resourceGroups": groups}, "status": status}
        )
        self.put(LOCAL_QUEUES, {"metadata": {"name": "user-queue", "namespace": NAMESPACE}, "spec": {"clusterQueue": "cluster-queue"}})
        self.put(RESOURCE_FLAVORS, {"metadata": {"name": "on-demand"}, "spec": {"nodeLabels": {POOL: "on-demand-pool"}}})

    def _make_job(self) -> None:
        labels = {TASK_LABEL: "0", "chaos-harness/run-id": RUN}
        self.job = self.put(JOBS, {"metadata": {"name": "job-0", "namespace": NAMESPACE, "labels": labels}})
        owner = [{"kind": "Job", "name": "job-0", "uid": self.job["metadata"]["uid"]}]
        assigned = [{"name": "main", "flavors": {TPU: "on-demand"}, "resourceUsage": {TPU: "8"}}]
        self.workload = self.put(
            WORKLOADS,
            {
                "metadata": {"name": "job-0-workload", "namespace": NAMESPACE, "ownerReferences": owner},
                "spec": {"active": True},
                "status": {"admission": {"podSetAssignments": assigned}},
            },
        )
        for rank in range(2):
            pod_labels = {**labels, "batch.kubernetes.io/job-completion-index": str(rank)}
            metadata = {"name": f"job-0-{rank}", "namespace": NAMESPACE, "labels": pod_labels, "ownerReferences": owner}
            self.put(PODS, {"metadata": metadata, "spec": {"nodeName": f"worker{rank + 2}"}, "status": {"phase": "Running"}})
