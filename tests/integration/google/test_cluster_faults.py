"""Faults on a GKE cluster: the same scenarios as on the local one, through Google's own clients and the Kubernetes API."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harness.cli.project_plan import AskedOfProject, plan_or_apply, project_asked_for
from harness.clock import SystemClock
from harness.errors import BrokenHarnessError, CapabilityMissingError
from harness.history import Event, FaultFailed, FaultHealed, FaultObserved
from harness.runner import Run
from harness.scenario import Injection, Scenario
from harness.scenario.cluster import Cluster
from harness.scenario.cluster_faults import (
    BreakNode,
    ClusterFault,
    CordonNode,
    DeletePods,
    DrainNode,
    EvictPods,
    EvictWorkload,
    ForgetImage,
    InterruptNode,
    LimitNamespace,
    LoseNode,
    LosePool,
    LowerQuota,
    OccupyCapacity,
    PreemptWorkload,
    RestartComponent,
    RevokeCapacity,
)
from harness.scenario.faults import DrainRayNode, Kill
from harness.scenario.triggers import OnEffect
from harness.targets import left_behind, remove_left_behind
from harness.targets.gcp.applying import PlanDriftedError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.footprint import write_footprint
from harness.targets.gcp.guard import NotAllowedError
from harness.targets.gcp.oversight import LOOKED_EVERY_S, Oversight, RunAbortedError
from harness.targets.gcp.place import resolve_place
from harness.targets.gcp.plan import Limits, Plan, Resource, read_plan
from harness.targets.gcp.pool_sizes import PoolSizes
from harness.targets.gke.arrangement import Adoption
from harness.targets.gke.target import ProjectClusterTarget
from harness.targets.kubernetes.api import CLUSTER_QUEUES, NAMESPACES, NODES
from harness.targets.kubernetes.submission import Submission
from harness.undo import ResizeNodePool, RestoreAutoscaling, RestoreInCluster, Undo, UndoJournal
from tests.integration.google.api_server import TOKEN, Refusal
from tests.integration.google.gke_runs import run_on, scenario_of
from tests.integration.google.gke_world import CLUSTER, POOL, GkeWorld

RunIt = Callable[..., Run]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def world(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[GkeWorld]:
    case = getattr(request.node, "callspec", None) and request.node.callspec.params.get("case")
    running = GkeWorld(tmp_path, pools={"on-demand-pool": {"config": dict(case.config), **case.pool} if case else {}})
    running.install(monkeypatch)
    yield running
    running.close()


@pytest.fixture
def run_it(world: GkeWorld, tmp_path: Path) -> RunIt:
    return partial(run_on, tmp_path)


def seen(run: Run, kind: type[Event]) -> list[Event]:
    return [event for event in run.history.events if isinstance(event, kind)]


def test_a_job_runs_to_its_end_and_leaves_nothing(run_it, world):
    run = run_it(scenario_of())
    assert run.verdict.is_valid, run.explain()
    assert not [name for name in world.namespaces() if name.startswith("harness-")]


@dataclass(frozen=True)
class Case:
    """A fault, what it calls (a regular expression over calls), what is seen, what its undo is, and how it ends."""

    fault: ClusterFault
    calls: str
    seen: str
    undo: tuple[type, ...] = ()
    healed: str = ""
    config: dict[str, object] = field(default_factory=dict)
    pool: dict[str, object] = field(default_factory=dict)
    ticks_a_step: int = 1


POOL_SIZE = (ResizeNodePool, RestoreAutoscaling)
INSTANCES = r"instances\.{} .*gke-tpu-on-demand-pool"
GPUS: dict[str, object] = {
    "machine_type": "g2-standard-4",
    "accelerators": [{"accelerator_count": 1, "accelerator_type": "nvidia-l4"}],
}
"""Machines with accelerators are ended by a maintenance; others are moved alive."""

CASES = {
    "delete-pods": Case(DeletePods(grace_s=0), r"delete pods/count-0-", r"pod count-0-\d+ \(.*\) is gone"),
    "evict-pods": Case(EvictPods(), r"evict pods/count-0-", r"pod count-0-\d+ \(.*\) is gone"),
    "cordon-node": Case(CordonNode(duration_s=0.3), "patch nodes/gke", "is unschedulable", (RestoreInCluster,), "schedulable again"),
    "drain-node": Case(DrainNode(duration_s=0.3), "evict pods/count-0-", "is gone", (RestoreInCluster,), "schedulable again"),
    "reset": Case(BreakNode(duration_s=0.3), INSTANCES.format("reset"), "has booted anew: boot-", (), "ready again"),
    "lose-node": Case(LoseNode(duration_s=0.3), INSTANCES.format("delete"), "node gke-.* is gone", (), "as many nodes are ready"),
    "host-error": Case(
        InterruptNode(profile="gke-host-error", duration_s=0.3), INSTANCES.format("delete"), "node gke-.* is gone", (), "as many nodes"
    ),
    "maintenance": Case(
        InterruptNode(duration_s=0.3), INSTANCES.format("simulateMaintenanceEvent"), "node gke-.* is gone", (), "as many nodes", GPUS
    ),
    "spot": Case(
        InterruptNode(profile="gke-spot", duration_s=0.3),
        INSTANCES.format("simulateMaintenanceEvent"),
        "node gke-.* is gone",
        (),
        "as many nodes",
        {"spot": True},
    ),
    "lose-pool": Case(
        LosePool(pool="on-demand-pool", duration_s=0.3),
        "SetNodePoolSize .*on-demand-pool",
        "gone; node gke-.* is gone",
        POOL_SIZE,
        "nodes",
        pool={"autoscaling": {"enabled": True, "min_node_count": 2, "max_node_count": 4}},
        ticks_a_step=4,
    ),
    "lower-quota": Case(
        LowerQuota(duration_s=0.3), "patch clusterqueues/cluster-queue", "counts with 0 chips", (RestoreInCluster,), "16 chips"
    ),
    "limit-namespace": Case(LimitNamespace(duration_s=0.3), "apply resourcequotas", "to 0 chips", (RestoreInCluster,), "no limit"),
    "occupy-capacity": Case(
        OccupyCapacity(chips=4, duration_s=0.3), "create jobs/occupant", "was admitted to 4 chips", (RestoreInCluster,) * 2, "quota free"
    ),
    "preempt-workload": Case(
        PreemptWorkload(duration_s=0.3), "create jobs/occupant", "was evicted: Preempted", (RestoreInCluster,) * 2, "quota free"
    ),
    "evict-workload": Case(
        EvictWorkload(duration_s=0.3), "patch workloads/job-count-0", "Deactivated", (RestoreInCluster,), "active again"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_fault_is_caused_seen_and_taken_back_and_its_undo_is_written_before(case, run_it, world, monkeypatch):
    before = world.pool_state()
    written = Written(world, monkeypatch)
    world.ticks_a_step = case.ticks_a_step

    run = run_it(scenario_of(case.fault))

    assert run.verdict.is_valid, run.explain()
    hurt = re.compile(case.calls)
    assert not any(map(hurt.search, written.calls_before)), "nothing is hurt before its undo is written"
    assert any(map(hurt.search, written.calls_since())), written.calls_since()
    undone = tuple(type(action) for action in getattr(written.undo, "actions", ()))
    assert undone == case.undo
    observed = [event.evidence for event in seen(run, FaultObserved)]
    assert len(observed) == 1, observed
    assert re.search(case.seen, observed[0])
    healed = [event.evidence for event in seen(run, FaultHealed)]
    assert all(case.healed in words for words in healed), healed
    assert world.quota() == 16
    assert world.pool_state() == before
    assert UndoJournal(run.directory.undo_path).owed() == []
    assert not [name for name in world.namespaces() if name.startswith("harness-")]
    assert left_behind(run.history.events[0].run_id) == []  # type: ignore[attr-defined]


class Written:
    """What was called before the undo of the first fault was written, and what that is."""

    def __init__(self, world: GkeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self._world = world
        self._counts = (0, 0)
        self.calls_before: list[str] = []
        self.undo: Undo | None = None
        owe = UndoJournal.owe

        def noting(journal: UndoJournal, injection: str, undo: Undo) -> None:
            if self.undo is None:
                self.undo = undo
                inside, outside = world.server.writes(), world.google_calls()
                self.calls_before, self._counts = [*inside, *outside], (len(inside), len(outside))
            owe(journal, injection, undo)

        monkeypatch.setattr(UndoJournal, "owe", noting)

    def calls_since(self) -> list[str]:
        return [*self._world.server.writes()[self._counts[0] :], *self._world.google_calls()[self._counts[1] :]]


@pytest.mark.parametrize("fault", [CordonNode(duration_s=0.3), DrainNode(duration_s=0.3)])
def test_a_node_that_somebody_has_cordoned_stays_so(fault, run_it, world, monkeypatch):
    chosen: list[str] = []
    nodes_of = ProjectClusterTarget.nodes_of

    def cordoned(*arguments: Any) -> tuple[str, ...]:
        chosen.extend(nodes_of(*arguments))
        with world.server.lock:
            for node in chosen:
                world.server.api.patch(NODES, node, {"spec": {"unschedulable": True}})
        return tuple(chosen)

    monkeypatch.setattr(ProjectClusterTarget, "nodes_of", cordoned)
    run = run_it(scenario_of(fault))
    (failed,) = seen(run, FaultFailed)
    assert "is cordoned already" in failed.detail  # type: ignore[attr-defined]
    assert not any("patch nodes" in call for call in world.server.writes())
    with world.server.lock:
        assert all(world.server.api.objects["nodes", "", node]["spec"]["unschedulable"] for node in chosen)


def test_a_pool_of_which_a_machine_is_away_is_not_emptied_for_it_would_stay_smaller(run_it, world):
    before = world.pool_state()
    emptying = Injection(fault=LosePool(pool="on-demand-pool", duration_s=0.3), at=OnEffect(of="1-lose-node"))
    scenario = scenario_of(LoseNode(duration_s=0.3))
    run = run_it(replace(scenario, injections=(*scenario.injections, emptying)))
    (failed,) = seen(run, FaultFailed)
    assert "has 1 machines, and had 2 before some were hurt" in failed.detail  # type: ignore[attr-defined]
    assert not any("SetNodePool" in call for call in world.google_calls())
    world.await_pool(before)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (BreakNode(how="kubelet"), "nobody has access to the kubelet"),
        (BreakNode(how="partition"), "the project's network, which is not the run's"),
        (RestartComponent(), "nobody else can kill its API server"),
        (RestartComponent(component="kueue"), "a run restarts nobody else's controller"),
        (ForgetImage(), "to which nobody has access"),
        (RevokeCapacity(), "takes no request to do so before"),
        (Kill(), "signals to processes"),
        (DrainRayNode(), "a Ray cluster of the job's own"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_a_project_cannot_cause_is_refused_when_it_is_bound_and_nothing_is_called(fault, why, run_it, world):
    calls = len(world.server.writes()), len(world.google_calls())
    scenario = scenario_of(fault)
    with pytest.raises(CapabilityMissingError, match=why):
        run_it(scenario)
    assert (len(world.server.writes()), len(world.google_calls())) == calls


def test_a_cluster_that_its_owner_does_not_allow_is_left_alone(run_it, world):
    cluster = world.clients.clusters.get_cluster(name=CLUSTER)
    fingerprint = cluster.label_fingerprint
    world.finish(world.clients.clusters.set_labels({"name": CLUSTER, "resource_labels": {}, "label_fingerprint": fingerprint}))
    with pytest.raises(NotAllowedError, match=r"cluster .*tpu is not labelled harness-chaos=allowed"):
        run_it(scenario_of())
    assert world.server.writes() == []


def test_a_queue_that_its_owner_does_not_allow_is_left_alone(run_it, world):
    with world.server.lock:
        queue = world.server.api.objects["clusterqueues", "", "cluster-queue"]
        world.server.api.put(CLUSTER_QUEUES, {**queue, "metadata": {**queue["metadata"], "labels": {}}})
    with pytest.raises(NotAllowedError, match="ClusterQueue cluster-queue is not labelled"):
        run_it(scenario_of())
    assert [call for call in world.server.writes() if call.split()[0] in ("create", "apply", "patch")] == []


TEAMS_JOB = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team-queue}
spec: {clusterQueue: their-queue}
---
apiVersion: batch/v1
kind: Job
metadata: {name: count, labels: {kueue.x-k8s.io/queue-name: team-queue}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: some/image, command: [count], resources: {requests: {google.com/tpu: 4}, limits: {google.com/tpu: 4}}}]
"""


