"""The GKE cluster of a place, adopted: it is there, its owner allows faults on it, and which of its node pools may be hurt."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import TargetUnavailableError
from harness.targets.gcp.calling import Caller, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.guard import is_allowed, require_allowed
from harness.targets.gcp.place import Place

if TYPE_CHECKING:
    from google.cloud.container_v1 import Cluster, NodePool

SERVICE = "container.googleapis.com"

USABLE = ("RUNNING", "RECONCILING")
"""Statuses in which the API server answers. Source: container.v1 Cluster.Status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """Of a node pool, as it is restored."""

    enabled: bool
    min_node_count: int = 0
    max_node_count: int = 0
    total_min_node_count: int = 0
    total_max_node_count: int = 0
    location_policy: str = ""
    autoprovisioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedPool:
    """A node pool.

    Attributes:
        name: Its short name, as nodes carry it in their label.
        full_name: As Kubernetes Engine names it.
        is_allowed: Whether its owner allows faults on it.
        is_queued: Whether its nodes come by provisioning requests alone.
        zones: In how many its nodes are.
        autoscaling: What it is.
    """

    name: str
    full_name: str
    is_allowed: bool
    is_queued: bool
    zones: int
    autoscaling: Autoscaling


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedCluster:
    """A cluster.

    Attributes:
        name: Its full name.
        uid: Tells it from a later one of that name.
        address: Of its API server.
        authority: The certificate that signs its server's, PEM.
        pools: By their short names.
        mounts_buckets: Whether pods can mount buckets: the add-on for Cloud Storage FUSE is on.
    """

    name: str
    uid: str
    address: str
    authority: str
    pools: Mapping[str, AdoptedPool]
    mounts_buckets: bool


def adopt(clients: Clients, caller: Caller, place: Place, *, may_be_hurt: bool = True) -> AdoptedCluster:
    """Look up the cluster. Changes nothing.

    Args:
        clients: Google's.
        caller: Does the calls.
        place: Names it.
        may_be_hurt: Whether it is for faults, which its owner must allow; what a run has made there is removed even where he does not.

    Raises:
        NotAllowedError: When its owner does not allow faults.
        TargetUnavailableError: When it does not run, or says no address.
        CallError: When Kubernetes Engine does not answer, or knows no such cluster.
    """
    name = place.cluster_name
    request = Request(service=SERVICE, method="ClusterManager.GetCluster", resource=name)
    asked = {"name": name}
    found = caller.call(request, lambda timeout_s: clients.clusters.get_cluster(request=asked, retry=None, timeout=timeout_s))
    if may_be_hurt:
        require_allowed("cluster", name, dict(found.resource_labels))
    if found.status.name not in USABLE or not found.endpoint:
        reason = f"cluster {name} is {found.status.name}" + ("" if found.endpoint else ", and says no address of its API server")
        raise TargetUnavailableError(target="gcp", reason=reason, advice="wait until it is RUNNING, or name another")
    return AdoptedCluster(
        name=name,
        uid=found.id,
        address=f"https://{found.endpoint}",
        authority=_authority(found),
        pools={pool.name: adopted_pool(pool, name) for pool in found.node_pools},
        mounts_buckets=found.addons_config.gcs_fuse_csi_driver_config.enabled,
    )


def look_up_pool(clients: Clients, caller: Caller, full_name: str) -> AdoptedPool:
    """A node pool as it is now.

    Raises:
        CallError: When Kubernetes Engine does not answer, or knows no such pool.
    """
    request = Request(service=SERVICE, method="ClusterManager.GetNodePool", resource=full_name)
    asked = {"name": full_name}
    found = caller.call(request, lambda timeout_s: clients.clusters.get_node_pool(request=asked, retry=None, timeout=timeout_s))
    return adopted_pool(found, full_name.rpartition("/nodePools/")[0])


def adopted_pool(pool: "NodePool", cluster: str) -> AdoptedPool:
    """What of a pool matters here."""
    scaling = pool.autoscaling
    policy = scaling.location_policy.name
    return AdoptedPool(
        name=pool.name,
        full_name=f"{cluster}/nodePools/{pool.name}",
        is_allowed=is_allowed(dict(pool.config.resource_labels)),
        is_queued=pool.queued_provisioning.enabled,
        zones=max(1, len(pool.locations)),
        autoscaling=Autoscaling(
            enabled=scaling.enabled,
            min_node_count=scaling.min_node_count,
            max_node_count=scaling.max_node_count,
            total_min_node_count=scaling.total_min_node_count,
            total_max_node_count=scaling.total_max_node_count,
            location_policy="" if policy == "LOCATION_POLICY_UNSPECIFIED" else policy,
            autoprovisioned=scaling.autoprovisioned,
        ),
    )


def _authority(cluster: "Cluster") -> str:
    """The certificate as text.

    Raises:
        TargetUnavailableError: When it is none: nobody is then who he says he is.
    """
    try:
        text = base64.b64decode(cluster.master_auth.cluster_ca_certificate, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        text = ""
    if "BEGIN CERTIFICATE" not in text:
        reason = "Kubernetes Engine gives no certificate of the cluster's authority"
        raise TargetUnavailableError(target="gcp", reason=reason, advice="see `gcloud container clusters describe`, master_auth")
    return text
