"""Pods that wait for a node of the on-demand pool get one, or are told why not, in the words of GKE's autoscaler."""

from collections.abc import Iterator

import pytest

from harness.clock import ManualClock
from harness.history import Event, PoolScaled
from harness.history.cluster import CONSUME_ANNOTATION
from harness.kind import DEFAULT_TOPOLOGY
from harness.kind.topology import POOL_LABEL
from harness.scenario import PoolAnswer
from harness.targets.kubernetes.api import EVENTS, PODS, ApiError, Object, Resource
from harness.targets.kubernetes.autoscaler import SETTLE_S, OnDemandAutoscaler
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.watching import Watched

from .fake_api import FakeApi
from .fake_machines import FakeMachines, finish, pod

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str, *, pool: str = "on-demand-pool", chips: int = 4, **metadata: Object) -> tuple[Resource, Object]:
    return pod(name, chips=chips, metadata=metadata, spec={"nodeSelector": {POOL_LABEL: pool}}, status=UNSCHEDULABLE)


class Trial:
    """An autoscaler on a cluster in memory whose on-demand pool is empty."""

    def __init__(self, answer: PoolAnswer, *, off: tuple[str, ...] = ("on-demand-pool", "dws-pool")) -> None:
        self.api = FakeApi()
        self.machines = FakeMachines(DEFAULT_TOPOLOGY, self.api, off=off)
        self.pools = NodePools(self.machines, DEFAULT_TOPOLOGY)
        self.pools.read()
        self.autoscaler = OnDemandAutoscaler(self.api, self.pools, ManualClock(), namespace="run", answer=answer)
        self.watches = self.api.watches([Watched(PODS)])
        self.now_s = 0.0
        self.events: list[Event] = []

    def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.5)):
            self.now_s += 0.5
            for change in self.watches.drain():
                self.autoscaler.see(change)
            self.events += self.pools.tick(self.now_s)
            self.events += self.autoscaler.tick(self.now_s)
            finish(self.pools)

    def told(self, name: str) -> list[str]:
        """Reasons of a pod's Events, in their order."""
        events = self.api.list(EVENTS, "run")
        return [event["reason"] for event in events if event["involvedObject"]["name"] == name]

    def scaled(self) -> list[tuple[int, str]]:
        return [(event.nodes, event.error) for event in self.events if isinstance(event, PoolScaled)]

    def message(self, reason: str) -> str:
        return next(event["message"] for event in self.api.list(EVENTS, "run") if event["reason"] == reason)


@pytest.fixture
def begin() -> Iterator[object]:
    made: list[Trial] = []

    def make(answer: PoolAnswer | None = None, **more: tuple[str, ...]) -> Trial:
        made.append(Trial(answer or PoolAnswer(), **more))
        return made[-1]

    yield make
    for trial in made:
        trial.pools.close()


def test_a_pool_grows_from_zero_for_a_pod_that_waits(begin):
    trial = begin()
    trial.api.put(*waiting("host-0"))
    trial.pass_s(1)
    assert trial.told("host-0") == []
    trial.pass_s(2)

    assert trial.told("host-0") == ["TriggeredScaleUp"]
    assert trial.message("TriggeredScaleUp").endswith("/gke-chaos-harness-on-demand-pool-grp 0->1 (max: 2)}]")
    assert trial.scaled() == [(1, "")]


def test_pods_that_share_a_node_get_one(begin):
    trial = begin()
    for number in range(3):
        trial.api.put(*waiting(f"host-{number}"))
    trial.pass_s(3)

    assert trial.scaled() == [(2, "")]


def test_a_pod_is_given_time_to_be_bound_to_its_new_node(begin):
    trial = begin()
    trial.api.put(*waiting("host-0"))
    trial.pass_s(SETTLE_S)
    assert trial.scaled() == [(1, "")]

    trial.pass_s(SETTLE_S)
    assert trial.scaled() == [(1, ""), (2, "")]  # it waits still: for another one


