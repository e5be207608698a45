"""Pools grow and shrink beside the loop, and are at rest again when a run has ended."""

from collections.abc import Iterator

import pytest

from harness.errors import BrokenHarnessError, UnknownNameError
from harness.history import PoolScaled
from harness.kind import DEFAULT_TOPOLOGY, NodeState
from harness.scenario import Cluster
from harness.targets.kubernetes.api import NODES
from harness.targets.kubernetes.pools import NodePools, first_sizes

from .fake_api import FakeApi
from .fake_machines import FakeMachines, finish


@pytest.fixture
def machines() -> FakeMachines:
    return FakeMachines(DEFAULT_TOPOLOGY, off=["dws-pool"])


@pytest.fixture
def pools(machines: FakeMachines) -> Iterator[NodePools]:
    pools = NodePools(machines, DEFAULT_TOPOLOGY)
    pools.read()
    yield pools
    machines.gate.set()
    pools.close()


def running(machines: FakeMachines, pool: str) -> list[str]:
    return [node.name for node in machines.list(pool) if node.state is NodeState.RUNNING]


def test_a_pool_grows_while_the_loop_goes_on(pools: NodePools, machines: FakeMachines):
    machines.gate.clear()
    names = pools.grow("dws-pool", 2, "a request was granted")

    assert names == ("dws-pool-0", "dws-pool-1")
    assert pools.tick(1.0) == []
    assert (pools.size("dws-pool"), pools.spare("dws-pool"), pools.are_up(names), pools.is_busy()) == (2, 0, False, True)

    machines.gate.set()
    finish(pools)

    assert pools.tick(2.0) == [PoolScaled(t_s=2.0, pool="dws-pool", nodes=2, why="a request was granted")]
    assert pools.are_up(names)
    assert not pools.is_busy()


def test_a_pool_has_no_more_machines_than_its_maximum(pools: NodePools):
    assert pools.grow("dws-pool", 5, "many") == ("dws-pool-0", "dws-pool-1")
    assert pools.grow("dws-pool", 1, "one more") == ()


def test_machines_that_stop_are_not_free_before_they_have_stopped(pools: NodePools, machines: FakeMachines):
    pools.shrink(["on-demand-pool-0"], "idle")
    assert (pools.size("on-demand-pool"), pools.spare("on-demand-pool")) == (1, 0)

    finish(pools)
    pools.tick(1.0)

    assert pools.spare("on-demand-pool") == 1
    assert machines.calls == [("kill", "on-demand-pool-0"), ("forget", "on-demand-pool-0")]


def test_a_machine_that_is_no_longer_wanted_while_it_starts_is_stopped(pools: NodePools, machines: FakeMachines):
    machines.gate.clear()
    names = pools.grow("dws-pool", 1, "granted")
    pools.shrink(names, "deleted")
    machines.gate.set()
    finish(pools)
    pools.tick(1.0)

    assert machines.states["dws-pool-0"] is NodeState.EXITED
    assert (pools.size("dws-pool"), pools.spare("dws-pool")) == (0, 2)


def test_what_a_fault_took_away_still_counts(pools: NodePools, machines: FakeMachines):
    machines.states["on-demand-pool-1"] = NodeState.EXITED

    assert (pools.size("on-demand-pool"), pools.spare("on-demand-pool")) == (2, 0)


def test_stopping_twice_is_stopping_once(pools: NodePools, machines: FakeMachines):
    pools.shrink(["on-demand-pool-0"], "idle", is_graceful=True)
    pools.shrink(["on-demand-pool-0"], "idle", is_graceful=True)
    finish(pools)

    assert len(pools.tick(1.0)) == 1
    assert machines.calls.count(("stop", "on-demand-pool-0")) == 1


def test_a_run_begins_with_the_nodes_that_its_scenario_asks_for(machines: FakeMachines):
    assert first_sizes(DEFAULT_TOPOLOGY, Cluster()) == {"default-pool": 1, "on-demand-pool": 2, "dws-pool": 0}
    assert first_sizes(DEFAULT_TOPOLOGY, Cluster(on_demand_nodes=0))["on-demand-pool"] == 0
    assert first_sizes(DEFAULT_TOPOLOGY, Cluster(on_demand_nodes=9))["on-demand-pool"] == 2


