"""What dead runs have left is taken away before another begins."""

from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import BrokenHarnessError, StoreError
from harness.kind import DEFAULT_TOPOLOGY, NodeState
from harness.targets.kubernetes import ending, leftovers
from harness.targets.kubernetes.api import CLUSTER_QUEUES, NAMESPACES, NODES, ApiError
from harness.targets.kubernetes.control_plane import restoring_script
from harness.targets.kubernetes.nodes import TERMINATION_TAINT, joining_script
from harness.targets.kubernetes.predecessors import take_away_predecessors
from harness.targets.kubernetes.run_record import Replaced, RunRecord, read_record, record_path, recorded_runs, write_record
from harness.undo import MendNode, RestoreCluster, UndoJournal
from tests.unit.targets.kubernetes.fake_host import RUN, Host
from tests.unit.targets.kubernetes.fake_machines import FakeMachines

CLUSTER = "chaos-harness"
QUEUE = Replaced(api_version=CLUSTER_QUEUES.api_version, plural=CLUSTER_QUEUES.plural, name="cluster-queue")
IMAGE = "docker.io/library/chaos-harness-job:1"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    host = Host(tmp_path)
    pools = FakeMachines(DEFAULT_TOPOLOGY, off=["dws-pool"])
    monkeypatch.setattr(ending, "NodeContainers", lambda *_: pools)
    host.machines.states["worker4"] = NodeState.EXITED
    host.machines.pools = {"plane": "", "worker2": "on-demand-pool", "worker4": "dws-pool"}
    return host


def dead(host: Host, tmp_path: Path, run_id: str = "run-0", **fields: str) -> RunRecord:
    """A run that died: its namespace, its queue, its storage."""
    record = RunRecord(run_id=run_id, namespace=f"harness-{run_id}", directory=str(tmp_path / run_id), replaced=(QUEUE,), **fields)
    write_record(CLUSTER, record)
    (tmp_path / run_id).mkdir()
    labels = {"chaos-harness-allow": "true", "chaos-harness/run-id": record.run_id}
    host.api.put(NAMESPACES, {"metadata": {"name": record.namespace, "labels": labels}})
    host.api.patch(CLUSTER_QUEUES, "cluster-queue", {"metadata": {"labels": {"chaos-harness/run-id": record.run_id}}})
    return record


def test_where_no_run_died_nothing_is_touched(host) -> None:
    write_record(CLUSTER, RunRecord(run_id=RUN, namespace="harness-run-1", directory="/nowhere"))

    assert take_away_predecessors(host.grounds) == []
    assert host.api.calls == [("list", "nodes", "")]
    assert host.machines.done == []
    assert recorded_runs(CLUSTER) == [RUN]


def test_what_a_dead_run_left_is_gone_and_nodes_that_it_broke_are_whole(host, tmp_path) -> None:
    record = dead(host, tmp_path, cluster_uid="uid")
    host.cordon("worker2")

    assert take_away_predecessors(host.grounds) == ["run-0"]

    assert host.get(NAMESPACES, record.namespace) is None
    assert host.get(CLUSTER_QUEUES, "cluster-queue") is None
    assert not Path(record.directory).exists()
    assert read_record(CLUSTER, "run-0") is None
    assert "unschedulable" not in host.get(NODES, "worker2")["spec"]
    assert ("exec", "worker2", "sh", "-ec", joining_script()) in host.machines.done
    known = [what[1] for what in host.machines.done if what[0] == "exec" and what[-1] == restoring_script(IMAGE)]
    assert known == ["worker2", "worker4"]
    assert host.machines.state("worker4") is NodeState.EXITED
    assert "plane" not in {what[1] for what in host.machines.done}


def test_a_machine_that_was_taken_away_half_is_started_and_unmarked(host, tmp_path) -> None:
    """Killed between the end of the machine and that of its node object: GKE's taint and a cordon are still on it."""
    dead(host, tmp_path)
    host.announce_termination("worker2")
    host.cordon("worker2")
    host.machines.states["worker2"] = NodeState.EXITED
    take_away_predecessors(host.grounds)

    node = host.get(NODES, "worker2")
    assert TERMINATION_TAINT not in {taint["key"] for taint in node["spec"]["taints"]}
    assert "unschedulable" not in node["spec"]
    assert host.machines.state("worker2") is NodeState.RUNNING


def test_a_machine_of_a_pool_that_rests_without_it_stays_off_and_its_node_object_goes(host, tmp_path) -> None:
    dead(host, tmp_path)
    host.put(
        NODES, {"metadata": {"name": "worker4", "labels": {}}, "spec": {"taints": [{"key": TERMINATION_TAINT, "effect": "NoSchedule"}]}}
    )
    take_away_predecessors(host.grounds)

    assert host.get(NODES, "worker4") is None
    assert host.machines.state("worker4") is NodeState.EXITED


