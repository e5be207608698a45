"""A run from its start to its end on a cluster in memory; what the controllers would do, the test does."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities import (
    CheckpointStorage,
    ControlPlaneHost,
    ImageHost,
    Launch,
    LaunchChecking,
    NodeHost,
    PodHost,
    Processes,
    QueueHost,
    Signalable,
    Target,
    Terminable,
    TurnTaking,
)
from harness.clock import ManualClock, SystemClock
from harness.errors import BrokenHarnessError, InvalidDocumentError, StoreError, TargetUnavailableError
from harness.history import (
    AttemptExited,
    AttemptStarted,
    ClusterLeft,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    LogLine,
    ObservationLost,
    PoolScaled,
    StepDone,
    TaskFinished,
)
from harness.kind import DEFAULT_TOPOLOGY, NodeState, health
from harness.kind.lock import Turn
from harness.scenario import Cluster
from harness.targets import availability
from harness.targets.kubernetes import ending, leftovers, machine_roll, presence, target
from harness.targets.kubernetes.api import CLUSTER_QUEUES, JOBS, LOCAL_QUEUES, NAMESPACES, PODS, ApiError, Object
from harness.targets.kubernetes.fidelity import FIDELITY
from harness.targets.kubernetes.leftovers import left_behind, remove_left_behind
from harness.targets.kubernetes.run_record import read_record, record_path
from harness.undo import MendNode, RestoreCluster, UndoJournal
from tests.unit.clusters import cluster_at
from tests.unit.targets.kubernetes.cluster_objects import condition
from tests.unit.targets.kubernetes.fake_api import FakeApi
from tests.unit.targets.kubernetes.fake_machines import FakeMachines

RUN = "run-1"
NAMESPACE = "harness-run-1"
PATIENCE_S = 20.0


class ClusterApi(FakeApi):
    """Kueue's queues become active by themselves, a namespace goes with all that is in it, unless something holds it back."""

    def __init__(self) -> None:
        super().__init__()
        self.held_back = False
        self.create_quietly = False
        self.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "uid"}})

    def apply(self, resource: Any, body: Object, namespace: str = "") -> Object:
        stored = super().apply(resource, body, namespace)
        if resource.plural in (CLUSTER_QUEUES.plural, LOCAL_QUEUES.plural):
            return self.set_condition(resource, body["metadata"]["name"], namespace, type="Active", status="True")
        return stored

    def create(self, resource: Any, body: Object, namespace: str = "") -> Object:
        stored = super().create(resource, body, namespace)
        if self.create_quietly:
            raise no_answer()
        return stored

    def delete(self, resource: Any, name: str, namespace: str = "", grace_s: int | None = None, uid: str = "") -> bool:
        if resource != NAMESPACES:
            return super().delete(resource, name, namespace, grace_s, uid)
        self.calls.append(("delete", "namespaces", name))
        if not self.held_back:
            for key in [key for key in self.objects if key[1] == name]:
                del self.objects[key]
            self.objects.pop(("namespaces", "", name), None)
        return True

    def patch(self, resource: Any, name: str, body: Object, namespace: str = "", subresource: str = "") -> Object:
        stored = super().patch(resource, name, body, namespace, subresource)
        if body.get("metadata") == {"finalizers": None}:
            self.held_back = False
            self.delete(NAMESPACES, namespace)
        return stored