def test_pools_that_have_their_size_are_left_alone(pools: NodePools, machines: FakeMachines):
    pools.scale(first_sizes(DEFAULT_TOPOLOGY, Cluster()), "the run begins")

    assert not pools.is_busy()
    assert machines.calls == []


def test_pools_are_brought_to_their_first_size(pools: NodePools, machines: FakeMachines):
    pools.scale({"on-demand-pool": 0, "dws-pool": 1}, "the run begins")
    finish(pools)

    assert [(event.pool, event.nodes) for event in pools.tick(0.0) if isinstance(event, PoolScaled)] == [
        ("on-demand-pool", 0),
        ("dws-pool", 1),
    ]
    assert (running(machines, "on-demand-pool"), running(machines, "dws-pool")) == ([], ["dws-pool-0"])


def test_pools_rest_again_after_a_run_whatever_happened_in_it(pools: NodePools, machines: FakeMachines):
    pools.grow("dws-pool", 2, "granted")
    machines.states["on-demand-pool-1"] = NodeState.EXITED  # a fault that nobody healed
    pools.restore()

    assert running(machines, "on-demand-pool") == ["on-demand-pool-0", "on-demand-pool-1"]
    assert running(machines, "dws-pool") == []
    assert running(machines, "default-pool") == ["default-pool-0"]


def test_a_machine_that_does_not_start_is_an_error_and_the_others_rest_all_the_same(pools: NodePools, machines: FakeMachines):
    machines.broken.add("dws-pool-0")
    machines.states["on-demand-pool-1"] = NodeState.EXITED
    pools.grow("dws-pool", 1, "granted")
    finish(pools)

    with pytest.raises(BrokenHarnessError, match="dws-pool-0 does not start"):
        pools.tick(1.0)
    pools.restore()
    assert running(machines, "on-demand-pool") == ["on-demand-pool-0", "on-demand-pool-1"]


def test_an_error_that_nobody_asked_for_comes_when_the_pools_have_been_restored(pools: NodePools, machines: FakeMachines):
    machines.broken.add("dws-pool-0")
    machines.states["on-demand-pool-1"] = NodeState.EXITED
    pools.grow("dws-pool", 1, "granted")

    with pytest.raises(BrokenHarnessError, match="dws-pool-0 does not start"):
        pools.restore()
    assert running(machines, "on-demand-pool") == ["on-demand-pool-0", "on-demand-pool-1"]


def test_the_node_object_goes_with_the_machine():
    api = FakeApi()
    machines = FakeMachines(DEFAULT_TOPOLOGY, api)
    pools = NodePools(machines, DEFAULT_TOPOLOGY)
    pools.read()
    pools.shrink(["on-demand-pool-0"], "idle")
    pools.close()

    assert api.get(NODES, "on-demand-pool-0") is None


def test_a_pool_that_the_topology_does_not_have_is_named(pools: NodePools):
    with pytest.raises(UnknownNameError, match="no node pool is named 'spot-pool'"):
        pools.size("spot-pool")


def test_a_machine_that_was_given_back_and_runs_all_the_same_is_put_away(pools: NodePools, machines: FakeMachines):
    names = pools.grow("dws-pool", 2, "granted")
    assert all(map(pools.holds, names))
    pools.shrink(names[:1], "its request has ended")
    assert [pools.holds(name) for name in names] == [False, True]
    finish(pools)
    pools.tick(1.0)
    machines.start(names[0])  # as the end of a fault does
    pools.put_away(names, "it was mended too late")
    finish(pools)
    pools.tick(2.0)

    assert running(machines, "dws-pool") == [names[1]]
    assert pools.spare("dws-pool") == 1


def test_a_machine_that_is_granted_again_is_started_after_it_was_put_away(pools: NodePools, machines: FakeMachines):
    machines.start("dws-pool-0")
    pools.put_away(["dws-pool-0"], "it was mended too late")
    finish(pools)
    pools.tick(1.0)
    pools.grow("dws-pool", 1, "granted")
    finish(pools)
    pools.tick(2.0)

    assert running(machines, "dws-pool") == ["dws-pool-0"]
    assert not pools.holds("nobody")