def test_a_queue_behind_one_of_the_jobs_own_that_its_owner_does_not_allow_is_left_alone(run_it, world, tmp_path):
    (tmp_path / "job.yaml").write_text(TEAMS_JOB)
    with world.server.lock:
        queue = world.server.api.objects["clusterqueues", "", "cluster-queue"]
        world.server.api.put(CLUSTER_QUEUES, {**queue, "metadata": {"name": "their-queue"}})
    scenario = scenario_of(LowerQuota(duration_s=0.3))
    with pytest.raises(NotAllowedError, match="ClusterQueue their-queue is not labelled"):
        run_it(replace(scenario, cluster=Cluster(manifest="job.yaml", queue="team-queue", chips=4)))
    assert [call for call in world.server.writes() if call.split()[0] in ("create", "apply", "patch")] == []


@pytest.mark.parametrize("fault", [LowerQuota(), OccupyCapacity(chips=4), PreemptWorkload()])
def test_a_label_that_is_taken_back_during_the_run_is_seen_before_the_queue_is_changed(fault, run_it, world, monkeypatch):
    make = Adoption.make

    def then_take_back(adoption: Adoption, submission: Submission) -> None:
        make(adoption, submission)
        with world.server.lock:
            world.server.api.patch(CLUSTER_QUEUES, "cluster-queue", {"metadata": {"labels": {"harness-chaos": None}}})

    monkeypatch.setattr(Adoption, "make", then_take_back)
    run = run_it(scenario_of(fault))
    (failed,) = seen(run, FaultFailed)
    assert "ClusterQueue cluster-queue is not labelled harness-chaos=allowed" in failed.detail  # type: ignore[attr-defined]
    assert not any(hurt in call for call in world.server.writes() for hurt in ("patch clusterqueues", "create jobs/occupant"))