class Run:
    """A target, and the cluster that it takes for real."""

    def __init__(self, directory: Path, api: ClusterApi, **launch: Any) -> None:
        (directory / "checkpoints").mkdir(exist_ok=True)
        (directory / "code").mkdir(exist_ok=True)
        self.api = api
        fields = {"cluster": Cluster(apart_s=0.05), "environment": {}, **launch}
        self.launch = Launch(
            run_id=RUN,
            job="job",
            command=("job",),
            directory=directory / "code",
            checkpoint_dir=directory / "checkpoints",
            logs_dir=directory / "logs",
            epoch_s=SystemClock().monotonic_s(),
            **fields,
        )
        self.target = target.KubernetesTarget(SystemClock())
        self.seen: list[Event] = []

    def until(self, holds: Callable[[], Any]) -> Any:
        clock = SystemClock()
        deadline_s = clock.monotonic_s() + PATIENCE_S
        while not (value := holds()):
            assert clock.monotonic_s() < deadline_s, f"not seen in {PATIENCE_S} s: {self.seen[-20:]}"
            self.target.wait(0.01)
            self.seen += self.target.poll()
        return value

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]

    def until_seen(self, kind: type, *, nth: int = 1) -> Any:
        return self.until(lambda: found[nth - 1] if len(found := self.of(kind)) >= nth else None)

    def jobs(self) -> list[Object]:
        return self.api.list(JOBS, NAMESPACE)

    # ---- what controllers do

    def pod(self, name: str, phase: str, *, code: int | None = None) -> None:
        """The pod of task 0 is so."""
        (job, *_) = self.until(self.jobs)
        labels = job["spec"]["template"]["metadata"]["labels"]
        state = {"running": {}} if phase == "Running" else {} if code is None else {"terminated": {"exitCode": code}}
        self.api.put(
            PODS,
            {
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
                "spec": {"nodeName": "on-demand-pool-0", "containers": [{"name": "host"}]},
                "status": {"phase": phase, "containerStatuses": [{"name": "host", "state": state}]},
            },
        )

    def job_is(self, kind: str, **status: Any) -> None:
        (job, *_) = self.jobs()
        self.api.put(JOBS, {**job, "status": {"conditions": [condition(kind)], **status}})

    def says(self, name: str, *events: dict[str, Any]) -> None:
        path = self.target.execution.storage.events / f"{name}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.fixture
def api() -> ClusterApi:
    return ClusterApi()


@pytest.fixture
def make(tmp_path: Path, api: ClusterApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    shared = tmp_path / "s"
    shared.mkdir()
    cluster = cluster_at(tmp_path, shared_dir=shared)
    machines = FakeMachines(DEFAULT_TOPOLOGY, api, off=["dws-pool"])
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    for module in (target, ending):
        monkeypatch.setattr(module, "NodeContainers", lambda *_: machines)
    monkeypatch.setattr(target, "Api", lambda *_: api)
    monkeypatch.setattr("harness.targets.kubernetes.api.Api", lambda *_: api)
    monkeypatch.setattr(target, "find_cluster", lambda: cluster)
    monkeypatch.setattr(target, "problem_with_record", lambda _: "")
    for name in ("lasting_problem", "lasting_problem_with_operators"):
        monkeypatch.setattr(target, name, lambda *_: "")
    monkeypatch.setattr(leftovers, "lasting_problem", lambda *_: "")
    monkeypatch.setattr(ending, "is_control_plane_off", lambda _: False)
    monkeypatch.setattr("harness.targets.kubernetes.leftovers.find_cluster", lambda: cluster)
    monkeypatch.setattr(ending, "GONE_S", 0.3)
    monkeypatch.setattr(ending, "FORCED_S", 0.3)
    runs: list[Run] = []

    def make_run(**launch: Any) -> Run:
        runs.append(Run(tmp_path, api, **launch))
        runs[-1].target.start(runs[-1].launch)
        return runs[-1]

    yield make_run
    for run in runs:
        with contextlib.suppress(BrokenHarnessError):
            run.target.stop()


def test_it_is_all_that_faults_ask_for():
    made: Target = target.KubernetesTarget(SystemClock())

    for capability in (
        Signalable,
        Terminable,
        CheckpointStorage,
        ImageHost,
        PodHost,
        NodeHost,
        QueueHost,
        ControlPlaneHost,
        TurnTaking,
        LaunchChecking,
    ):
        assert isinstance(made, capability)
    assert made.fidelity() is FIDELITY


def test_a_job_runs_to_its_end(make, api):
    run = make()
    run.until_seen(ExecutionStarted)
    assert run.jobs() == []  # what acts before the submission acts now

    run.pod("a", "Running")
    run.says("a", {"event": "step", "step": 1, "rank": 0})
    run.until_seen(StepDone)
    run.pod("a", "Succeeded", code=0)
    run.until_seen(AttemptExited)
    run.job_is("Complete")
    run.until(run.target.is_finished)

    kinds = [
        type(event) for event in run.seen if isinstance(event, AttemptStarted | StepDone | AttemptExited | TaskFinished | ExecutionFinished)
    ]
    assert kinds == [AttemptStarted, StepDone, AttemptExited, TaskFinished, ExecutionFinished]
    assert [left.what for left in run.of(ClusterLeft)] == ["none"]
    assert run.target.stop() is not None
    assert run.target.stop() == ()
    assert api.get(NAMESPACES, NAMESPACE) is None
    assert {key[0] for key in api.objects} <= {"namespaces", "nodes"}


def test_a_pod_that_speaks_has_started_before_the_api_server_says_so(make):
    run = make()
    run.pod("a", "Pending")
    run.says("a", {"event": "boot", "rank": 0, "t": run.launch.epoch_s + 0.001})

    started = run.until_seen(AttemptStarted)

    assert started.t_s == pytest.approx(0.001)
    run.pod("a", "Running")
    run.pod("a", "Failed", code=3)
    exited = run.until_seen(AttemptExited)
    assert (exited.exit_code, exited.retried, len(run.of(AttemptStarted))) == (3, True, 1)


def test_tasks_are_submitted_apart(make):
    run = make(tasks=2, cluster=Cluster(apart_s=0.3))

    run.until(lambda: len(run.jobs()) == 1)
    clock = SystemClock()
    began_s = clock.monotonic_s()
    run.until(lambda: len(run.jobs()) == 2)

    assert clock.monotonic_s() - began_s > 0.2
    assert sorted(job["metadata"]["name"] for job in run.jobs()) == ["job-0", "job-1"]


def test_a_task_is_submitted_behind_another_job_that_is_to_be_there_first(make):
    run = make()
    run.until_seen(ExecutionStarted)
    run.target.grounds.ahead.add("occupant")
    for _ in range(5):
        run.target.poll()
    assert run.jobs() == []

    run.target.grounds.ahead.clear()
    run.until(run.jobs)


def no_answer(status: int = 0) -> ApiError:
    return ApiError(attempted="create", what="jobs", status=status, reason="refused")


def test_a_server_that_restarts_is_asked_again_and_the_job_submitted_once(make, api):
    run = make()
    run.until_seen(ExecutionStarted)
    api.failures["create", "jobs"] = no_answer()
    run.until(lambda: [call for call in api.calls if call[:2] == ("create", "jobs")])
    assert run.jobs() == []
    api.create_quietly = True  # the server takes it, and its answer is lost
    api.failures.clear()

    run.until(run.jobs)
    api.create_quietly = False
    run.until(lambda: len([call for call in api.calls if call[:2] == ("create", "jobs")]) >= 3)

    assert len(run.jobs()) == 1
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)


