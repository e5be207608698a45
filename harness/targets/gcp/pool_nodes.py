"""How many machines a node pool has, zone by zone: Kubernetes Engine itself tells only with how many it was made."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.errors import UndoError
from harness.targets.gcp.calling import Caller, Page, Request
from harness.targets.gcp.connection import Clients

if TYPE_CHECKING:
    from google.cloud.compute_v1 import Instance
    from google.cloud.container_v1 import NodePool

POOL_LABEL, CLUSTER_LABEL, LOCATION_LABEL = "goog-k8s-node-pool-name", "goog-k8s-cluster-name", "goog-k8s-cluster-location"
"""Of machines of a pool, by Kubernetes Engine. A regional cluster and a zonal one in that region may have the same name.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels (automatically applied labels).
"""

CHANGING = ("PROVISIONING", "RECONCILING", "STOPPING")
"""Statuses of a pool on which something is still being done. Source: container.v1 NodePool.Status."""

GOING = ("STOPPING", "PENDING_STOP", "STOPPED", "TERMINATED")
"""Statuses of a machine that is none any more. Source: compute.v1 Instance.status."""

ASKED_EVERY_S = 5.0


def settled_pool(clients: Clients, caller: Caller, name: str, *, within_s: float) -> "NodePool":
    """A pool on which nothing is being done any more.

    Raises:
        UndoError: When something still is after that time.
        CallError: When it cannot be read, or is gone.
    """
    request = Request(service="container.googleapis.com", method="ClusterManager.GetNodePool", resource=name)
    end_s = caller.clock.monotonic_s() + within_s
    while True:
        found: NodePool = caller.call(
            request, lambda timeout_s: clients.clusters.get_node_pool(request={"name": name}, retry=None, timeout=timeout_s)
        )
        if found.status.name not in CHANGING:
            return found
        if caller.clock.monotonic_s() + ASKED_EVERY_S > end_s:
            raise UndoError(attempted=f"restore node pool {name}", reason=f"it is {found.status.name} still, after {within_s:g} s")
        caller.clock.sleep(ASKED_EVERY_S)


def nodes_by_zone(clients: Clients, caller: Caller, name: str, pool: "NodePool") -> Mapping[str, int]:
    """Machines that a pool has, in each of its zones.

    Args:
        clients: Google's.
        caller: Does the calls.
        name: Full name of the pool.
        pool: As Kubernetes Engine tells it.

    Raises:
        CallError: When Compute Engine does not tell.
    """
    _, project, _, place, _, cluster, _, short = name.split("/")
    zones = list(pool.locations) or [place]
    return {
        zone: sum(
            instance.status not in GOING and _is_of(dict(instance.labels), cluster, place)
            for instance in _machines(clients, caller, project, zone, short)
        )
        for zone in zones
    }


def _is_of(labels: Mapping[str, str], cluster: str, place: str) -> bool:
    """Whether a machine is of a cluster; one that does not say where its cluster is is taken for that of the name."""
    return labels.get(CLUSTER_LABEL) == cluster and labels.get(LOCATION_LABEL, place) == place


def told(counts: Mapping[str, int]) -> str:
    """``3 nodes in us-east5-a, 0 in us-east5-b``."""
    return ", ".join(f"{count}{'' if index else ' nodes'} in {zone}" for index, (zone, count) in enumerate(counts.items()))


def _machines(clients: Clients, caller: Caller, project: str, zone: str, pool: str) -> Iterator["Instance"]:
    """Of pools of that name; Compute Engine selects by label, and the cluster is looked at by whoever counts."""
    from google.cloud import compute_v1

    request = Request(service="compute.googleapis.com", method="instances.list", resource=f"projects/{project}/zones/{zone}")

    def fetch(token: str, timeout_s: float) -> Page["Instance"]:
        wanted = f'labels.{POOL_LABEL}="{pool}"'
        asked = compute_v1.ListInstancesRequest(project=project, zone=zone, filter=wanted, page_token=token or None)
        page = next(clients.instances.list(request=asked, retry=None, timeout=timeout_s).pages)
        return Page(items=list(page.items), token=page.next_page_token)

    yield from caller.pages(request, fetch)
