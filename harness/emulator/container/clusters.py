"""Clusters and what they hold."""

import hashlib
from dataclasses import dataclass, field

from google.cloud import container_v1

from harness.emulator.container.groups import InstanceGroups
from harness.emulator.container.names import Name
from harness.emulator.container.pools import Pool, group_prefix

VERSION = "1.34.1-gke.1000000"
"""Of the guide's minor version; no certain patch is meant."""

LINK = "https://container.googleapis.com/v1/"
GROUP_LINK = "https://www.googleapis.com/compute/v1/"


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A cluster.

    Attributes:
        name: Its whole name.
        message: As it is shown, but for its node pools.
        pools: By their short names, in the order in which they were made.
    """

    name: Name
    message: container_v1.Cluster
    pools: dict[str, Pool] = field(default_factory=dict)

    @property
    def label_fingerprint(self) -> str:
        """Changes with the labels."""
        labels = sorted(dict(self.message.resource_labels).items())
        return hashlib.sha256(repr(labels).encode()).hexdigest()[:8]

    def shown(self, groups: InstanceGroups) -> container_v1.Cluster:
        """The cluster as a caller sees it."""
        shown = container_v1.Cluster(self.message)
        shown.node_pools = [shown_pool(pool) for pool in self.pools.values()]
        shown.conditions = [condition for pool in shown.node_pools for condition in pool.conditions]  # assumed: those of its pools
        shown.label_fingerprint = self.label_fingerprint
        shown.instance_group_urls = [url for pool in shown.node_pools for url in pool.instance_group_urls]
        shown.current_node_count = sum(len(groups.instances(group)) for pool in self.pools.values() for group in pool.groups())
        return shown


def new_cluster(name: Name, asked: container_v1.Cluster, created: str) -> Cluster:
    """A cluster that is being made, without its node pools."""
    message = container_v1.Cluster(asked)
    message.node_pools = []
    message.location = message.zone = name.location
    message.self_link = LINK + name.path
    message.create_time = created
    message.status = container_v1.Cluster.Status(container_v1.Cluster.Status.PROVISIONING)
    message.initial_cluster_version = message.initial_cluster_version or VERSION
    message.current_master_version = message.current_node_version = message.initial_cluster_version
    message.locations = list(asked.locations) or default_zones(name)
    message.id = hashlib.sha256(f"{name.path}/{created}".encode()).hexdigest()
    return Cluster(name=name, message=message)


def new_pool(name: Name, asked: container_v1.NodePool, cluster: Cluster) -> Pool:
    """A node pool that is being made."""
    message = container_v1.NodePool(asked)
    message.self_link = LINK + name.path
    message.version = message.version or cluster.message.current_node_version
    message.status = container_v1.NodePool.Status(container_v1.NodePool.Status.PROVISIONING)
    message.config.machine_type = message.config.machine_type or "e2-medium"
    zones = list(asked.locations) or list(cluster.message.locations)
    message.locations = zones
    return Pool(name=name, message=message, zones=zones, size=asked.initial_node_count)


def shown_pool(pool: Pool) -> container_v1.NodePool:
    """The node pool as a caller sees it."""
    shown = container_v1.NodePool(pool.message)
    shown.etag = pool.etag
    shown.instance_group_urls = [
        f"{GROUP_LINK}projects/{pool.name.project}/zones/{zone}/instanceGroupManagers/{group_prefix(pool.name, zone)}-grp"
        for zone in pool.zones
    ]
    return shown


def default_zones(name: Name) -> list[str]:
    """The zone itself, or three of a region; which a region has is assumed."""
    return [name.location] if name.is_zonal else [f"{name.location}-{letter}" for letter in "abc"]