def test_a_job_that_no_webhook_lets_in_is_not_submitted_for_ever(make, api, monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.patience.PATIENCE_S", 0.3)
    monkeypatch.setattr("harness.targets.kubernetes.patience.problem_with_operators", lambda _: "Kueue is not ready; run `harness up kind`")
    run = make()
    run.until_seen(ExecutionStarted)
    api.failures["create", "jobs"] = no_answer(500)

    with pytest.raises(BrokenHarnessError, match=r"within 0\.3 s: cannot create jobs: .* 500 refused; Kueue is not ready; run `harness up"):
        run.until(run.jobs)


def test_a_manifest_that_the_api_server_does_not_take_is_the_mistake_of_who_wrote_it(make, api, tmp_path):
    pod = {"restartPolicy": "Always", "containers": [{"name": "main"}]}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "job"}, "spec": {"template": {"spec": pod}}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    message = "spec.template.spec.restartPolicy: Unsupported value"
    api.failures["create", "jobs"] = ApiError(attempted="create", what="jobs", status=422, reason="Invalid", message=message)
    run = make(root=tmp_path, cluster=Cluster(manifest="job.yaml"))

    with pytest.raises(
        InvalidDocumentError, match=rf"cluster\.manifest .*job\.yaml: Job job-0: the API server does not take it: {message}"
    ):
        run.until(run.jobs)


def test_a_submission_that_is_refused_breaks_the_run(make, api):
    api.failures["create", "jobs"] = no_answer(403)
    run = make()

    with pytest.raises(ApiError, match="403"):
        run.until(run.jobs)


