"""Nodes of pools are hurt and mended; the control plane's never."""

import threading
from pathlib import Path

import pytest

from harness.capabilities import NodeHost, Processes
from harness.targets.kubernetes.api import NODES, PODS, ApiError
from harness.targets.kubernetes.nodes import (
    CUT_CHAIN,
    MAINTENANCE_LABEL,
    SCHEDULED_LABEL,
    TERMINATION_TAINT,
    cutting_script,
    joining_script,
    mend,
    wrong_with,
)
from tests.unit.targets.kubernetes.fake_host import TPU, Host

VICTIM = Processes(task=0, attempt=0)
CHIPS = {"key": TPU, "value": "present", "effect": "NoSchedule"}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_it_is_what_faults_ask_for(host) -> None:
    assert isinstance(host, NodeHost)


def test_the_cluster_is_told_from_another_of_its_name(host) -> None:
    assert (host.cluster_name, host.cluster_uid()) == ("chaos-harness", "uid")


def test_a_victim_is_on_the_nodes_of_its_pods(host) -> None:
    assert host.nodes_of(VICTIM, "hosts") == ("worker2", "worker3")
    assert host.nodes_of(Processes(task=0, attempt=0, rank=1), "hosts") == ("worker3",)


def test_a_pod_beside_the_control_plane_is_on_no_node_that_may_be_hurt(host) -> None:
    for rank in range(2):
        pod = host.get(PODS, f"job-0-{rank}", host.grounds.namespace)
        pod["spec"]["nodeName"] = "plane"
        host.put(PODS, pod)

    with pytest.raises(LookupError, match="run on no node of a pool"):
        host.nodes_of(VICTIM, "hosts")


@pytest.mark.parametrize(
    "act",
    [lambda host: host.cordon("plane"), lambda host: host.break_nodes(["plane"], "power-off"), lambda host: host.lose_nodes(["plane"])],
)
def test_the_control_plane_is_never_hurt(host, act) -> None:
    with pytest.raises(LookupError, match="'plane' is no node of a pool"):
        act(host)
    assert host.machines.done == []
    assert host.get(NODES, "plane") is not None


def test_pools_are_told_apart(host) -> None:
    assert host.nodes_in("on-demand-pool") == ("worker2", "worker3")
    assert host.pool_of("worker") == "default-pool"
    with pytest.raises(LookupError, match="node pool 'dws-pool' is empty"):
        host.nodes_in("dws-pool")
    with pytest.raises(LookupError, match="no node pool 'spot', but default-pool"):
        host.nodes_in("spot")


def test_pods_of_the_job_on_a_node_are_named_with_what_they_ask_for(host) -> None:
    assert [(pod.name, pod.node, pod.grace_s) for pod in host.pods_on("worker2")] == [("job-0-0", "worker2", 30)]


def test_a_cordon_and_its_end(host) -> None:
    host.cordon("worker2")
    assert host.get(NODES, "worker2")["spec"]["unschedulable"] is True
    host.uncordon("worker2")
    assert "unschedulable" not in host.get(NODES, "worker2")["spec"]
    host.uncordon("nobody")


def test_what_the_api_server_refuses_is_told_and_what_it_does_not_answer_breaks_the_run(host) -> None:
    host.api.failures["patch", "nodes"] = ApiError(attempted="patch", what="nodes/worker2", status=403, reason="Forbidden")
    with pytest.raises(LookupError, match="403 Forbidden"):
        host.cordon("worker2")
    host.api.failures["patch", "nodes"] = ApiError(attempted="patch", what="nodes/worker2", status=0, reason="connection refused")
    with pytest.raises(ApiError, match="no answer: connection refused"):
        host.cordon("worker2")


@pytest.mark.parametrize(("how", "did"), [("power-off", "kill"), ("kubelet", "exec"), ("partition", "exec")])
def test_a_broken_node_keeps_its_object_and_its_pods_are_the_faults_where_they_end_with_it(host, how, did) -> None:
    host.break_nodes(["worker2"], how)

    assert [what[:2] for what in host.machines.done] == [(did, "worker2")]
    assert host.get(NODES, "worker2") is not None
    ended = {host.get(PODS, "job-0-0", host.grounds.namespace)["metadata"]["uid"]}
    assert host.grounds.hurt == (ended if how == "power-off" else set())


LISTING = """Chain chaos-cut (4 references)
    pkts      bytes target     prot opt in     out     source               destination
{packets:>8} 540 DROP       0    --  *      *       0.0.0.0/0            0.0.0.0/0
"""


@pytest.mark.parametrize(
    ("how", "says", "words"),
    [
        ("kubelet", "inactive\n", "its kubelet is inactive"),
        ("kubelet", "active\n", ""),
        ("partition", LISTING.format(packets=9), "packets between it and the control plane that were dropped: 9"),
        ("partition", LISTING.format(packets=0), ""),
    ],
)
def test_a_node_shows_how_it_is_broken(host, how, says, words) -> None:
    host.machines.says = says

    assert host.breakage_of("worker2", how) == words


