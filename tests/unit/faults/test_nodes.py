"""Nodes are hurt by name, seen hurt by what the API server says of them, and healed when it says so."""

import pytest

from harness.errors import HealError, InjectionError
from harness.history.cluster import NodeSeen, PodSeen
from harness.scenario.cluster_faults import BreakNode, CordonNode, DrainNode, InterruptNode, LoseNode, LosePool
from harness.undo import MendNode, RestoreCluster, Uncordon

BOTH = ("node-1", "node-2")
SPOT = InterruptNode(profile="gke-spot", duration_s=30.0)
GRACEFUL = InterruptNode(profile="gke-maintenance-graceful", notice_s=5.0, duration_s=30.0)


def node(name: str, state: str = "True", *, is_schedulable: bool = True) -> NodeSeen:
    return NodeSeen(t_s=1.0, name=name, uid=f"uid-{name}", pool="on-demand-pool", state=state, is_schedulable=is_schedulable)


def gone(rank: int) -> PodSeen:
    return PodSeen(t_s=1.0, task=1, name=f"host-{rank}", uid=f"uid-{rank}", rank=rank, phase="Deleted")


def act(fault, events=()) -> str:
    """One tick of the injector."""
    fault.advance(events)
    return fault.observe(events)


def begin(fault) -> str:
    fault.undo()
    return fault.inject()


# ---- undo before act ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "actions", "first"),
    [
        (CordonNode(), tuple(Uncordon(node=name) for name in BOTH), "cordon"),
        (DrainNode(), tuple(Uncordon(node=name) for name in BOTH), "cordon"),
        (BreakNode(), tuple(MendNode(node=name) for name in BOTH), "break_nodes"),
        (LoseNode(), tuple(MendNode(node=name) for name in BOTH), "lose_nodes"),
        (LosePool(), tuple(MendNode(node=name) for name in BOTH), "lose_nodes"),
        (LosePool(pool="dws-pool"), (MendNode(node="node-3"), MendNode(node="node-4")), "lose_nodes"),
        (GRACEFUL, tuple(MendNode(node=name) for name in BOTH), "announce_maintenance"),
        (SPOT, tuple(MendNode(node=name) for name in BOTH), "announce_termination"),
    ],
    ids=lambda value: getattr(value, "profile", None) or type(value).__name__,
)
def test_what_undoes_it_is_named_before_anything_is_hurt(make, target, fault, actions, first) -> None:
    active = make(fault)

    assert active.undo() == RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=actions)
    assert set(target.names()) <= {"pods_of", "nodes_in"}
    target.done.clear()
    active.inject()
    assert target.names()[0] == first


@pytest.mark.parametrize(
    "fault", [CordonNode(), BreakNode(), LoseNode(), LosePool(), InterruptNode()], ids=lambda fault: type(fault).__name__
)
def test_a_victim_on_no_node_is_an_injection_that_failed(make, target, fault) -> None:
    target.refuses = {"pods_of": "no pod of hosts is there", "nodes_in": "no pod of hosts is there"}

    with pytest.raises(InjectionError, match="no pod of hosts is there"):
        make(fault).undo()