def test_a_cluster_that_is_gone_is_told_from_one_that_restarts(make, api, monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.execution.UNANSWERED_S", 0.3)
    run = make()
    run.until_seen(ExecutionStarted)
    monkeypatch.setattr(FakeApi, "watch", lambda *_: (_ for _ in ()).throw(no_answer()))
    for thread in run.target.execution._watches._threads:
        thread._response.shutdown()

    with pytest.raises(BrokenHarnessError, match=r"has not answered for 0\.3 s; run `harness up kind`"):
        run.until(lambda: False)


def test_what_a_job_prints_is_followed(make, api):
    api.logs["a"] = b"hello\n"
    run = make()

    run.pod("a", "Running")

    assert run.until_seen(LogLine).text == "hello"


def test_the_namespace_says_that_we_may_and_whose_it_is(make, api):
    make()

    labels = api.get(NAMESPACES, NAMESPACE)["metadata"]["labels"]
    assert labels == {"chaos-harness-allow": "true", "chaos-harness/run-id": RUN}


def test_a_namespace_that_is_not_ours_is_refused_and_left(make, api):
    api.put(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": {}}})

    with pytest.raises(BrokenHarnessError, match="is not ours to act in"):
        make()

    assert api.get(NAMESPACES, NAMESPACE) is not None
    assert ("delete", "namespaces", NAMESPACE) not in api.calls


def test_pools_come_to_their_first_sizes_before_anything_else(make):
    run = make(cluster=Cluster(on_demand_nodes=0))

    run.until_seen(ExecutionStarted)

    assert [(event.pool, event.nodes) for event in run.of(PoolScaled)] == [("on-demand-pool", 0)]
    assert run.seen.index(run.of(PoolScaled)[0]) < run.seen.index(run.of(ExecutionStarted)[0])


def test_checkpoints_are_where_the_launch_says_during_and_after(make, tmp_path):
    run = make()
    run.until_seen(ExecutionStarted)
    path = run.target.checkpoint_path(0)
    (path / "step-1").touch()

    assert path.is_relative_to(tmp_path / "s")
    assert (run.launch.checkpoint_dir / "step-1").exists()
    with pytest.raises(LookupError, match="no task 1"):
        run.target.checkpoint_path(1)

    run.target.stop()

    assert not run.launch.checkpoint_dir.is_symlink()
    assert (run.launch.checkpoint_dir / "step-1").exists()
    assert not list((tmp_path / "s" / "runs").iterdir())


def test_what_is_stopped_half_way_was_ended_by_us_and_is_kept_for_a_look(make, api):
    run = make()
    run.pod("a", "Running")
    run.says("a", {"event": "boot", "rank": 0})
    run.until_seen(AttemptStarted)
    api.logs["a"] = b"last words\n"

    last = run.target.stop()

    (exited,) = [event for event in last if isinstance(event, AttemptExited)]
    assert (exited.signal, exited.cause) == (9, "stop")
    kept = run.launch.logs_dir / "cluster"
    assert json.loads((kept / "pods.json").read_text())[0]["metadata"]["name"] == "a"
    assert (kept / "a-host.log").read_bytes() == b"last words\n"
    assert (run.launch.logs_dir / "a.jsonl").exists()


def test_a_namespace_that_is_stuck_is_forced_and_said(make, api):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    api.held_back = True

    last = run.target.stop()

    forced = [event.text for event in last if isinstance(event, LogLine) and event.stream == "system"]
    assert forced == ["forced jobs job-0, which was stuck terminating"]
    assert api.get(NAMESPACES, NAMESPACE) is None


def test_one_that_withstands_is_an_error_and_is_left_for_clean(make, api):
    run = make()
    run.until_seen(ExecutionStarted)
    api.held_back = True

    with pytest.raises(BrokenHarnessError, match="is still terminating"):
        run.target.stop()

    assert read_record("chaos-harness", RUN) is not None
    assert f"namespace {NAMESPACE} of cluster chaos-harness" in left_behind(RUN)
    api.held_back = False

    done = remove_left_behind(RUN, SystemClock())

    assert f"removed namespace {NAMESPACE}" in done
    assert left_behind(RUN) == []


def test_what_was_last_seen_is_not_lost_with_a_namespace_that_stays(make, api):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    run.says("a", {"event": "step", "step": 7, "rank": 0})
    api.held_back = True
    api.failures["patch", "jobs"] = no_answer(403)

    with pytest.raises(BrokenHarnessError):
        run.target.stop()

    last = run.target.stop()
    assert [type(event) for event in last if isinstance(event, StepDone | AttemptExited)] == [StepDone, AttemptExited]
    assert run.target.stop() == ()
    api.held_back = False


def test_what_cannot_be_taken_in_at_the_end_keeps_nothing_from_being_taken_away(make, api, monkeypatch):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    full = StoreError(path=run.launch.logs_dir, attempted="create the event file", reason="No space left on device")
    monkeypatch.setattr(run.target.execution._hearing, "listen", lambda _now_s: (_ for _ in ()).throw(full))

    with pytest.raises(StoreError, match="No space left"):
        run.target.stop()

    assert [type(event) for event in run.target.stop() if isinstance(event, AttemptExited)] == [AttemptExited]
    assert api.get(NAMESPACES, NAMESPACE) is None
    assert read_record("chaos-harness", RUN) is None


@pytest.mark.parametrize("phase", ["Failed", "Running"])
def test_a_log_that_was_given_up_is_lost_unless_we_have_stopped_its_pod(make, api, monkeypatch, phase):
    monkeypatch.setattr("harness.targets.kubernetes.execution.DRAIN_S", 0.2)
    run = make()
    api.failures["log", "pods"] = no_answer(500)
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    if phase == "Failed":
        run.pod("a", "Failed", code=3)
        run.until_seen(AttemptExited)

    lost = [event for event in run.target.stop() if isinstance(event, ObservationLost)]

    told = "the log of a was not read to its end: it had not come to its end when we stopped reading"
    assert [(event.what, event.detail) for event in lost] == ([("logs", told)] if phase == "Failed" else [])


def test_a_run_that_could_not_undo_a_fault_keeps_its_record_for_whoever_comes_next(make, api, tmp_path):
    journal = UndoJournal(tmp_path / "undo.jsonl")
    run = make(journal=journal.path)
    run.until_seen(ExecutionStarted)
    journal.owe("break@0", RestoreCluster(cluster="chaos-harness", actions=(MendNode(node="on-demand-pool-0"),)))
    run.target.stop()

    assert api.get(NAMESPACES, NAMESPACE) is None
    record = read_record("chaos-harness", RUN)
    assert record is not None
    assert (record.journal, record.replaced) == (str(journal.path), ())
    journal.settle("break@0")
    assert remove_left_behind(RUN, SystemClock()) == ["put back the queues and node pools of cluster chaos-harness"]
    assert read_record("chaos-harness", RUN) is None


def test_what_a_killed_harness_left_is_taken_away(make, api, tmp_path):
    run = make(cluster=Cluster(on_demand_nodes=0))
    run.until_seen(ExecutionStarted)
    run.target.execution.voices.close(0.0)
    run.target._free_turn()  # as the system does when we die

    lines = left_behind(RUN)
    assert "clusterqueues cluster-queue of cluster chaos-harness" in lines
    assert f"checkpoints of {run.launch.checkpoint_dir}" in lines

    remove_left_behind(RUN, SystemClock())

    assert left_behind(RUN) == []
    assert not run.launch.checkpoint_dir.is_symlink()
    assert api.get(CLUSTER_QUEUES, "cluster-queue") is None
    assert {key[2] for key in api.objects if key[0] == "nodes"} == {"default-pool-0", "on-demand-pool-0", "on-demand-pool-1"}
    assert remove_left_behind(RUN, SystemClock()) == []


def test_what_is_being_mended_has_ended_before_pools_come_to_rest(make, monkeypatch):
    run = make()
    run.until_seen(ExecutionStarted)
    order: list[str] = []
    restore = ending.NodePools.restore
    end_mending = target.KubernetesTarget.end_mending
    monkeypatch.setattr(target.KubernetesTarget, "end_mending", lambda made: (order.append("mended"), end_mending(made))[1])
    monkeypatch.setattr(ending.NodePools, "restore", lambda pools: (order.append("at rest"), restore(pools))[1])

    run.target.stop()

    assert order.index("mended") < order.index("at rest")


def test_a_run_whose_record_is_lost_is_taken_away_all_the_same(make, api):
    run = make()
    run.until_seen(ExecutionStarted)
    record_path("chaos-harness", RUN).write_bytes(b"{")

    run.target.stop()

    assert api.get(NAMESPACES, NAMESPACE) is None
    assert not run.launch.checkpoint_dir.is_symlink()


def test_another_cluster_in_the_place_of_ours_is_not_hurt(make, api):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "another"}})

    with pytest.raises(LookupError, match="another cluster answers in place of chaos-harness"):
        run.target.pods_of(Processes(), "hosts")
    with pytest.raises(LookupError, match="another cluster"):
        run.target.signal(Processes(), 9, cause="fault")


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "Unauthorized"), (0, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in chain")],
)
def test_a_cluster_that_does_not_know_us_is_another(make, api, status, reason):
    run = make()
    run.until_seen(ExecutionStarted)
    run.target._checked_s = float("-inf")
    api.failures["get", "namespaces"] = ApiError(attempted="get", what="namespaces", status=status, reason=reason)

    with pytest.raises(LookupError, match="another cluster answers in place of chaos-harness"):
        run.target.break_nodes(["on-demand-pool-0"], "power-off")
    api.failures["get", "namespaces"] = no_answer()
    assert run.target.grounds.cluster.uid == "uid"  # one that restarts is ours still
    api.failures.clear()


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_a_cluster_that_was_taken_down_meanwhile_is_not_hurt(make, monkeypatch, tmp_path, is_made_anew):
    run = make()
    run.until_seen(ExecutionStarted)
    anew = cluster_at(tmp_path, uid="another")
    monkeypatch.setattr(target, "find_cluster", lambda: anew if is_made_anew else None)

    with pytest.raises(LookupError, match="was taken down or made anew"):
        run.target.break_nodes(["on-demand-pool-0"], "power-off")


