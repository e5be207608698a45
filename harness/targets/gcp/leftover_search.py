"""Finds what says that it is a run's on a project: by its labels, by its place in the bucket. Nothing is changed, nobody believed yet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.targets.gcp.bucket import BucketPrefix
from harness.targets.gcp.calling import Caller, Page, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.footprint import footprints
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, RUN_LABEL, RUN_PREFIX, is_allowed, run_prefix
from harness.targets.gcp.place import Place
from harness.targets.gcp.run_jobs import find_run_jobs
from harness.targets.gcp.submission import Jobs

RUN_ID = re.compile(r"[0-9a-f]{12}")
"""As the store makes them. A folder of another name is no run's, and is not looked at."""

NO_AGENT = "it mounts no agent of ours, so no run of ours has made it"
NOT_ALLOWED = f"it does not carry {ALLOWED_LABEL}={ALLOWED_VALUE}, so no run of ours has made it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """One thing that carries a run's label, or lies below a run's prefix.

    Attributes:
        kind: ``job``, ``objects``, ``node-pool``, ``instance``.
        name: Full name.
        run_id: What the label says.
        alone: Why it is nobody's to remove; empty: it may be, when its run is known.
    """

    kind: str
    name: str
    run_id: str
    alone: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class LeftoverSearch:
    """Of one place."""

    def __init__(self, clients: Clients, caller: Caller, place: Place) -> None:
        self._clients, self._caller, self._place = clients, caller, place

    def find(self) -> list[Leftover]:
        """Everything that says it is a run's, jobs first; nothing is changed.

        Raises:
            CallError: When something cannot be listed: then nobody knows what is left.
        """
        return [*self._find_jobs(), *self._find_node_pools(), *self._find_instances(), *self._find_objects()]

    def _find_jobs(self) -> Iterator[Leftover]:
        for job in find_run_jobs(Jobs(self._clients, self._caller), self._place):
            alone = "" if job.is_allowed else NOT_ALLOWED
            if not alone and job.bucket != self._place.bucket:
                alone = f"it works with another bucket; clean it with --bucket {job.bucket}" if job.bucket else NO_AGENT
            yield Leftover(kind="job", name=job.name, run_id=job.label, alone=alone)

    def _find_objects(self) -> Iterator[Leftover]:
        below = BucketPrefix(self._clients.storage, self._caller, bucket=self._place.bucket, prefix=RUN_PREFIX)
        known = {footprint.run_id for footprint in footprints()}
        for run_id in below.list_folders("", versions=True):
            if RUN_ID.fullmatch(run_id) or run_id in known:
                yield Leftover(kind="objects", name=f"gs://{self._place.bucket}/{run_prefix(run_id)}", run_id=run_id)

    def _find_node_pools(self) -> Iterator[Leftover]:
        name = self._place.cluster_name
        if not name:
            return
        clusters = self._clients.clusters
        request = Request(service="container.googleapis.com", method="ClusterManager.ListNodePools", resource=name)
        found = self._caller.call(
            request, lambda timeout_s: clusters.list_node_pools(request={"parent": name}, retry=None, timeout=timeout_s)
        )
        for pool in found.node_pools:
            run_id = dict(pool.config.resource_labels).get(RUN_LABEL, "")
            if run_id:
                alone = "" if is_allowed(dict(pool.config.resource_labels)) else NOT_ALLOWED
                yield Leftover(kind="node-pool", name=f"{name}/nodePools/{pool.name}", run_id=run_id, alone=alone)

    def _find_instances(self) -> Iterator[Leftover]:
        """Machines of the cluster's zone; Compute Engine selects by label, and the label is looked at again."""
        from google.cloud import compute_v1

        zone, project = self._place.zone, self._place.project
        if not zone or zone.count("-") < 2:
            return
        request = Request(service="compute.googleapis.com", method="instances.list", resource=f"projects/{project}/zones/{zone}")

        def fetch(token: str, timeout_s: float) -> Page[compute_v1.Instance]:
            asked = compute_v1.ListInstancesRequest(project=project, zone=zone, filter=f"labels.{RUN_LABEL}:*", page_token=token or None)
            page = next(self._clients.instances.list(request=asked, retry=None, timeout=timeout_s).pages)
            return Page(items=list(page.items), token=page.next_page_token)

        for instance in self._caller.pages(request, fetch):
            run_id = dict(instance.labels).get(RUN_LABEL, "")
            if run_id and not dict(instance.labels).get("goog-k8s-cluster-name"):  # a node goes with its pool
                name = f"projects/{project}/zones/{zone}/instances/{instance.name}"
                alone = "" if is_allowed(dict(instance.labels)) else NOT_ALLOWED
                yield Leftover(kind="instance", name=name, run_id=run_id, alone=alone)
