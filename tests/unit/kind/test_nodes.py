"""Nodes as containers: which pool they are of, and which commands an operation gives."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import UnknownNameError
from harness.kind import cluster as cluster_module
from harness.kind import node_network, nodes
from harness.kind.cache import cluster_dir
from harness.kind.cluster import OWNER_MOUNT
from harness.kind.commands import CommandFailedError
from harness.kind.nodes import NodeContainers, NodeState, is_control_plane_off, pools_by_node
from tests.unit.clusters import cluster_at

CLUSTER = cluster_at(Path("/"), name="c", kubeconfig=Path("/k"))


class FakeCluster:
    """Containers and node objects in memory, behind the command lines that work on them."""

    def __init__(self, *, ready: bool = True) -> None:
        self.states = {"c-control-plane": "running", **dict.fromkeys(pools_by_node(CLUSTER), "running")}
        self.registered = set(self.states)
        self.ready = ready
        self.ids: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.given: list[str] = []
        self.refusals: dict[str, int] = {}

    def __call__(self, command: Sequence[str], **_options: object) -> str:
        words = list(command[5 if command[0] == "/kubectl" else 0 :])
        verb = " ".join(words[:2])
        if self.refusals.get(verb):
            self.refusals[verb] -= 1
            raise CommandFailedError(command=command, outcome="failed with exit code 1", output="connection refused")
        self.given.append(" ".join(words))
        match words:
            case ["docker", "ps", *_]:
                self.given.pop()
                return "".join(f"{name} {state} {self.ids.get(name, name)}\n" for name, state in self.states.items())
            case ["docker", "start", name]:
                self.states[name] = "running"
                self.registered.add(name)
            case ["docker", "stop" | "kill", *_, name]:
                self.states[name] = "exited"
            case ["docker", "inspect", "--format", owner, *rest] if str(OWNER_MOUNT) in owner:
                self.given.pop()
                return "".join(f"/{name} {self.owners.get(name, cluster_dir(CLUSTER.name))}\n" for name in rest)
            case ["docker", "inspect", *rest]:
                return "".join(f"/{name} 172.18.0.9\n" for name in rest if name in self.states)
            case ["delete", "node", name, *_]:
                self.registered.discard(name)
            case ["get", "nodes", *_]:
                return "".join(f"{name} 10.244.0.0/24\n" for name in sorted(self.registered))
            case ["get", "node", name, *rest] if "Ready" in rest[-1]:
                return "True" if self.ready and name in self.registered else ""
            case ["get", "node", name, *_]:
                return "10.244.0.0/24" if name in self.registered else ""
        return ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return install(monkeypatch, FakeCluster())


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeCluster) -> FakeCluster:
    for module in (cluster_module, nodes, node_network):
        monkeypatch.setattr(module, "run_command", fake)
    return fake


def test_kind_names_workers_in_the_order_of_the_pools() -> None:
    assert pools_by_node(CLUSTER) == {
        "c-worker": "default-pool",
        "c-worker2": "on-demand-pool",
        "c-worker3": "on-demand-pool",
        "c-worker4": "dws-pool",
        "c-worker5": "dws-pool",
    }


def test_a_pool_lists_its_own_nodes(fake: FakeCluster) -> None:
    fake.states["c-worker5"] = "exited"

    listed = NodeContainers(CLUSTER, ManualClock()).list("dws-pool")

    assert [(node.name, node.state) for node in listed] == [("c-worker4", NodeState.RUNNING), ("c-worker5", NodeState.EXITED)]


@pytest.mark.parametrize("name", ["worker", "someone-elses-container"])
def test_no_container_of_another_cluster_is_touched(fake: FakeCluster, name: str) -> None:
    containers = NodeContainers(CLUSTER, ManualClock())

    for operation in (containers.kill, containers.stop, containers.start):
        with pytest.raises(UnknownNameError, match="no node is named"):
            operation(name)
    assert fake.given == []


@pytest.mark.parametrize("act", ["start", "stop", "kill", "state", "forget"])
def test_no_container_of_a_cluster_that_was_made_anew_is_touched(fake: FakeCluster, act: str) -> None:
    """It has the names of ours."""
    ours = NodeContainers(CLUSTER, ManualClock())
    ours.list()
    fake.ids["c-worker2"] = "another"

    with pytest.raises(CommandFailedError, match="other containers than before for c-worker2: the cluster was made anew"):
        getattr(ours, act)("c-worker2")
    with pytest.raises(CommandFailedError, match="made anew"):
        ours.exec("c-worker2", ["true"])
    assert fake.given == []
    assert NodeContainers(CLUSTER, ManualClock()).state("c-worker2") is NodeState.RUNNING


@pytest.mark.parametrize("owner", ["", "/home/another/.cache/chaos-harness/clusters/c"])
@pytest.mark.parametrize("act", ["start", "stop", "kill", "state", "forget"])
def test_no_container_of_a_cluster_that_only_has_the_name_of_ours_is_touched(fake: FakeCluster, act: str, owner: str) -> None:
    fake.owners["c-worker2"] = owner

    with pytest.raises(
        CommandFailedError, match=f"shows c-worker2, which were not made from {cluster_dir('c')}, and are not ours to touch"
    ):
        getattr(NodeContainers(CLUSTER, ManualClock()), act)("c-worker")
    assert fake.given == []


def test_an_unknown_pool_is_refused(fake: FakeCluster) -> None:
    with pytest.raises(UnknownNameError, match="no node pool is named 'dws'; did you mean dws-pool"):
        NodeContainers(CLUSTER, ManualClock()).list("dws")


def test_a_node_that_was_forgotten_and_comes_back_is_repaired_and_offers_tpus_again(fake: FakeCluster) -> None:
    containers = NodeContainers(CLUSTER, ManualClock())
    containers.stop("c-worker4")
    containers.forget("c-worker4")
    assert fake.registered == set(fake.states) - {"c-worker4"}
    containers.start("c-worker4")
    fake.given.clear()

    containers.repair(["c-worker4"])

    assert any(line.startswith("patch node c-worker4 --subresource status") and '"google.com/tpu": "8"' in line for line in fake.given)
    assert not any(line.startswith("patch node c-worker5") for line in fake.given)
    assert any(line.startswith("docker exec --interactive c-worker4 sh -ec mkdir -p /etc/cni") for line in fake.given)


def test_a_node_that_is_just_being_removed_is_told(fake: FakeCluster) -> None:
    fake.states["c-worker"] = "removing"

    assert NodeContainers(CLUSTER, ManualClock()).state("c-worker") is NodeState.REMOVING


def test_a_state_that_nobody_knows_is_an_error_of_ours(fake: FakeCluster) -> None:
    fake.states["c-worker"] = "dreaming"

    with pytest.raises(CommandFailedError, match="shows a state of a node that is not known"):
        NodeContainers(CLUSTER, ManualClock()).list()
    assert not is_control_plane_off(CLUSTER)


def test_the_machine_of_the_api_server_runs_or_not(fake: FakeCluster) -> None:
    assert not is_control_plane_off(CLUSTER)
    fake.states["c-control-plane"] = "exited"
    assert is_control_plane_off(CLUSTER)
    del fake.states["c-control-plane"]
    assert is_control_plane_off(CLUSTER)


@pytest.mark.parametrize("act", ["start", "stop", "kill", "state", "forget"])
def test_a_node_whose_container_was_removed_is_told_with_what_to_do(fake: FakeCluster, act: str) -> None:
    del fake.states["c-worker3"]

    with pytest.raises(CommandFailedError, match="shows no container of node c-worker3: it was removed; run `harness up kind`"):
        getattr(NodeContainers(CLUSTER, ManualClock()), act)("c-worker3")
    assert fake.given == []


def test_an_api_server_whose_machine_is_off_is_not_waited_for(fake: FakeCluster) -> None:
    fake.states["c-control-plane"] = "exited"
    fake.refusals["delete node"] = 10**9
    clock = ManualClock()

    with pytest.raises(CommandFailedError, match="connection refused"):
        NodeContainers(CLUSTER, clock).forget("c-worker4")
    assert clock.monotonic_s() == 0.0


def test_the_others_are_repaired_where_one_was_removed_and_is_registered_still(fake: FakeCluster) -> None:
    """Docker refuses a list of containers of which one is not there."""
    del fake.states["c-worker3"]
    clock = ManualClock()

    NodeContainers(CLUSTER, clock).repair()

    (inspected,) = [line for line in fake.given if line.startswith("docker inspect")]
    assert "c-worker2" in inspected
    assert "c-worker3" not in inspected
    assert clock.monotonic_s() == 0.0


@pytest.mark.parametrize(("operation", "state"), [("kill", "exited"), ("stop", "exited")])
def test_what_is_so_already_stays_so(fake: FakeCluster, operation: str, state: str) -> None:
    fake.states["c-worker"] = state

    getattr(NodeContainers(CLUSTER, ManualClock()), operation)("c-worker")

    assert fake.given == []


def test_a_stop_without_grace_is_a_kill(fake: FakeCluster) -> None:
    NodeContainers(CLUSTER, ManualClock()).stop("c-worker", graceful=False)

    assert fake.given == ["docker kill c-worker"]


def test_a_node_that_does_not_become_ready_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeCluster(ready=False))
    clock = ManualClock()

    with pytest.raises(CommandFailedError, match="not Ready within 30 s"):
        NodeContainers(CLUSTER, clock).repair(["c-worker"], deadline_s=30)
    assert 30 < clock.monotonic_s() < 35


@pytest.mark.parametrize("verb", ["get node", "get nodes", "patch node", "delete node"])
def test_an_api_server_that_restarts_is_asked_again(fake: FakeCluster, verb: str) -> None:
    clock = ManualClock()
    containers = NodeContainers(CLUSTER, clock)
    fake.refusals = {verb: 20}
    containers.forget("c-worker")
    containers.repair(["c-worker2"], deadline_s=60)

    assert fake.refusals == {verb: 0}
    assert "c-worker" not in fake.registered
    assert clock.monotonic_s() == 10.0


def test_an_api_server_that_stays_away_ends_the_wait_with_what_it_said(fake: FakeCluster) -> None:
    fake.refusals = {"get node": 1000}

    with pytest.raises(CommandFailedError, match="connection refused"):
        NodeContainers(CLUSTER, ManualClock()).repair(["c-worker"], deadline_s=30)