def test_a_pod_is_deleted_by_its_uid_and_its_end_laid_at_our_door(make):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    (pod,) = run.target.pods_of(Processes(), "hosts")

    run.target.delete_pod(pod, 0)

    exited = run.until_seen(AttemptExited)
    assert (exited.signal, exited.cause) == (9, "fault")
    with pytest.raises(LookupError, match="is gone"):
        run.target.delete_pod(pod, 0)
    with pytest.raises(LookupError, match="is gone"):
        run.target.evict_pod(pod)
    with pytest.raises(LookupError, match="no pod of hosts"):
        run.target.pods_of(Processes(), "hosts")


def test_a_pod_whose_deletion_was_refused_ends_by_itself(make, api):
    run = make()
    run.pod("a", "Running")
    run.until_seen(AttemptStarted)
    (pod,) = run.target.pods_of(Processes(), "hosts")
    api.failures["delete", "pods"] = ApiError(attempted="delete", what=f"pods/{pod.name}", status=403, reason="Forbidden")

    with pytest.raises(LookupError, match="403 Forbidden"):
        run.target.delete_pod(pod, 0)

    assert run.target.grounds.hurt == set()


def test_without_a_run_nobody_can_be_hurt():
    made = target.KubernetesTarget(SystemClock())

    assert made.poll() == ()
    assert made.stop() == ()
    for act in (lambda: made.grounds, lambda: made.dws, lambda: made.checkpoint_path(0), lambda: made.process_ids(Processes())):
        with pytest.raises(LookupError, match="no execution runs on the kind target"):
            act()