def test_a_machine_that_is_off_shows_it(host) -> None:
    assert host.breakage_of("worker2", "power-off") == ""
    host.break_nodes(["worker2"], "power-off")
    assert host.breakage_of("worker2", "power-off") == "its machine is off"


def test_a_node_that_does_not_say_proves_nothing(host) -> None:
    host.machines.failing.add("exec")

    assert host.breakage_of("worker2", "kubelet") == ""


def test_lost_nodes_lose_their_objects_after_their_machines(host) -> None:
    host.lose_nodes(["worker2", "worker3"])

    assert sorted(host.machines.done) == [("kill", "worker2"), ("kill", "worker3")]
    assert [call for call in host.api.calls if call[0] == "delete"] == [("delete", "nodes", "worker2"), ("delete", "nodes", "worker3")]
    assert len(host.grounds.hurt) == 2


def test_a_machine_that_cannot_be_killed_keeps_its_object(host) -> None:
    host.machines.failing.add("kill")

    with pytest.raises(LookupError, match="ended with 1"):
        host.lose_nodes(["worker2"])
    assert host.get(NODES, "worker2") is not None
    assert host.grounds.hurt == set()


def test_maintenance_is_announced_by_labels_and_taints_the_node_when_it_begins(host) -> None:
    host.announce_maintenance("worker2", in_s=60.0)
    node = host.get(NODES, "worker2")
    begins = int(host.clock.utc().timestamp()) + 60
    assert node["metadata"]["labels"] | {MAINTENANCE_LABEL: "PENDING", SCHEDULED_LABEL: str(begins)} == node["metadata"]["labels"]
    assert node["spec"]["taints"] == [CHIPS]
    host.announce_maintenance("worker2", in_s=0.0)
    host.announce_maintenance("worker2", in_s=0.0)
    node = host.get(NODES, "worker2")

    assert node["metadata"]["labels"][MAINTENANCE_LABEL] == "ONGOING"
    assert node["spec"]["taints"] == [CHIPS, {"key": TERMINATION_TAINT, "effect": "NoSchedule"}]


def test_the_end_of_a_spot_machine_is_a_taint_alone(host) -> None:
    host.announce_termination("worker2")
    node = host.get(NODES, "worker2")

    assert node["spec"]["taints"][1]["key"] == TERMINATION_TAINT
    assert MAINTENANCE_LABEL not in node["metadata"]["labels"]


# ---- mending -----------------------------------------------------------------------------------------------------------


def mended(host: Host, *names: str) -> list[tuple[object, ...]]:
    host.machines.done.clear()
    mend(host.api, host.machines, names)
    return host.machines.done


def test_a_machine_that_was_lost_is_started_and_waited_for(host) -> None:
    host.lose_nodes(["worker2"])

    assert mended(host, "worker2") == [("start", "worker2"), ("repair", ("worker2",))]
    assert host.get(NODES, "worker2") is not None


def test_a_machine_that_runs_gets_its_network_and_its_kubelet_back(host) -> None:
    assert mended(host, "worker2") == [
        ("exec", "worker2", "sh", "-ec", joining_script()),
        ("exec", "worker2", "systemctl", "start", "kubelet"),
        ("repair", ("worker2",)),
    ]


def test_a_kubelet_whose_node_object_is_gone_is_restarted_to_register(host) -> None:
    host.api.remove(NODES, "worker2")

    assert ("exec", "worker2", "systemctl", "restart", "kubelet") in mended(host, "worker2")


def test_marks_of_maintenance_go_and_nothing_else(host) -> None:
    host.announce_maintenance("worker2", in_s=60.0)
    host.announce_maintenance("worker2", in_s=0.0)
    mended(host, "worker2")
    node = host.get(NODES, "worker2")

    assert node["spec"]["taints"] == [CHIPS]
    assert not {MAINTENANCE_LABEL, SCHEDULED_LABEL} & set(node["metadata"]["labels"])


def test_mending_goes_on_beside_the_loop_and_is_begun_once(host) -> None:
    host.lose_nodes(["worker2"])
    assert host.are_whole(["worker2"]) is False
    host.mend_nodes(["worker2"])
    host.end_mending()

    assert host.are_whole(["worker2"]) is True
    assert [what[0] for what in host.machines.done].count("start") == 1


def test_mending_that_failed_says_why(host) -> None:
    host.lose_nodes(["worker2"])
    host.machines.failing.add("repair")
    host.mend_nodes(["worker2"])
    host.end_mending()

    with pytest.raises(LookupError, match="`docker repair` ended with 1"):
        host.are_whole(["worker2"])


