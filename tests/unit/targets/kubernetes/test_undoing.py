"""What was done to a cluster is taken back: harmless twice, seen, and no failure keeps the others from being done."""

from pathlib import Path

import msgspec
import pytest

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError, UndoError
from harness.kind import NodeState, health
from harness.kind.cluster import state_path
from harness.kind.lock import Turn
from harness.targets import perform
from harness.targets.kubernetes import undoing
from harness.targets.kubernetes.api import CLUSTER_QUEUES, JOBS, NODES, RESOURCE_QUOTAS, WORKLOADS, ApiError
from harness.targets.kubernetes.control_plane import restoring_script
from harness.targets.kubernetes.nodes import MAINTENANCE_LABEL, TERMINATION_TAINT
from harness.targets.kubernetes.quota import nominal_quota
from harness.targets.kubernetes.run_record import RunRecord, write_record
from harness.targets.kubernetes.undoing import Restorer
from harness.undo import AwaitControlPlane, DeleteObject, MendNode, Reactivate, RestoreCluster, RestoreImage, RestoreQuota, Uncordon
from tests.unit.clusters import cluster_at
from tests.unit.targets.kubernetes.fake_host import NAMESPACE, TPU, Host

QUOTA = RestoreQuota(queue="cluster-queue", flavor="on-demand", resource=TPU, quota="16")
LIMIT = DeleteObject(api_version="v1", resource="resourcequotas", namespace=NAMESPACE, name="chaos-harness-limit")
ACTIVE = Reactivate(namespace=NAMESPACE, name="job-0-workload")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def restore(host: Host, *actions) -> str:
    return Restorer(host.api, host.machines, host.clock).restore(actions)


def test_everything_is_taken_back_and_twice_does_no_harm(host) -> None:
    host.cordon("worker3")
    host.announce_maintenance("worker2", in_s=10.0)
    host.announce_maintenance("worker2", in_s=0.0)
    host.lose_nodes(["worker3"])
    host.set_quota("on-demand", 0)
    host.limit_namespace(0)
    host.set_active(host_victim(), is_active=False)
    actions = (
        Uncordon(node="worker2"),
        MendNode(node="worker2"),
        MendNode(node="worker3"),
        QUOTA,
        LIMIT,
        ACTIVE,
        RestoreImage(node="worker2", image="i"),
    )

    for _ in range(2):
        said = restore(host, *actions)
        assert host.machines.state("worker3") is NodeState.RUNNING
        node = host.get(NODES, "worker2")
        assert MAINTENANCE_LABEL not in node["metadata"]["labels"]
        assert TERMINATION_TAINT not in {taint["key"] for taint in node["spec"]["taints"]}
        assert nominal_quota(host.get(CLUSTER_QUEUES, "cluster-queue"), "on-demand") == "16"
        assert host.get(RESOURCE_QUOTAS, "chaos-harness-limit", NAMESPACE) is None
        assert host.get(WORKLOADS, "job-0-workload", NAMESPACE)["spec"]["active"] is True
        assert restoring_script("i") in host.machines.scripts()
        assert said.startswith("ready: worker2, worker3; node worker2 is schedulable; the quota of flavor on-demand is 16 again")


def host_victim():
    from harness.capabilities import Processes

    return Processes(task=0)


def test_nodes_are_mended_together(host) -> None:
    restore(host, MendNode(node="worker2"), MendNode(node="worker3"))

    assert [what for what in host.machines.done if what[0] == "repair"] == [("repair", ("worker2", "worker3"))]


def test_what_is_gone_needs_nothing(host) -> None:
    host.api.remove(WORKLOADS, "job-0-workload", NAMESPACE)
    host.api.remove(CLUSTER_QUEUES, "cluster-queue")

    said = restore(host, Uncordon(node="nobody"), QUOTA, LIMIT, ACTIVE)

    assert said == (
        "node nobody is gone; no quota to restore: there is no queue 'cluster-queue' with flavor 'on-demand' of google.com/tpu; "
        "resourcequotas chaos-harness-limit is gone; workload job-0-workload is gone"
    )


@pytest.mark.parametrize(("stands", "wrote", "then"), [(0, "0", "16"), (8, "0", "8"), (1000, "1k", "16"), (8, "", "16")])
def test_a_quota_that_somebody_has_changed_since_is_told_and_left(host, stands, wrote, then) -> None:
    host.set_quota("on-demand", stands)
    said = restore(host, msgspec.structs.replace(QUOTA, wrote=wrote))
    assert nominal_quota(host.get(CLUSTER_QUEUES, "cluster-queue"), "on-demand") == then
    assert ("somebody has changed it since, and it is left" in said) is (then != "16")


