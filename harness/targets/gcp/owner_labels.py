"""The labels by which owners allow faults on what a plan adopts, as they are now."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from harness.targets.gcp.calling import Caller, Request, Send
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import ResourceMissingError
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Plan

if TYPE_CHECKING:
    from google.cloud.container_v1 import Cluster
    from google.cloud.run_v2 import Job

Answer = TypeVar("Answer")


class OwnerLabels:
    """Of what one plan adopts."""

    def __init__(self, clients: Clients, caller: Caller, place: Place, plan: Plan) -> None:
        self._clients, self._caller, self._place, self._plan = clients, caller, place, plan

    def read(self) -> dict[str, Mapping[str, str] | None]:
        """By full names; None: it is gone. A job that is made carries its label by ourselves, and is not among them.

        Raises:
            CallError: When one cannot be asked for.
        """
        adopted = {resource.kind for resource in self._plan.resources if resource.action == "adopt"}
        found: dict[str, Mapping[str, str] | None] = {}
        if "bucket" in adopted:
            for name in dict.fromkeys((self._place.bucket, self._place.locks_in)):
                found[f"bucket {name}"] = self._read("storage.googleapis.com", "buckets.get", f"b/{name}", partial(self._bucket, name))
        if "job" in adopted:
            found[f"job {self._place.job_name}"] = self._read("run.googleapis.com", "Jobs.GetJob", self._place.job_name, self._job)
        if "cluster" in adopted and self._place.is_of_cluster:
            found |= self._of_cluster()
        return found

    def _of_cluster(self) -> dict[str, Mapping[str, str] | None]:
        """Of the cluster, and of those of its node pools on which its owner has allowed faults."""
        name = self._place.cluster_name
        cluster = self._read("container.googleapis.com", "ClusterManager.GetCluster", name, self._cluster)
        if cluster is None:
            return {f"cluster {name}": None}
        pools = {f"{name}/nodePools/{pool.name}": dict(pool.config.resource_labels) for pool in cluster.node_pools}
        planned = [each.name for each in self._plan.resources if each.kind == "node-pool" and each.action == "adopt"]
        return {f"cluster {name}": dict(cluster.resource_labels)} | {f"node pool {pool}": pools.get(pool) for pool in planned}

    def _read(self, service: str, method: str, resource: str, send: Send[Answer]) -> Answer | None:
        try:
            return self._caller.call(Request(service=service, method=method, resource=resource), send)
        except ResourceMissingError:
            return None

    def _bucket(self, name: str, timeout_s: float) -> Mapping[str, str]:
        bucket = self._clients.storage.bucket(name)
        bucket.reload(timeout=timeout_s, retry=None)
        return dict(bucket.labels)

    def _cluster(self, timeout_s: float) -> "Cluster":
        asked = {"name": self._place.cluster_name}
        found: Cluster = self._clients.clusters.get_cluster(request=asked, retry=None, timeout=timeout_s)
        return found

    def _job(self, timeout_s: float) -> Mapping[str, str]:
        job: Job = self._clients.jobs.get_job(request={"name": self._place.job_name}, retry=None, timeout=timeout_s)
        return dict(job.labels)
