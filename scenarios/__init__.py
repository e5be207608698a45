"""The catalogue: every scenario by name, one module a family of failures."""

from collections.abc import Mapping
from types import MappingProxyType

from harness.scenario import Scenario
from scenarios import (
    cloud_run_guide,
    cluster_guide,
    cluster_nodes,
    cluster_pods,
    cluster_provisioning,
    cluster_queue,
    jax_training,
    operations,
    overlap,
    process_death,
    ranks,
    ray_training,
    storage_at_rest,
    storage_running,
)

LOCAL = (cloud_run_guide, process_death, operations, storage_at_rest, storage_running, overlap, ranks, jax_training, ray_training)
CLUSTER = (cluster_pods, cluster_nodes, cluster_queue, cluster_provisioning, cluster_guide)
FAMILIES = (*LOCAL, *CLUSTER)

CATALOGUE: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for family in FAMILIES for scenario in family.SCENARIOS})