def test_a_stockout_is_told_once_then_there_is_a_back_off_and_then_nodes_come(begin):
    trial = begin(PoolAnswer(answer="stockout", after_s=1.0, for_s=5.0))
    trial.api.put(*waiting("host-0"))
    trial.pass_s(4)
    assert trial.told("host-0") == ["TriggeredScaleUp", "FailedScaleUp", "NotTriggerScaleUp"]
    assert trial.scaled() == [(0, "GCE_STOCKOUT")]

    trial.pass_s(5)
    assert trial.scaled() == [(0, "GCE_STOCKOUT"), (1, "")]


@pytest.mark.parametrize(
    ("answer", "code", "text", "of_the_pod"),
    [
        ("stockout", "GCE_STOCKOUT", "does not have enough resources available to fulfill the request.", "GCE out of resources"),
        ("quota-exceeded", "GCE_QUOTA_EXCEEDED", "exceeded.  Limit: 16.0 in region us-east5.", "GCE quota exceeded"),
    ],
)
def test_a_refusal_is_in_googles_words(begin, answer: str, code: str, text: str, of_the_pod: str):
    trial = begin(PoolAnswer(answer=answer))
    trial.api.put(*waiting("host-0"))
    trial.pass_s(2)

    (refused,) = [event for event in trial.events if isinstance(event, PoolScaled)]
    assert (refused.error, refused.pool) == (code, "on-demand-pool")
    assert text in refused.why
    assert trial.message("FailedScaleUp") == (
        f"Node scale up in zones us-east5-b associated with this pod failed: {of_the_pod}. Pod is at risk of not being scheduled."
    )


def test_a_full_pool_does_not_grow(begin):
    trial = begin(off=("dws-pool",))
    trial.api.put(*waiting("host-0"))
    trial.pass_s(5)

    assert trial.told("host-0") == ["NotTriggerScaleUp"]
    assert "max node group size reached" in trial.message("NotTriggerScaleUp")
    assert trial.scaled() == []


def test_a_pod_that_fits_on_no_node_does_not_make_the_pool_grow(begin):
    trial = begin()
    trial.api.put(*waiting("host-0", chips=16))
    trial.pass_s(3)

    assert trial.told("host-0") == ["NotTriggerScaleUp"]
    assert trial.scaled() == []


@pytest.mark.parametrize(
    "other",
    [
        waiting("host-0", pool="dws-pool"),
        waiting("host-0", annotations={CONSUME_ANNOTATION: "job-a-dws-prov-1"}),
        waiting("host-0", deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("host-0", node="on-demand-pool-0", spec={"nodeSelector": {POOL_LABEL: "on-demand-pool"}}),
        pod("host-0", spec={"nodeSelector": {POOL_LABEL: "on-demand-pool"}}),
        pod("host-0", namespace="other", spec={"nodeSelector": {POOL_LABEL: "on-demand-pool"}}, status=UNSCHEDULABLE),
    ],
    ids=["of another pool", "with a request", "ending", "running", "not looked at yet", "of another namespace"],
)
def test_pods_that_need_no_node_of_the_pool_are_passed_over(begin, other: tuple[Resource, Object]):
    trial = begin()
    trial.api.put(*other)
    trial.pass_s(5)

    assert trial.told("host-0") == []
    assert trial.scaled() == []


def test_a_pod_that_went_away_needs_no_node(begin):
    trial = begin(PoolAnswer(after_s=3.0))
    trial.api.put(*waiting("host-0"))
    trial.pass_s(1)
    trial.api.remove(PODS, "host-0", "run")
    trial.pass_s(5)

    assert trial.scaled() == []


def test_an_event_that_cannot_be_written_keeps_no_node_away(begin):
    trial = begin()
    trial.api.failures["create", "events"] = ApiError(attempted="create", what="it", status=0, reason="refused")
    trial.api.put(*waiting("host-0"))
    trial.pass_s(3)

    assert trial.scaled() == [(1, "")]