@pytest.mark.parametrize(
    ("fault", "name"),
    [(CordonNode(), "cordon"), (DrainNode(), "evict_pod"), (BreakNode(), "break_nodes"), (LoseNode(), "lose_nodes"), (SPOT, "delete_pod")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_cluster_refuses_is_an_injection_that_failed(make, target, fault, name) -> None:
    target.refuses[name] = "the API server said 403 Forbidden"

    with pytest.raises(InjectionError, match="403 Forbidden"):
        begin(make(fault))


# ---- cordon and drain --------------------------------------------------------------------------------------------------


def test_a_cordon_is_seen_on_every_node_and_ends_when_that_is_seen(make, target) -> None:
    fault = make(CordonNode(duration_s=7.0))

    assert begin(fault) == "nodes node-1, node-2 are cordoned"
    assert act(fault) == ""
    assert act(fault, [node("node-1", is_schedulable=False)]) == ""
    assert act(fault, [node("node-2", is_schedulable=False)]) == "nodes node-1, node-2 are unschedulable"
    assert fault.heal_after_s == 7.0
    assert fault.heal() == ""
    act(fault, [node("node-1")])
    assert fault.heal() == ""
    act(fault, [node("node-2")])
    assert fault.heal() == "nodes node-1, node-2 are schedulable again, or gone"
    assert target.names().count("uncordon") == 2


def test_a_node_that_is_gone_is_cordoned_no_more(make) -> None:
    fault = make(CordonNode(), rank=0)
    begin(fault)
    fault.heal()
    act(fault, [node("node-1", "Deleted", is_schedulable=False)])

    assert fault.heal() == "node node-1 is schedulable again, or gone"


def test_a_drain_is_seen_when_the_pods_have_gone_too(make, target) -> None:
    fault = make(DrainNode())

    assert begin(fault) == "nodes node-1, node-2 are cordoned; evicted: host-0, host-1"
    cordoned = [node(name, is_schedulable=False) for name in BOTH]
    assert act(fault, [*cordoned, gone(0)]) == ""
    assert act(fault, [gone(1)]).endswith("pod host-0 (uid-0) is gone; pod host-1 (uid-1) is gone")


def test_what_cannot_be_uncordoned_is_not_healed(make, target) -> None:
    fault = make(CordonNode())
    begin(fault)
    target.refuses["uncordon"] = "the API server said 500"

    with pytest.raises(HealError, match="said 500"):
        fault.heal()


# ---- breakage and loss -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["False", "Unknown"])
@pytest.mark.parametrize("how", ["power-off", "kubelet", "partition"])
def test_a_broken_node_is_seen_when_it_is_not_ready(make, target, how, state) -> None:
    fault = make(BreakNode(how=how), rank=1)
    begin(fault)

    assert ("break_nodes", ("node-2",), how) in target.done
    assert act(fault, [node("node-2"), node("node-1", state)]) == ""
    assert act(fault, [node("node-2", state)]) == f"node node-2: its condition Ready is {state}"


def test_a_node_that_is_broken_for_a_shorter_time_than_its_grace_shows_it_itself(make, target) -> None:
    fault = make(BreakNode(how="kubelet", duration_s=10.0))
    begin(fault)
    target.breakage = {"node-1": "its kubelet is inactive"}

    assert act(fault) == ""
    target.breakage["node-2"], target.now_s = "its kubelet is inactive", 1.0
    assert act(fault) == "node node-1: its kubelet is inactive; node node-2: its kubelet is inactive"


def test_what_was_seen_before_it_acted_proves_nothing(make) -> None:
    fault = make(LoseNode(), rank=0)
    fault.advance([node("node-1", "Deleted")])
    begin(fault)

    assert act(fault) == ""


@pytest.mark.parametrize("fault", [LoseNode(), LosePool()], ids=lambda fault: type(fault).__name__)
def test_a_lost_node_is_seen_when_its_object_is_gone(make, target, fault) -> None:
    active = make(fault)
    begin(active)

    assert target.done[-1] == ("lose_nodes", BOTH)
    assert act(active, [node("node-1", "Deleted"), node("node-2", "Unknown")]) == ""
    assert act(active, [node("node-2", "Deleted")]) == "node node-1 (uid-node-1) is gone; node node-2 (uid-node-2) is gone"


def test_a_node_that_is_mended_is_healed_when_the_api_server_holds_it_for_ready(make, target) -> None:
    fault = make(LoseNode(duration_s=40.0))
    begin(fault)

    assert fault.heal_after_s == 40.0
    assert [fault.heal(), fault.heal()] == ["", ""]
    target.whole = True
    assert [fault.heal(), fault.heal()] == [
        "nodes node-1, node-2 are ready again, as the API server says, or gone with what asked for it"
    ] * 2
    assert target.names().count("mend_nodes") == 1


def test_where_nothing_is_left_to_mend_it_is_healed_at_once(make, target) -> None:
    fault = make(LoseNode())
    begin(fault)
    target.whole = True

    assert fault.heal() == "nodes node-1, node-2 are ready again, as the API server says, or gone with what asked for it"


def test_a_node_that_cannot_be_mended_is_not_healed(make, target) -> None:
    fault = make(BreakNode())
    begin(fault)
    fault.heal()
    target.refuses["are_whole"] = "not Ready within 180 s"

    with pytest.raises(HealError, match="not Ready within 180 s"):
        fault.heal()


# ---- interruptions by GKE ----------------------------------------------------------------------------------------------


def test_maintenance_is_announced_then_evicts_then_takes_the_machines(make, target) -> None:
    fault = make(GRACEFUL)
    target.now_s = 10.0
    begin(fault)

    assert target.done[1:] == [("announce_maintenance", name, 5.0) for name in BOTH]
    target.now_s = 14.9
    assert act(fault) == ""
    assert "evict_pod" not in target.names()
    target.now_s = 15.0
    assert act(fault) == ""
    assert target.done[3:] == [*(("announce_maintenance", name, 0.0) for name in BOTH), ("evict_pod", "host-0"), ("evict_pod", "host-1")]
    assert fault.heal_after_s is None
    target.now_s = 100.0
    assert act(fault, [gone(0)]) == ""
    assert "lose_nodes" not in target.names()
    target.now_s = 110.0
    assert act(fault, [gone(1)]) == ""
    assert target.done[-1] == ("lose_nodes", BOTH)
    evidence = act(fault, [node("node-1", "Deleted"), node("node-2", "Deleted")])
    assert evidence.startswith("pod host-0 (uid-0) is gone")
    assert evidence.endswith("node node-2 (uid-node-2) is gone")
    assert fault.heal_after_s == 130.0


@pytest.mark.parametrize(("asks_s", "gets_s"), [(30, 15), (4, 4)])
def test_a_pod_on_a_spot_machine_has_its_grace_and_no_more_than_fifteen_seconds(make, target, asks_s, gets_s) -> None:
    target.grace_s = asks_s
    begin(make(SPOT))

    assert [what for what in target.done if what[0] == "delete_pod"] == [("delete_pod", "host-0", gets_s), ("delete_pod", "host-1", gets_s)]


def test_a_spot_machine_does_not_wait_for_a_pod_that_ignores_its_end(make, target) -> None:
    fault = make(SPOT)
    begin(fault)
    target.now_s = 14.9
    act(fault)
    assert "lose_nodes" not in target.names()
    target.now_s = 15.0
    act(fault)

    assert target.done[-1] == ("lose_nodes", BOTH)
    evidence = act(fault, [node(name, "Deleted") for name in BOTH])
    assert evidence.startswith("pod host-0 (uid-0) has not ended; pod host-1 (uid-1) has not ended; node ")


def test_a_host_error_has_no_notice(make, target) -> None:
    fault = make(InterruptNode(profile="gke-host-error"))
    begin(fault)

    assert target.names() == ["pods_of", "lose_nodes"]
    assert act(fault, [node(name, "Deleted") for name in BOTH])


def test_one_rank_takes_the_whole_slice_with_it(make, target) -> None:
    begin(make(InterruptNode(profile="gke-host-error"), rank=1))

    assert target.done[-1] == ("lose_nodes", BOTH)


def test_a_later_stage_that_cannot_act_is_an_injection_that_failed(make, target) -> None:
    fault = make(InterruptNode(notice_s=0.0))
    begin(fault)
    target.refuses["evict_pod"] = "a disruption budget forbids it"

    with pytest.raises(InjectionError, match="a disruption budget forbids it"):
        fault.advance(())
