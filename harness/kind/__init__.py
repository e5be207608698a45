"""The local cluster: brings it up and down, and works on its nodes. Knows docker, kind and kubectl as command lines."""

from harness.kind.bundle.job_image import job_image
from harness.kind.cache import cache_dir, shared_dir
from harness.kind.cluster import ALLOW_LABEL, ENVIRONMENT_MOUNT, RUN_ID_LABEL, KindCluster, find_cluster, kubectl
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.engine import problem_with_engine
from harness.kind.health import (
    UP,
    lasting_problem,
    lasting_problem_with_operators,
    problem_with,
    problem_with_operators,
    reason_and_advice,
)
from harness.kind.nodes import NodeContainer, NodeContainers, NodeState
from harness.kind.topology import DEFAULT_TOPOLOGY, NodePool, Topology

__all__ = [
    "ALLOW_LABEL",
    "DEFAULT_TOPOLOGY",
    "ENVIRONMENT_MOUNT",
    "RUN_ID_LABEL",
    "UP",
    "CommandFailedError",
    "KindCluster",
    "NodeContainer",
    "NodeContainers",
    "NodePool",
    "NodeState",
    "Topology",
    "cache_dir",
    "find_cluster",
    "job_image",
    "kubectl",
    "lasting_problem",
    "lasting_problem_with_operators",
    "problem_with",
    "problem_with_engine",
    "problem_with_operators",
    "reason_and_advice",
    "run_command",
    "shared_dir",
]