def test_a_machine_that_somebody_removes_ends_the_run_as_an_error_of_the_harness(make, monkeypatch):
    monkeypatch.setattr(machine_roll, "CALLED_EVERY_S", 0.0)
    run = make()
    run.until(run.jobs)
    run.until(lambda: run.target.execution._roll._first)
    machines = run.target.grounds.machines
    removed = next(iter(machines.states))
    machines.states.pop(removed)

    with pytest.raises(
        BrokenHarnessError, match=f"of the cluster chaos-harness the machine of node {removed} was removed: run `harness up kind`"
    ):
        run.until(lambda: False)
    machines.states[removed] = NodeState.RUNNING


def test_where_no_cluster_is_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(target, "find_cluster", lambda: None)
    monkeypatch.setattr(target, "problem_with", lambda _: "no cluster is up")

    with pytest.raises(TargetUnavailableError, match="no cluster is up; run `harness up kind`"):
        target.KubernetesTarget(SystemClock()).take_turn()


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"directory": Path("/elsewhere")}, "/elsewhere is on no node of the cluster"),
        ({"cluster": Cluster(manifest="no-such.yaml")}, r"cluster\.manifest .*no-such\.yaml: No such file or directory"),
        ({"cluster": Cluster(queues="no-such.yaml")}, r"cluster\.queues .*no-such\.yaml: No such file or directory"),
        ({"ranks": 3, "cluster": Cluster(submits="ray-job")}, r"cluster\.chips: 3 hosts with 4 each are 12 chips, and a v6e slice has"),
        ({"cluster": Cluster(on_demand_nodes=99)}, r"cluster\.on_demand_nodes: it is 99, and on-demand-pool has 2 nodes"),
        ({"cluster": Cluster(manifest="taken.yaml")}, r"cluster\.manifest: taken\.yaml mounts a volume at /checkpoints"),
    ],
)
def test_what_is_written_wrong_is_known_while_another_run_has_the_cluster(neighbour, tmp_path, fields, what):
    beside = neighbour(ends_after=10**9, answers_after=10**9)
    launch = Run(tmp_path, ClusterApi(), root=tmp_path).launch
    mounts = [{"name": "a", "mountPath": "/checkpoints"}]
    pod = {"containers": [{"name": "main", "volumeMounts": mounts}], "volumes": [{"name": "a", "emptyDir": {}}]}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "job"}, "spec": {"template": {"spec": pod}}}
    (tmp_path / "taken.yaml").write_text(json.dumps(job))
    made = target.KubernetesTarget(beside)

    made.check_launch(launch)
    with pytest.raises(InvalidDocumentError, match=what):
        made.check_launch(dataclasses.replace(launch, **fields))

    assert beside.monotonic_s() == 0.0
    beside.turn.free()