@pytest.mark.parametrize("hurt", [lambda host: host.cordon("worker2"), lambda host: host.api.remove(NODES, "worker2")])
def test_a_node_that_is_hurt_is_made_whole_whoever_did_it(host, hurt) -> None:
    hurt(host)

    assert take_away_predecessors(host.grounds) == []
    assert "unschedulable" not in host.get(NODES, "worker2")["spec"]
    assert ("exec", "worker2", "sh", "-ec", joining_script()) in host.machines.done


def test_a_node_that_cannot_be_made_whole_keeps_the_next_run_from_beginning(host) -> None:
    host.cordon("worker2")
    host.machines.failing.add("repair")

    with pytest.raises(
        BrokenHarnessError,
        match=r"not fit for a run: it has nodes that cannot be mended \(node worker2 is not schedulable\).*ended with 1.*run `harness clean`",
    ):
        take_away_predecessors(host.grounds)


def test_a_run_whose_fault_was_not_undone_is_taken_away_with_what_it_owes(host, tmp_path) -> None:
    journal = UndoJournal(tmp_path / "undo.jsonl")
    journal.owe("break@0", RestoreCluster(cluster=CLUSTER, actions=(MendNode(node="worker2"),)))
    dead(host, tmp_path, journal=str(journal.path))

    assert take_away_predecessors(host.grounds) == ["run-0"]
    assert ("exec", "worker2", "sh", "-ec", joining_script()) in host.machines.done
    assert recorded_runs(CLUSTER) == []


def test_a_dead_run_whose_checkpoints_cannot_go_back_keeps_no_other_from_beginning_and_they_stay(host, tmp_path) -> None:
    record = dead(host, tmp_path, checkpoint_dir=str(tmp_path / "removed" / "checkpoints"))
    (Path(record.directory) / "checkpoints").mkdir()
    (Path(record.directory) / "checkpoints" / "step-1").touch()

    assert take_away_predecessors(host.grounds) == ["run-0"]

    assert host.get(NAMESPACES, record.namespace) is None
    assert host.get(CLUSTER_QUEUES, "cluster-queue") is None
    assert (Path(record.directory) / "checkpoints" / "step-1").exists()
    left = read_record(CLUSTER, "run-0")
    assert left is not None
    assert left.is_storage_only
    assert left.replaced == ()
    host.machines.done.clear()
    assert take_away_predecessors(host.grounds) == []
    assert host.machines.done == []


def test_where_the_journal_is_gone_with_the_run_directory_clean_makes_all_nodes_whole(host, tmp_path, monkeypatch) -> None:
    record = dead(
        host, tmp_path, checkpoint_dir=str(tmp_path / "removed" / "checkpoints"), journal=str(tmp_path / "removed" / "undo.jsonl")
    )
    (Path(record.directory) / "checkpoints").mkdir()
    (Path(record.directory) / "checkpoints" / "step-1").touch()
    monkeypatch.setattr(leftovers, "find_cluster", lambda: host.grounds.cluster)
    monkeypatch.setattr(leftovers, "lasting_problem", lambda *_: "")
    monkeypatch.setattr(leftovers, "NodeContainers", lambda *_: host.machines)
    monkeypatch.setattr("harness.targets.kubernetes.api.Api", lambda *_: host.api)

    with pytest.raises(StoreError, match=r"the run directory .* is gone") as refusal:
        leftovers.remove_left_behind("run-0", ManualClock())

    assert refusal.value.__notes__ == [
        "all else was done: removed namespace harness-run-0, put back the queues and node pools of cluster chaos-harness"
    ]
    known = [what[1] for what in host.machines.done if what[0] == "exec" and what[-1] == restoring_script(IMAGE)]
    assert known == ["worker2", "worker4"]
    left = read_record(CLUSTER, "run-0")
    assert left is not None
    assert left.is_storage_only


def test_a_run_of_a_cluster_that_is_gone_is_left_to_clean(host, tmp_path) -> None:
    dead(host, tmp_path, cluster_uid="another")

    assert take_away_predecessors(host.grounds) == []
    assert recorded_runs(CLUSTER) == ["run-0"]
    assert host.machines.done == []


def test_what_cannot_be_taken_away_keeps_the_next_run_from_beginning(host, tmp_path) -> None:
    dead(host, tmp_path)
    host.api.failures["delete", "namespaces"] = ApiError(attempted="delete", what="namespaces/n", status=403, reason="Forbidden")

    with pytest.raises(BrokenHarnessError, match=r"runs that died \(run-0\) have left things.*403 Forbidden.*run `harness clean`"):
        take_away_predecessors(host.grounds)
    assert recorded_runs(CLUSTER) == ["run-0"]


def test_a_record_that_cannot_be_read_keeps_the_next_run_from_beginning(host) -> None:
    path = record_path(CLUSTER, "run-0")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")

    with pytest.raises(BrokenHarnessError, match="not the record of a run"):
        take_away_predecessors(host.grounds)