@pytest.mark.parametrize("fault", [LoseNode(), BreakNode(), CordonNode(), LosePool(pool="on-demand-pool"), InterruptNode()])
def test_a_pool_that_its_owner_does_not_allow_is_not_hurt(fault, run_it, world, monkeypatch):
    monkeypatch.setattr("harness.targets.gcp.adopting.is_allowed", lambda _: False)
    before = world.pool_state()
    run = run_it(scenario_of(fault))
    assert not run.verdict.is_valid
    failed = seen(run, FaultFailed)
    assert len(failed) == 1
    assert "on-demand-pool is not labelled harness-chaos=allowed" in failed[0].detail  # type: ignore[attr-defined]
    assert not any(word in call for call in world.google_calls() for word in ("instances", "SetNodePool"))
    assert world.pool_state() == before


# ---- tokens ----------------------------------------------------------------------------------------------------------


def test_a_token_that_expires_during_a_run_is_renewed(run_it, world):
    world.expire_at_step = 20
    run = run_it(scenario_of(EvictWorkload(duration_s=0.3)))
    assert run.verdict.is_valid, run.explain()
    assert world.renewals > 0


def test_a_token_is_in_no_file_of_a_run(run_it, world, tmp_path):
    world.server.refusals.append(Refusal("patch", "workloads", 403, times=1, reason=f"the token {TOKEN} may not"))
    run = run_it(scenario_of(EvictWorkload(duration_s=0.3)))
    assert "the token [redacted] may not" in seen(run, FaultFailed)[0].detail  # type: ignore[attr-defined]
    files = [path for path in run.directory.path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


# ---- while a run lasts, and after one that was killed ----------------------------------------------------------------


class Ahead(SystemClock):
    """A clock that a test moves."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def test_an_owner_who_takes_the_clusters_label_back_ends_the_run(world):
    place = resolve_place({}, world.environment())
    clock = Ahead()
    now = clock.utc()
    resources = (Resource(kind="cluster", name=CLUSTER, action="adopt"),)
    plan = Plan(made_at=now, expires_at=now, place=place, limits=Limits(), scenarios=(), resources=resources)
    oversight = Oversight(world.clients, Caller(clock=clock), place, plan=plan, environment={})
    oversight.begin("ab12")
    try:
        clock.ahead_s += LOOKED_EVERY_S + 1.0
        oversight.look()
        fingerprint = world.clients.clusters.get_cluster(name=CLUSTER).label_fingerprint
        world.finish(world.clients.clusters.set_labels({"name": CLUSTER, "resource_labels": {}, "label_fingerprint": fingerprint}))
        clock.ahead_s += LOOKED_EVERY_S + 1.0
        with pytest.raises(RunAbortedError, match=r"cluster .* its owner wants no faults on it"):
            oversight.look()
    finally:
        oversight.end()


def take_back_the_pools_label(world: GkeWorld) -> None:
    world.finish(world.clients.clusters.update_node_pool({"name": POOL, "resource_labels": {"labels": {}}}))


def test_an_owner_who_takes_a_pools_label_back_ends_the_run(world):
    place, clock = resolve_place({}, world.environment()), Ahead()
    now = clock.utc()
    resources = (Resource(kind="cluster", name=CLUSTER, action="adopt"), Resource(kind="node-pool", name=POOL, action="adopt"))
    plan = Plan(made_at=now, expires_at=now, place=place, limits=Limits(), scenarios=(), resources=resources)
    oversight = Oversight(world.clients, Caller(clock=clock), place, plan=plan, environment={})
    oversight.begin("ab12")
    try:
        oversight.hasten()
        oversight.look()
        take_back_the_pools_label(world)
        oversight.look()  # not yet: it looks now and then
        oversight.hasten()
        with pytest.raises(RunAbortedError, match=r"node pool .*on-demand-pool .* its owner wants no faults on it"):
            oversight.look()
        world.finish(world.clients.clusters.delete_node_pool(name=POOL))
        oversight.hasten()
        with pytest.raises(RunAbortedError, match=r"node pool .*on-demand-pool is gone"):
            oversight.look()
    finally:
        oversight.end()


@pytest.mark.parametrize("fault", [LoseNode(), BreakNode(), CordonNode(), LosePool(pool="on-demand-pool"), InterruptNode()])
def test_a_label_that_is_taken_back_during_the_run_is_seen_before_the_pool_is_hurt(fault, run_it, world, monkeypatch):
    hastened: list[Oversight] = []

    def note(oversight: Oversight) -> None:
        hastened.append(oversight)  # with a plan the run would be ended

    monkeypatch.setattr(Oversight, "hasten", note)
    begin = Oversight.begin

    def then_take_back(oversight: Oversight, *arguments: str) -> None:
        begin(oversight, *arguments)
        take_back_the_pools_label(world)

    monkeypatch.setattr(Oversight, "begin", then_take_back)  # the cluster was adopted before
    if isinstance(fault, LosePool):  # between its undo, which looks, too, and the act
        monkeypatch.setattr(Oversight, "begin", begin)
        saved = PoolSizes.saved

        def and_take_back(sizes: PoolSizes, *arguments: Any) -> Any:
            found = saved(sizes, *arguments)
            take_back_the_pools_label(world)
            return found

        monkeypatch.setattr(PoolSizes, "saved", and_take_back)
    before = world.pool_state()
    run = run_it(scenario_of(fault))
    (failed,) = seen(run, FaultFailed)
    assert "on-demand-pool is not labelled harness-chaos=allowed" in failed.detail  # type: ignore[attr-defined]
    assert hastened
    assert not any(word in call for call in world.google_calls() for word in ("instances", "SetNodePool"))
    assert sum("patch nodes" in call for call in world.server.writes()) == isinstance(fault, CordonNode)  # its undo alone
    assert world.pool_state() == before


@pytest.mark.usefixtures("world")
def test_a_plan_on_a_cluster_counts_what_the_manifests_pods_ask_for(tmp_path):
    scenario = replace(scenario_of(), cluster=Cluster(manifest="scenarios/manifests/guide_b_rayjob.yaml"), deadline_s=3300.0)
    plan = planned(scenario, tmp_path, ROOT)
    assert plan.problems == ("32.00 accelerator-hours at worst, and gpu_hours is 1",)
    assert plan.scenarios[0].exposure.chips == 32
    elsewhere = planned(scenario, tmp_path, tmp_path)
    assert any("the accelerator-hours are not known" in problem and "guide_b_rayjob.yaml" in problem for problem in elsewhere.problems)


@pytest.mark.usefixtures("world")
def test_a_plan_does_not_hold_where_the_manifest_was_edited_since(tmp_path):
    manifest, path = tmp_path / "job.yaml", tmp_path / "plan.json"
    manifest.write_text((ROOT / "scenarios/manifests/guide_b_rayjob.yaml").read_text())
    scenario = replace(scenario_of(), cluster=Cluster(manifest="job.yaml"), deadline_s=3300.0)
    limits = {"gpu_hours": 1000.0, "blast_radius": None, "duration_s": None}
    for apply in (None, path):
        asked = AskedOfProject(options={}, limits=limits, config=None, plans=apply is None, apply=apply, plan_file=path)
        project = project_asked_for("gcp", asked)
        assert project is not None
        if apply is None:
            assert plan_or_apply(project, [scenario], seed=0, clock=SystemClock(), as_json=False, root=tmp_path) == 0
            manifest.write_text(manifest.read_text().replace("train.py", "another.py"))
    with pytest.raises(PlanDriftedError, match=r"job\.yaml of"):
        plan_or_apply(project, [scenario], seed=0, clock=SystemClock(), as_json=False, root=tmp_path)


def planned(scenario: Scenario, tmp_path: Path, root: Path) -> Plan:
    limits = {"gpu_hours": None, "blast_radius": None, "duration_s": None}
    path = tmp_path / "plan.json"
    project = project_asked_for("gcp", AskedOfProject(options={}, limits=limits, config=None, plans=True, apply=None, plan_file=path))
    assert project is not None
    plan_or_apply(project, [scenario], seed=0, clock=SystemClock(), as_json=False, root=root)
    return read_plan(path)


def test_what_a_killed_run_has_left_is_found_by_what_was_written_down_and_removed(world):
    run_id, place = "ab12cd34ef56", resolve_place({}, world.environment())
    write_footprint(run_id, place, world.environment(), is_of_cluster=True)
    labels = {"chaos-harness-allow": "true", "chaos-harness/run-id": run_id}
    with world.server.lock:
        world.server.api.put(NAMESPACES, {"metadata": {"name": f"harness-{run_id}", "labels": labels}})
        world.server.api.put(NAMESPACES, {"metadata": {"name": "default", "labels": {}}})
    assert f"namespace harness-{run_id} in {CLUSTER}" in left_behind(run_id)

    removed = remove_left_behind(run_id)

    assert f"removed namespace harness-{run_id}" in removed
    assert world.namespaces() == ["default"]
    assert left_behind(run_id) == []
    assert remove_left_behind(run_id) == []


def test_a_namespace_of_that_name_that_is_another_s_is_left_alone(world):
    run_id, place = "ab12cd34ef56", resolve_place({}, world.environment())
    write_footprint(run_id, place, world.environment(), is_of_cluster=True)
    with world.server.lock:
        world.server.api.put(NAMESPACES, {"metadata": {"name": f"harness-{run_id}", "labels": {}}})
    with pytest.raises(BrokenHarnessError, match="delete it yourself if it may go"):
        remove_left_behind(run_id)
    assert world.namespaces() == [f"harness-{run_id}"]
    assert left_behind(run_id), "it is still written down"