class Neighbour(ManualClock):
    """Time in which another run has the cluster, has killed its API server, and ends after some sleeps; the server comes back later."""

    operators_after = 3

    def __init__(self, *, ends_after: int, answers_after: int) -> None:
        super().__init__()
        self.turn = Turn("chaos-harness")
        self.turn.take(ManualClock())
        self._ends_after, self._answers_after, self._slept = ends_after, answers_after, 0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._slept += 1
        if self._slept == self._ends_after:
            self.turn.free()

    def problem(self, _cluster: object) -> str:
        return "" if self._slept >= self._answers_after else "connection refused"

    def problem_with_operators(self, _cluster: object) -> str:
        return "" if self._slept >= self._answers_after + self.operators_after else "Kueue is not ready; run `harness up kind`"


@pytest.fixture
def neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Neighbour]:
    """Makes one; the cluster answers as it lets it."""
    cluster = cluster_at(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))

    def make(**fields: int) -> Neighbour:
        made = Neighbour(**fields)
        for module in (target, presence):
            monkeypatch.setattr(module, "find_cluster", lambda: cluster)
        monkeypatch.setattr(target, "problem_with_record", lambda _: "")
        monkeypatch.setattr(health, "problem_with", made.problem)
        monkeypatch.setattr(health, "problem_for_good", lambda _: "")
        monkeypatch.setattr(health, "problem_with_operators", made.problem_with_operators)
        monkeypatch.setattr(presence, "SystemClock", lambda: made)
        return made

    return make


@pytest.mark.parametrize("answers_after", [2, 8])
def test_whoever_waits_beside_a_run_that_kills_the_api_server_gets_its_turn(neighbour, answers_after):
    made = target.KubernetesTarget(neighbour(ends_after=5, answers_after=answers_after))

    assert made.take_turn() > 0.0
    assert made.stop() == ()


def test_a_cluster_that_stays_silent_is_not_available_and_its_turn_is_given_back(neighbour):
    beside = neighbour(ends_after=5, answers_after=10**9)

    with pytest.raises(TargetUnavailableError, match="connection refused"):
        target.KubernetesTarget(beside).take_turn()

    assert health.ANSWER_S < beside.monotonic_s() < health.ANSWER_S + 10
    assert beside.turn.take(ManualClock()) == 0.0
    beside.turn.free()


def test_a_cluster_whose_kueue_stays_away_is_not_available_and_what_to_do_is_said_once(neighbour):
    beside = neighbour(ends_after=5, answers_after=1)
    beside.operators_after = 10**9

    with pytest.raises(TargetUnavailableError) as refusal:
        target.KubernetesTarget(beside).take_turn()

    assert str(refusal.value) == "target 'kind' is not available: Kueue is not ready; run `harness up kind`"
    assert health.OPERATORS_S < beside.monotonic_s() < health.OPERATORS_S + 10
    beside.turn.free()


def test_the_target_is_here_while_a_run_beside_us_has_killed_the_api_server(neighbour):
    beside = neighbour(ends_after=10**9, answers_after=8)

    assert availability("kind").is_available
    beside.turn.free()