def test_one_that_fails_keeps_no_other_from_being_done(host) -> None:
    host.set_quota("on-demand", 0)
    host.machines.failing.add("repair")
    host.api.failures["patch", "workloads"] = ApiError(attempted="patch", what="workloads/w", status=500, reason="InternalError")

    with pytest.raises(
        UndoError, match=r"cannot restore the cluster: `docker repair` ended with 1; cannot patch workloads/w.*500.*; it stays owed"
    ):
        restore(host, MendNode(node="worker2"), ACTIVE, QUOTA)
    assert nominal_quota(host.get(CLUSTER_QUEUES, "cluster-queue"), "on-demand") == "16"


def test_what_does_not_go_is_given_up_after_a_while(host) -> None:
    host.api.delete = lambda *arguments, **options: True
    job = DeleteObject(api_version="batch/v1", resource="jobs", namespace=NAMESPACE, name="job-0")

    with pytest.raises(UndoError, match="cannot delete jobs/harness-run-1/job-0: it is still there after 60 s"):
        restore(host, job)
    assert host.get(JOBS, "job-0", NAMESPACE) is not None
    assert host.clock.monotonic_s() < 100.0 + 62.0


def test_a_control_plane_is_waited_for_until_it_serves(host, monkeypatch) -> None:
    refusal = ApiError(attempted="list", what="workloads", status=429, reason="TooManyRequests")
    host.api.failures["list", "workloads"] = refusal
    monkeypatch.setattr(
        host.clock, "sleep", lambda seconds: (host.clock.advance(seconds), host.clock.monotonic_s() >= 130.0 and host.api.failures.clear())
    )

    assert restore(host, AwaitControlPlane()) == "the API server answers, and Kueue behind it"
    assert host.clock.monotonic_s() == 130.0


def test_a_control_plane_that_never_serves_is_given_up(host) -> None:
    host.api.failures["list", "workloads"] = ApiError(attempted="list", what="workloads", status=429, reason="TooManyRequests")

    with pytest.raises(UndoError, match=r"429 TooManyRequests; it stays owed"):
        restore(host, AwaitControlPlane())
    assert 220.0 <= host.clock.monotonic_s() < 222.0


# ---- machines that nobody asks for ----------------------------------------------------------------------------------------


def test_a_machine_whose_request_is_gone_is_not_started_and_its_node_object_goes(host) -> None:
    host.put(NODES, {"metadata": {"name": "worker4", "labels": {}}})
    host.machines.pools = {"worker2": "on-demand-pool", "worker4": "dws-pool"}
    host.machines.states = dict.fromkeys(("worker2", "worker4"), NodeState.EXITED)

    for _ in range(2):
        said = Restorer(host.api, host.machines, host.clock, empty_pools={"dws-pool"}).restore(
            [MendNode(node="worker2"), MendNode(node="worker4")]
        )
        assert said == "ready: worker2; gone with what asked for it: worker4"
        assert host.machines.states == {"worker2": NodeState.RUNNING, "worker4": NodeState.EXITED}
        assert host.get(NODES, "worker4") is None


def test_where_every_machine_is_gone_nothing_is_mended(host) -> None:
    host.machines.pools = {"worker4": "dws-pool"}
    host.machines.states = {"worker4": NodeState.EXITED}

    said = Restorer(host.api, host.machines, host.clock, empty_pools={"dws-pool"}).restore([MendNode(node="worker4")])
    assert said == "gone with what asked for it: worker4"
    assert host.machines.done == []


