"""Tests on the real cluster that `harness up kind` has brought up."""

import pytest

from harness.clock import SystemClock
from harness.kind import KindCluster, NodeContainers, find_cluster, lasting_problem
from harness.targets.kubernetes.api import Api


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> KindCluster:
    """The cluster; without one the test is skipped, or, with ``--require kind``, an error."""
    found = find_cluster()
    problem = lasting_problem(found, SystemClock())
    if problem and "kind" in str(request.config.getoption("--require")).split(","):
        pytest.fail(f"{problem} (and --require names kind)", pytrace=False)
    if problem or found is None:
        pytest.skip(problem)
    return found


@pytest.fixture
def machines(cluster: KindCluster) -> NodeContainers:
    return NodeContainers(cluster, SystemClock())


@pytest.fixture
def api(cluster: KindCluster) -> Api:
    return Api(cluster.kubeconfig, cluster.context)