def test_a_machine_that_its_pool_has_given_back_is_not_brought_back(host) -> None:
    host.lose_nodes(["worker2", "worker3"])
    host.given_back = {"worker2"}
    host.mend_nodes(["worker2", "worker3"])
    host.end_mending()

    assert host.are_whole(["worker2", "worker3"]) is True
    assert [what for what in host.machines.done if what[0] in ("start", "repair")] == [("start", "worker3"), ("repair", ("worker3",))]
    assert host.put_away == []


def test_where_all_were_given_back_there_is_nothing_to_mend(host) -> None:
    host.lose_nodes(["worker2"])
    host.given_back = {"worker2"}
    host.mend_nodes(["worker2"])

    assert host.are_whole(["worker2"]) is True
    assert "start" not in {what[0] for what in host.machines.done}


def test_a_machine_that_is_given_back_while_it_is_mended_is_stopped_again(host) -> None:
    host.lose_nodes(["worker2"])
    host.mend_nodes(["worker2"])
    host.end_mending()
    host.given_back = {"worker2"}

    assert host.are_whole(["worker2"]) is True
    assert host.are_whole(["worker2"]) is True
    assert host.put_away == ["worker2"]


def test_mending_that_failed_for_a_machine_that_was_given_back_goes_on_with_the_others(host) -> None:
    host.lose_nodes(["worker2", "worker3"])
    host.machines.failing.add("repair")
    host.mend_nodes(["worker2", "worker3"])
    assert host._mendings["worker2", "worker3"].future.exception(10.0) is not None
    host.given_back = {"worker2"}
    host.machines.failing.clear()
    host.machines.done.clear()

    assert host.are_whole(["worker2", "worker3"]) is False
    assert host._mendings["worker2", "worker3"].future.exception(10.0) is None
    assert host.are_whole(["worker2", "worker3"]) is True
    assert host.put_away == ["worker2"]
    assert host.machines.done[-1] == ("repair", ("worker3",))


@pytest.mark.parametrize(
    ("hurt", "words"),
    [
        (lambda _host: None, ""),
        (lambda host: host.cordon("worker2"), "is not schedulable"),
        (lambda host: host.announce_maintenance("worker2", in_s=9.0), "is marked for maintenance"),
        (lambda host: host.announce_termination("worker2"), "is marked for maintenance"),
        (lambda host: ready(host, "Unknown"), "has the condition Ready Unknown"),
        (lambda host: ready(host, "True"), ""),
    ],
)
def test_a_node_that_is_not_whole_shows_it(host, hurt, words) -> None:
    hurt(host)

    assert wrong_with(host.get(NODES, "worker2")) == words


def ready(host: Host, status: str) -> None:
    host.put(NODES, {"metadata": {"name": "worker2", "labels": {}}, "status": {"conditions": [{"type": "Ready", "status": status}]}})


def test_two_do_not_mend_at_the_same_time(host) -> None:
    """The end of a run comes while a heal goes on."""
    begun, let_go = threading.Event(), threading.Event()
    repair, at_once = host.machines.repair, []

    def wait(names, *, deadline_s) -> None:
        begun.set()
        assert let_go.wait(10.0)
        repair(names)

    host.machines.repair = wait
    host.mend_nodes(["worker2"])
    assert begun.wait(10.0)
    host.machines.repair = lambda names, *, deadline_s: at_once.append(let_go.is_set())
    second = threading.Thread(target=mend, args=(host.api, host.machines, ["worker2"]))
    second.start()
    second.join(0.2)
    assert at_once == []
    let_go.set()
    second.join(10.0)
    host.end_mending()

    assert at_once == [True]


def test_a_node_that_somebody_else_writes_is_marked_and_unmarked_all_the_same(host) -> None:
    patch, refused = host.api.patch, []

    def refuse_once(resource, name, body, namespace="", subresource=""):
        if len(refused) % 2 == 0:
            refused.append(name)
            raise ApiError(attempted="patch", what="nodes/worker2", status=409, reason="Conflict")
        refused.append("")
        return patch(resource, name, body, namespace, subresource)

    host.api.patch = refuse_once
    host.announce_termination("worker2")
    assert len(host.get(NODES, "worker2")["spec"]["taints"]) == 2
    mended(host, "worker2")

    assert host.get(NODES, "worker2")["spec"]["taints"] == [CHIPS]
    assert refused == ["worker2", ""] * 2


def test_a_node_that_is_always_written_is_told(host) -> None:
    host.api.failures["patch", "nodes"] = ApiError(attempted="patch", what="nodes/worker2", status=409, reason="Conflict")

    with pytest.raises(LookupError, match="409 Conflict"):
        host.announce_termination("worker2")


def test_a_node_is_cut_from_the_control_plane_alone() -> None:
    script = cutting_script("chaos-harness-control-plane")

    assert "getent ahostsv4 chaos-harness-control-plane" in script
    assert script.count("-I ") == 4
    assert all("$address" in line for line in script.splitlines() if "-I " in line)
    assert CUT_CHAIN in joining_script()