@pytest.fixture
def at_rest(host, monkeypatch, tmp_path) -> Host:
    """A cluster that no run uses, with one machine of each pool."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    host.machines.pools = {"worker": "default-pool", "worker2": "on-demand-pool", "worker4": "dws-pool"}
    monkeypatch.setattr(host.api, "close", lambda: None, raising=False)
    monkeypatch.setattr(undoing, "find_cluster", lambda: cluster_at(tmp_path))
    monkeypatch.setattr(undoing, "lasting_problem", lambda *_: "")
    monkeypatch.setattr(undoing, "Api", lambda *_: host.api)
    monkeypatch.setattr(undoing, "NodeContainers", lambda *_: host.machines)
    return host


def test_what_a_dead_run_owes_is_undone_and_pools_come_to_rest_where_nobody_else_sees_to_it(at_rest) -> None:
    owed = RestoreCluster(cluster="chaos-harness", actions=(MendNode(node="worker4"),))

    assert perform(owed, ManualClock()) == "ready: worker4"
    assert at_rest.machines.states == {"worker4": NodeState.EXITED}
    assert at_rest.machines.done[-2:] == [("kill", "worker4"), ("forget", "worker4")]


def test_pools_are_left_to_the_end_of_a_run_that_has_left_a_record(at_rest) -> None:
    write_record("chaos-harness", RunRecord(run_id="run-0", namespace="harness-run-0", directory="/nowhere"))

    perform(RestoreCluster(cluster="chaos-harness", actions=(MendNode(node="worker4"),)), ManualClock())
    assert at_rest.machines.state("worker4") is NodeState.RUNNING


def test_a_run_that_goes_on_gets_its_machine_back(at_rest) -> None:
    at_rest.machines.states = {"worker4": NodeState.EXITED}

    perform(RestoreCluster(cluster="chaos-harness", actions=(MendNode(node="worker4"),)), ManualClock(), is_ours=True)
    assert at_rest.machines.state("worker4") is NodeState.RUNNING


# ---- which cluster -----------------------------------------------------------------------------------------------------

UNDO = RestoreCluster(cluster="chaos-harness", actions=(QUOTA,))


def test_a_cluster_that_is_gone_took_with_it_what_was_done_to_it(monkeypatch) -> None:
    monkeypatch.setattr(undoing, "find_cluster", lambda: None)

    assert perform(UNDO, ManualClock()) == "the cluster chaos-harness is gone, and with it what was done to it"


def test_a_cluster_that_has_another_in_its_place_is_gone_too(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(undoing, "find_cluster", lambda: cluster_at(tmp_path))
    monkeypatch.setattr(undoing, "lasting_problem", lambda *_: pytest.fail("the other cluster is none of ours"))

    undo = RestoreCluster(cluster="chaos-harness", actions=(QUOTA,), uid="the one before")
    assert perform(undo, ManualClock(), is_ours=True) == "the cluster chaos-harness is gone, and with it what was done to it"


def test_a_cluster_whose_state_cannot_be_read_is_not_gone_and_the_undo_stays_owed(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    state_path().parent.mkdir(parents=True)
    state_path().write_bytes(b'{"name": "chaos-harness"}')

    with pytest.raises(UndoError, match=r"its state in .*cluster\.json is there, and cannot be read; it stays owed"):
        perform(UNDO, ManualClock(), is_ours=True)


def test_a_cluster_that_does_not_answer_is_waited_for_and_the_undo_stays_owed(monkeypatch, tmp_path) -> None:
    clock = ManualClock()
    monkeypatch.setattr(undoing, "find_cluster", lambda: cluster_at(tmp_path))
    monkeypatch.setattr(health, "problem_with", lambda _cluster: "the cluster chaos-harness does not answer")
    monkeypatch.setattr(health, "problem_for_good", lambda _cluster: "")

    with pytest.raises(
        UndoError, match="cannot restore the cluster chaos-harness: the cluster chaos-harness does not answer; it stays owed"
    ):
        perform(UNDO, clock, is_ours=True)
    assert 60.0 <= clock.monotonic_s() < 62.0


def test_a_cluster_of_another_version_is_not_waited_for(monkeypatch, tmp_path) -> None:
    clock = ManualClock()
    monkeypatch.setattr(undoing, "find_cluster", lambda: cluster_at(tmp_path))
    for name in ("problem_with", "problem_for_good"):
        monkeypatch.setattr(health, name, lambda _cluster: "it is of another version")

    with pytest.raises(UndoError, match="it is of another version"):
        perform(UNDO, clock, is_ours=True)
    assert clock.monotonic_s() == 0.0


def test_the_undo_of_a_dead_run_waits_until_no_run_has_the_cluster(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(undoing, "find_cluster", lambda: cluster_at(tmp_path))
    for name in ("problem_with", "problem_for_good"):
        monkeypatch.setattr(health, name, lambda _cluster: "it is of another version")
    living = Turn("chaos-harness")
    living.take(ManualClock())

    with pytest.raises(TargetUnavailableError, match="works on the cluster chaos-harness and has not ended"):
        perform(UNDO, ManualClock())
    living.free()
    with pytest.raises(UndoError, match="it is of another version"):
        perform(UNDO, ManualClock())
