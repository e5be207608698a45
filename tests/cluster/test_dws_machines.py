"""Simulator and autoscaler with real machines: capacity is granted, used, revoked; a pool grows from nothing."""

from collections.abc import Callable, Iterator

import pytest

from harness.clock import SystemClock
from harness.history import Event, PoolScaled
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.kind import KindCluster, NodeContainers
from harness.scenario import Cluster, Phase, PoolAnswer, ProvisioningScript
from harness.targets.kubernetes.api import (
    EVENTS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    Object,
    annotations_of,
    labels_of,
    name_of,
)
from harness.targets.kubernetes.autoscaler import OnDemandAutoscaler
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.dws_requests import PROVISIONING_CLASS, REQUEST_LABEL
from harness.targets.kubernetes.dws_states import State
from harness.targets.kubernetes.inventory import node_of, phase_of
from harness.targets.kubernetes.pools import DWS_POOL, ON_DEMAND_POOL, NodePools
from harness.targets.kubernetes.watching import Watched, Watches
from tests.cluster.kueue_trials import NAME, TEST_S_MAX, Context, KueueTrials

pytestmark = pytest.mark.timeout(TEST_S_MAX)

DEADLINE_S = 120.0
TICK_S = 0.1
CONTEXTS = {"dws": Context(pool=DWS_POOL), "on-demand": Context(pool=ON_DEMAND_POOL, is_checked=False)}

SCARCE = Cluster(
    provisioning=(ProvisioningScript(phases=(Phase(state="stockout"), Phase(state="granted", after_s=3.0))),),
    on_demand=PoolAnswer(answer="stockout", after_s=1.0, for_s=3.0),
)


class Emulation:
    """What the target drives in each poll, driven by hand."""

    def __init__(self, cluster: KindCluster, trials: KueueTrials) -> None:
        self.clock = SystemClock()
        self.trials = trials
        self.events: list[Event] = []
        self.pools = NodePools(NodeContainers(cluster, self.clock), cluster.topology)
        self.dws = DwsSimulator(trials.api, self.pools, self.clock, namespace=NAME, cluster=SCARCE, task_of=lambda _: 0)
        self.autoscaler = OnDemandAutoscaler(trials.api, self.pools, self.clock, namespace=NAME, answer=SCARCE.on_demand)
        self.watches = Watches(trials.api, [Watched(PROVISIONING_REQUESTS, NAME), Watched(PODS, NAME), Watched(NODES)])

    def empty(self, *pools: str) -> None:
        self.pools.read()
        self.pools.scale(dict.fromkeys(pools, 0), "the test begins")
        self.until(lambda: not self.pools.is_busy(), "the pools are not empty")

    def until(self, holds: Callable[[], object], otherwise: str) -> None:
        """Drive everything until something holds."""
        end_s = self.clock.monotonic_s() + DEADLINE_S
        while not holds():
            assert self.clock.monotonic_s() < end_s, f"{otherwise}: {self.events}"
            for change in self.watches.drain():
                self.dws.see(change)
                self.autoscaler.see(change)
            self.trials.turn()
            now_s = self.clock.monotonic_s()
            for part in (self.pools, self.dws, self.autoscaler):
                self.events += part.tick(now_s)
            self.clock.sleep(TICK_S)

    def pods(self) -> list[Object]:
        return self.trials.api.list(PODS, NAME)

    def is_running(self) -> bool:
        return [phase_of(pod) for pod in self.pods()] == ["Running"]

    def nodes(self, pool: str) -> list[Object]:
        return self.trials.api.list(NODES, selector=f"cloud.google.com/gke-nodepool={pool}")

    def errors(self) -> list[str]:
        return [event.error for event in self.events if isinstance(event, PoolScaled) and event.error]

    def close(self) -> None:
        self.watches.close()
        self.pools.restore()
        self.pools.close()


@pytest.fixture
def emulation(cluster: KindCluster) -> Iterator[Emulation]:
    with KueueTrials(cluster, CONTEXTS) as trials:
        emulation = Emulation(cluster, trials)
        yield emulation
        emulation.close()


def test_capacity_comes_after_a_stockout_is_used_and_is_revoked(emulation: Emulation):
    emulation.empty(DWS_POOL)
    assert emulation.nodes(DWS_POOL) == []
    (trial,) = emulation.trials.begin([(State.PENDING,)], "dws")
    emulation.until(emulation.is_running, "the pod does not run")

    (pod,) = emulation.pods()
    (node,) = emulation.nodes(DWS_POOL)
    request = f"{trial.workload}-{NAME}-prov-dws-1"
    assert emulation.errors() == ["ResourcePoolExhausted"]
    assert node_of(pod) == name_of(node)
    assert (annotations_of(pod)[CONSUME_ANNOTATION], annotations_of(pod)[CLASS_ANNOTATION]) == (request, PROVISIONING_CLASS)
    found = emulation.trials.api.get(PROVISIONING_REQUESTS, request, NAME)
    assert found is not None
    assert labels_of(node)[REQUEST_LABEL] == found["status"]["provisioningClassDetails"]["ResizeRequestName"]

    assert emulation.dws.revoke(request) == (name_of(node),)
    emulation.until(lambda: not emulation.nodes(DWS_POOL) and not emulation.pools.is_busy(), "the node is still there")
    emulation.until(lambda: not trial.newest["spec"].get("active", True), "Kueue has not deactivated the workload")


def test_an_empty_pool_grows_after_a_stockout(emulation: Emulation):
    emulation.empty(ON_DEMAND_POOL)
    api = emulation.trials.api
    api.create(*emulation.trials.job_of("on-demand"), NAME)
    emulation.until(emulation.is_running, "the pod does not run")

    assert emulation.errors() == ["GCE_STOCKOUT"]
    assert len(emulation.nodes(ON_DEMAND_POOL)) == 1
    (pod,) = emulation.pods()
    reasons = [event["reason"] for event in api.list(EVENTS, NAME) if event["involvedObject"]["name"] == name_of(pod)]
    assert {"TriggeredScaleUp", "FailedScaleUp", "NotTriggerScaleUp"} <= set(reasons)
