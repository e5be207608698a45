"""What a request for a cluster or a node pool must keep; where Google's words are not known the message is assumed."""

import re
from collections import Counter

from google.cloud import container_v1

from harness.emulator.container.groups import InstanceGroups, NodeGroup
from harness.emulator.container.refusals import invalid, short_of_quota
from harness.emulator.project import ProjectState

_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?")
DEFAULT_POOL = "default-pool"
"""The pool of a cluster that names none."""

LIFETIME_MAX_S = 7 * 86_400.0
"""Flex-start gives nodes for seven days at most. Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws"""
NODES_MAX = 1000
"""Of a pool in a zone. Source: https://docs.cloud.google.com/kubernetes-engine/quotas"""


def check_name(kind: str, name: str) -> None:
    """See that a cluster or a node pool can have the name.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not _NAME.fullmatch(name):
        raise invalid(f"{kind}.name {name[:100]!r} is invalid: small letters, digits and hyphens, at most 40 characters, a letter first.")


def check_size(count: int) -> None:
    """See that a pool can have so many nodes.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not 0 <= count <= NODES_MAX:
        raise invalid(f"node_count {count} is invalid: from 0 to {NODES_MAX}.")


def check_autoscaling(autoscaling: container_v1.NodePoolAutoscaling) -> None:
    """See that the bounds of an autoscaler are in order.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    least, most = autoscaling.min_node_count, autoscaling.max_node_count
    total_least, total_most = autoscaling.total_min_node_count, autoscaling.total_max_node_count
    if not autoscaling.enabled:
        return
    if (most or least) and (total_most or total_least):
        raise invalid("autoscaling: min and max node count are given for each zone or in total, not both.")
    if not (most or total_most):
        raise invalid("autoscaling: max_node_count or total_max_node_count must be given.")
    if not 0 <= least <= (most or NODES_MAX) or not 0 <= total_least <= (total_most or total_least):
        raise invalid(f"autoscaling: the least number of nodes is above the greatest: {max(least, total_least)} > {max(most, total_most)}.")


def check_pool(pool: container_v1.NodePool) -> None:
    """See that a node pool can be, flex-start and queued provisioning above all.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    check_name("node_pool", pool.name)
    check_size(pool.initial_node_count)
    check_autoscaling(pool.autoscaling)
    config = pool.config
    lifetime_s = config.max_run_duration.total_seconds() if config.max_run_duration else 0.0
    if not 0 <= lifetime_s <= LIFETIME_MAX_S:
        raise invalid(f"node_pool.config.max_run_duration {lifetime_s:g}s is invalid: at most {LIFETIME_MAX_S:g}s.")
    if config.flex_start and (config.spot or config.preemptible):
        raise invalid("node_pool.config: flex_start cannot be combined with spot or preemptible.")
    if pool.queued_provisioning.enabled:
        if not pool.autoscaling.enabled:
            raise invalid("node_pool.queued_provisioning: autoscaling must be enabled.")
        if pool.initial_node_count:
            raise invalid("node_pool.queued_provisioning: initial_node_count must be 0.")
        affinity = container_v1.ReservationAffinity.Type
        if config.reservation_affinity.consume_reservation_type in (affinity.ANY_RESERVATION, affinity.SPECIFIC_RESERVATION):
            raise invalid("node_pool.queued_provisioning: reservation_affinity must be NO_RESERVATION.")


def pools_of(cluster: container_v1.Cluster) -> list[container_v1.NodePool]:
    """The pools that a cluster is made with.

    Raises:
        ApiError: INVALID_ARGUMENT when one cannot be.
    """
    if not cluster.node_pools:
        pools = [container_v1.NodePool(name=DEFAULT_POOL, config=cluster.node_config, initial_node_count=cluster.initial_node_count)]
    else:
        pools = list(cluster.node_pools)
    for pool in pools:
        check_pool(pool)
    names = [pool.name for pool in pools]
    if len(set(names)) != len(names):
        raise invalid(
            f"cluster.node_pools: two have the same name: {', '.join(sorted({name for name in names if names.count(name) > 1}))}."
        )
    return pools


def require_quota(project: ProjectState, groups: InstanceGroups, wanted: list[tuple[NodeGroup, int]]) -> None:
    """See that there is quota for so many more nodes of each group.

    Raises:
        ApiError: PERMISSION_DENIED, as Kubernetes Engine refuses before it asks for an instance.
    """
    needs: dict[str, Counter[str]] = {}
    for group, count in wanted:
        needs.setdefault(group.region, Counter()).update({name: each * count for name, each in group.usage().items()})
    for region, need in needs.items():
        used = groups.used(project.name, region)
        for quota, more in sorted(need.items()):
            limit = project.quotas.get(quota)
            if limit is not None and more > 0 and used.get(quota, 0) + more > limit:
                free = max(0.0, limit - used.get(quota, 0))
                raise short_of_quota(quota, wanted=more, limit=limit, free=free, project=project.name)
