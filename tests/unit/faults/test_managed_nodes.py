"""On a cluster that somebody else runs its platform takes machines away: seen node by node after the fault has acted, healed by counting."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from harness.errors import HealError, InjectionError
from harness.history.cluster import NodeSeen, PodSeen
from harness.scenario.cluster_faults import BreakNode, CordonNode, InterruptNode, LoseNode, LosePool, LowerQuota
from harness.undo import ClusterAction, MendNode, NothingToUndo, RestoreProject, RestoreQuota, Uncordon, Undo
from tests.unit.faults.conftest import FullTarget

GRACEFUL = InterruptNode(profile="gke-maintenance-graceful", duration_s=30.0)
SPOT = InterruptNode(profile="gke-spot", duration_s=30.0)
HOST_ERROR = InterruptNode(profile="gke-host-error", duration_s=30.0)


@dataclass(kw_only=True)
class ManagedTarget(FullTarget):
    """As the full one, and its cluster is somebody else's."""

    actions: list[ClusterAction] = field(default_factory=list)

    def undo_of(self, actions: Sequence[ClusterAction]) -> Undo:
        self.actions += actions
        return NothingToUndo(why="as the test wants it")

    def pool_undo(self, pool: str) -> Undo:
        self._do("pool_undo", pool)
        return RestoreProject(project="our-project", actions=())

    def empty_pool(self, pool: str) -> None:
        self._do("empty_pool", pool)

    def take_by_maintenance(self, nodes: Sequence[str], *, is_preemption: bool) -> None:
        self._do("take_by_maintenance", tuple(nodes), is_preemption)


@pytest.fixture
def target(tmp_path):
    return ManagedTarget(directory=tmp_path)


def node(name: str, state: str) -> NodeSeen:
    return NodeSeen(t_s=1.0, name=name, uid=f"uid-{name}", pool="on-demand-pool", state=state, is_schedulable=True)


def act(fault, *events) -> str:
    fault.advance(events)
    return fault.observe(events)


@pytest.mark.parametrize(
    ("fault", "actions"),
    [
        (CordonNode(), [Uncordon(node="node-1"), Uncordon(node="node-2")]),
        (BreakNode(), [MendNode(node="node-1"), MendNode(node="node-2")]),
        (LoseNode(), [MendNode(node="node-1"), MendNode(node="node-2")]),
        (GRACEFUL, [MendNode(node="node-1"), MendNode(node="node-2")]),
        (LowerQuota(), [RestoreQuota(queue="queue", flavor="on-demand", resource="google.com/tpu", quota="16", wrote="0")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_target_says_what_takes_actions_back(make, target, fault, actions):
    assert isinstance(make(fault).undo(), NothingToUndo)
    assert target.actions == actions


def test_a_pool_is_emptied_and_what_gives_it_back_is_read_before(make, target):
    active = make(LosePool())
    assert isinstance(active.undo(), RestoreProject)
    assert "empty_pool" not in target.names()
    assert "from 2" in active.inject()
    assert target.names().index("pool_undo") < target.names().index("empty_pool")
    assert "lose_nodes" not in target.names()


@pytest.mark.parametrize(("fault", "call"), [(LoseNode(), "lose_nodes"), (HOST_ERROR, "lose_nodes"), (GRACEFUL, "take_by_maintenance")])
@pytest.mark.parametrize("state", ["Deleted", "False", "Unknown"])
def test_a_loss_is_seen_when_every_node_was_away_whatever_it_is_by_now(make, target, fault, call, state):
    active = make(fault)
    active.undo()
    assert act(active, node("node-1", state), node("node-2", state)) == "", "before it has acted nothing is its doing"
    active.inject()
    assert call in target.names()
    assert act(active, node("node-1", state)) == ""
    assert act(active, node("node-1", "True"), node("node-3", "Deleted")) == ""
    told = act(active, node("node-2", state))
    assert "node-1" in told
    assert "node-2" in told


@pytest.mark.parametrize(("fault", "is_preemption"), [(GRACEFUL, False), (SPOT, True)])
def test_a_maintenance_takes_all_nodes_of_the_job_by_the_platforms_own_means(make, target, fault, is_preemption):
    active = make(fault)
    active.undo()
    active.inject()
    assert ("take_by_maintenance", ("node-1", "node-2"), is_preemption) in target.done
    assert not {"announce_maintenance", "announce_termination", "evict_pod", "delete_pod"} & set(target.names())
    assert active.heal_after_s is None
    pod = PodSeen(t_s=1.0, task=1, name="host-0", uid="uid-0", rank=0, phase="Failed")
    told = act(active, pod, node("node-1", "Deleted"), node("node-2", "Deleted"))
    assert "pod host-0 (uid-0) ended" in told
    assert "host-1 (uid-1) has not ended" in told
    assert active.heal_after_s == 30.0


def test_it_is_healed_when_the_target_counts_as_many_nodes_as_before(make, target):
    active = make(LoseNode())
    active.undo()
    active.inject()
    assert active.heal() == ""
    target.whole = True
    assert "as many nodes are ready" in active.heal()
    assert target.names().count("mend_nodes") == 1


def test_what_a_project_refuses_is_a_fault_that_could_not_act(make, target):
    target.refuses = {"empty_pool": "the pool is not labelled"}
    active = make(LosePool())
    active.undo()
    with pytest.raises(InjectionError, match="not labelled"):
        active.inject()


def test_what_does_not_come_back_acts_still(make, target):
    active = make(LoseNode())
    active.undo()
    active.inject()
    target.refuses = {"mend_nodes": "no quota"}
    with pytest.raises(HealError, match="no quota"):
        active.heal()
