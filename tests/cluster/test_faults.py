"""Each fault of a cluster lands on a real one, is seen there, and ends as it was before."""

import pytest

from harness.history import FaultRequested
from harness.history.cluster import ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.kind import NodeState
from harness.scenario import Cluster, Injection, Victim
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
from harness.scenario.triggers import AfterSeconds, AtSubmission, OnCondition, Trigger
from harness.targets.kubernetes.api import CLUSTER_QUEUES, JOBS, NODES, RESOURCE_QUOTAS
from harness.targets.kubernetes.nodes import MAINTENANCE_LABEL, TERMINATION_TAINT
from harness.targets.kubernetes.quota import LIMIT_NAME, nominal_quota
from tests.cluster.fault_trials import CHECKOUT, Trial
from tests.cluster.kueue_trials import TEST_S_MAX

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(TEST_S_MAX)]

RUNS = AfterSeconds(seconds=0.5)
ADMITTED = OnCondition(of="workload", condition="Admitted")
GUIDE_QUEUES = CHECKOUT / "harness/targets/kubernetes/manifests/guide_b_queues.yaml"


def hit(fault: ClusterFault, at: Trigger = RUNS) -> Injection:
    return Injection(fault=fault, at=at, name="hit")


# ---- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [DeletePods(grace_s=0), DeletePods(), EvictPods()], ids=["no-grace", "grace", "evict"])
def test_a_pod_that_is_removed_is_replaced(tmp_path, fault) -> None:
    with Trial(tmp_path, hit(fault)).running() as trial:
        evidence = trial.observed()
        first = trial.hosts()[0]
        assert first.uid in evidence
        trial.until(lambda: any(pod.uid != first.uid and pod.phase == "Running" for pod in trial.hosts()), "replaced")


# ---- nodes -------------------------------------------------------------------------------------------------------------


def test_a_node_is_cordoned_and_takes_pods_again(tmp_path) -> None:
    with Trial(tmp_path, hit(CordonNode(duration_s=1.0))).running() as trial:
        assert trial.observed().endswith("is unschedulable")
        name = trial.hosts()[0].node
        assert not trial.node(name).is_schedulable
        trial.healed()
        assert trial.node(name).is_schedulable


def test_a_drained_node_loses_its_pod_to_another_one(tmp_path) -> None:
    with Trial(tmp_path, hit(DrainNode(duration_s=20.0))).running() as trial:
        trial.observed()
        first = trial.hosts()[0]
        trial.until(lambda: any(pod.phase == "Running" and pod.node not in ("", first.node) for pod in trial.hosts()), "moved")


def test_a_lost_node_comes_back_as_another_object_with_its_chips(tmp_path, api) -> None:
    with Trial(tmp_path, hit(LoseNode(duration_s=2.0))).running() as trial:
        assert "is gone" in trial.observed()
        name = trial.hosts()[0].node
        gone = trial.node(name)
        assert gone.state == "Deleted"
        assert trial.healed() == f"node {name} is ready again, as the API server says, or gone with what asked for it"
        trial.until(lambda: trial.node(name).state == "True", "ready")
        assert trial.node(name).uid != gone.uid
        node = api.get(NODES, name)
        assert node is not None
        assert node["status"]["allocatable"]["google.com/tpu"] == "8"
        assert node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] == "on-demand-pool"
        assert "google.com/tpu" in {taint["key"] for taint in node["spec"]["taints"]}


def test_a_pool_is_lost_with_all_its_nodes(tmp_path, machines) -> None:
    with Trial(tmp_path, hit(LosePool(duration_s=1.0))).running() as trial:
        assert trial.observed().count("is gone") == 2
        assert {node.state for node in machines.list("on-demand-pool")} == {NodeState.EXITED}
        trial.healed()
    assert {node.state for node in machines.list("on-demand-pool")} == {NodeState.RUNNING}


SHOWN = {"power-off": "its machine is off", "kubelet": "its kubelet is inactive", "partition": "packets between it and the control plane"}


@pytest.mark.parametrize("how", SHOWN)
def test_a_broken_node_shows_it_and_is_mended(tmp_path, machines, how) -> None:
    with Trial(tmp_path, hit(BreakNode(how=how, duration_s=2.0))).running() as trial:
        evidence = trial.observed()
        name = trial.hosts()[0].node
        assert evidence.startswith(f"node {name}: {SHOWN[how]}")
        assert (machines.state(name) is NodeState.RUNNING) is (how != "power-off")
        assert trial.healed() == f"node {name} is ready again, as the API server says, or gone with what asked for it"
        assert machines.state(name) is NodeState.RUNNING


@pytest.mark.slow
def test_containers_on_a_node_that_is_cut_off_run_on_while_it_is_not_ready(tmp_path) -> None:
    beat = 'while :; do date +%s.%N > "$CHECKPOINT_DIR/beat"; sleep 0.2; done'
    with Trial(tmp_path, hit(BreakNode(how="partition", duration_s=55.0)), command=beat).running() as trial:
        trial.observed()
        name = trial.hosts()[0].node
        trial.until(lambda: trial.node(name).state == "Unknown", "not ready")
        path = trial.launch.checkpoint_dir / "beat"
        before = path.read_text()
        trial.until(lambda: path.read_text() != before, "beating", patience_s=5.0)
        trial.healed()
        trial.until(lambda: trial.node(name).state == "True", "ready")


def test_maintenance_is_announced_evicts_and_takes_the_machine(tmp_path, api) -> None:
    with Trial(tmp_path, hit(InterruptNode(notice_s=2.0, duration_s=2.0))).running() as trial:
        trial.until(lambda: trial.hosts() and trial.hosts()[0].phase == "Running", "running")
        name = trial.hosts()[0].node

        def marks() -> tuple[str, ...]:
            return trial.node(name).labels

        def is_tainted() -> bool:
            return any(taint.startswith(TERMINATION_TAINT) for taint in trial.node(name).taints)

        trial.until(lambda: f"{MAINTENANCE_LABEL}=PENDING" in marks(), "announced")
        assert not is_tainted()
        trial.until(lambda: f"{MAINTENANCE_LABEL}=ONGOING" in marks(), "begun")
        assert is_tainted()
        evidence = trial.observed()
        assert evidence.index("pod ") < evidence.index(f"node {name}")
        trial.healed()
        node = api.get(NODES, name)
        assert node is not None
        assert MAINTENANCE_LABEL not in node["metadata"]["labels"]
        assert TERMINATION_TAINT not in {taint["key"] for taint in node["spec"]["taints"]}


STUBBORN = """trap 'echo asked >> "$CHECKPOINT_DIR/asked"' TERM; while :; do sleep 0.2; done"""
"""A job that notes SIGTERM and stays: only the platform ends it."""

LOST_WITHIN_S = 10.0
"""For a machine to be killed, its node to be deleted, and a watch to tell of it, on two loaded cores."""


def lost_after_s(trial: Trial) -> float:
    """From the injection until the API server said that the node is gone."""
    asked = trial.of(FaultRequested)[0]
    assert asked.t_s is not None
    gone = trial.node(trial.hosts()[0].node)
    assert (gone.state, gone.t_s is not None) == ("Deleted", True)
    return gone.t_s - asked.t_s


def test_a_spot_machine_is_gone_after_15_s_however_long_its_pods_would_like_to_stay(tmp_path) -> None:
    fault = InterruptNode(profile="gke-spot", duration_s=1.0)
    with Trial(tmp_path, hit(fault), command=STUBBORN, grace_s=60.0).running() as trial:
        evidence = trial.observed()
        assert f"node {trial.hosts()[0].node} (" in evidence
        assert f"pod {trial.hosts()[0].name} (" in evidence  # it ends with the machine, or just before it
        assert (trial.launch.checkpoint_dir / "asked").read_text() == "asked\n"
        assert 14.0 <= lost_after_s(trial) <= 15.0 + LOST_WITHIN_S
        trial.healed()


def test_a_host_error_asks_no_pod_to_end(tmp_path) -> None:
    fault = InterruptNode(profile="gke-host-error", duration_s=1.0)
    with Trial(tmp_path, hit(fault), command=STUBBORN, grace_s=60.0).running() as trial:
        evidence = trial.observed()
        assert f"node {trial.hosts()[0].node} (" in evidence
        assert "pod " not in evidence
        assert not (trial.launch.checkpoint_dir / "asked").exists()
        assert lost_after_s(trial) <= LOST_WITHIN_S
        trial.healed()


def test_both_hosts_of_a_slice_are_interrupted_as_one(tmp_path) -> None:
    fault = InterruptNode(profile="gke-host-error", duration_s=1.0)
    injection = Injection(fault=fault, at=RUNS, victim=Victim(rank=1), name="hit")
    with Trial(tmp_path, injection, ranks=2, cluster=Cluster(chips=8)).running() as trial:
        assert trial.observed().count("is gone") == 2
        trial.healed()


# ---- the queue ---------------------------------------------------------------------------------------------------------


def test_an_evicted_workload_is_requeued_and_admitted_again(tmp_path) -> None:
    with Trial(tmp_path, hit(EvictWorkload(duration_s=1.0))).running() as trial:
        assert "was evicted: Deactivated" in trial.observed()
        trial.healed()
        workloads = [event for event in trial.of(WorkloadSeen) if isinstance(event, WorkloadSeen)]
        places = [index for index, event in enumerate(workloads) if event.holds("Admitted")]
        trial.until(lambda: [e for e in trial.of(WorkloadSeen)[places[-1] + 1 :] if e.holds("Admitted")], "admitted again")


def test_a_job_of_higher_priority_takes_the_quota_and_gives_it_back(tmp_path) -> None:
    queues = GUIDE_QUEUES.read_text().replace(
        "  namespaceSelector: {}\n", "  namespaceSelector: {}\n  preemption:\n    withinClusterQueue: LowerPriority\n"
    )
    queues = queues.replace("nominalQuota: 1000000000\n", "nominalQuota: 0\n")  # else it goes on on dws
    (tmp_path / "queues.yaml").write_text(queues)
    with Trial(tmp_path, hit(PreemptWorkload(duration_s=2.0)), cluster=Cluster(queues=str(tmp_path / "queues.yaml"))).running() as trial:
        evidence = trial.observed()
        assert "was evicted: Preempted" in evidence
        assert evidence.endswith("the other job was admitted")
        seen = len(trial.of(WorkloadSeen))
        assert trial.healed() == "the other job is gone, and its quota free"
        trial.until(lambda: any(event.holds("Admitted") for event in trial.of(WorkloadSeen)[seen:]), "admitted again")


def test_a_quota_that_is_used_up_from_the_start_sends_the_job_to_dws(tmp_path, api) -> None:
    with Trial(tmp_path, hit(LowerQuota(to=0, duration_s=60.0), AtSubmission())).running() as trial:
        assert trial.observed() == "Kueue counts with 0 chips of flavor on-demand"
        trial.until(lambda: any("dws" in event.flavors.values() for event in trial.of(WorkloadSeen)), "on flavor dws")
        trial.until(lambda: trial.of(ProvisioningSeen), "provisioning")
        queue = api.get(CLUSTER_QUEUES, "cluster-queue")
        assert queue is not None
        assert nominal_quota(queue, "on-demand") == "0"


def test_a_quota_is_back_within_the_run(tmp_path) -> None:
    with Trial(tmp_path, hit(LowerQuota(to=0, duration_s=1.0))).running() as trial:
        trial.observed()
        assert trial.healed() == "Kueue counts with 16 chips of flavor on-demand"


def test_a_limited_namespace_gets_no_pod(tmp_path, api) -> None:
    with Trial(tmp_path, hit(LimitNamespace(chips=0, duration_s=4.0), AtSubmission())).running() as trial:
        assert trial.observed() == "the quota controller limits the namespace to 0 chips"
        assert not trial.hosts()
        assert trial.healed() == "the namespace has no limit"
        assert api.get(RESOURCE_QUOTAS, LIMIT_NAME, trial.target.grounds.namespace) is None
        trial.until(lambda: any(pod.phase == "Running" for pod in trial.hosts()), "running")


def test_occupied_capacity_is_held_before_the_job_comes(tmp_path, api) -> None:
    with Trial(tmp_path, hit(OccupyCapacity(duration_s=60.0), AtSubmission())).running() as trial:
        assert "was admitted to 16 chips of flavor on-demand" in trial.observed()
        trial.until(lambda: any("dws" in event.flavors.values() for event in trial.of(WorkloadSeen)), "on flavor dws")
        assert not trial.of(SubmissionSeen)[0].name.startswith("occupant")
        assert api.get(JOBS, "occupant-hit", trial.target.grounds.namespace) is not None


def test_revoked_capacity_deactivates_and_somebody_lets_the_job_be_queued_again(tmp_path) -> None:
    injections = (
        Injection(fault=LowerQuota(to=0, duration_s=200.0), at=AtSubmission(), name="quota"),
        Injection(fault=RevokeCapacity(reactivate_s=1.0), at=ADMITTED, name="revoke"),
    )
    with Trial(tmp_path, *injections).running() as trial:
        trial.until(
            lambda: any(
                getattr(event, "injection", "") == "revoke" and "CapacityRevoked" in getattr(event, "evidence", "")
                for event in trial.events
            ),
            "revoked",
        )
        trial.until(lambda: any(not event.is_active for event in trial.of(WorkloadSeen)), "deactivated")
        trial.until(
            lambda: any(
                getattr(event, "injection", "") == "revoke" and "was deleted; " in getattr(event, "evidence", "") for event in trial.events
            ),
            "made anew",
        )


# ---- the control plane -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("component", ["api-server", "kueue", "kuberay"])
def test_a_component_that_is_killed_comes_back(tmp_path, component) -> None:
    with Trial(tmp_path, hit(RestartComponent(component=component))).running() as trial:
        assert trial.observed().startswith(f"{component} runs again: containerd://")


def test_an_image_that_is_not_there_cannot_be_pulled_until_it_is_back(tmp_path) -> None:
    with Trial(tmp_path, hit(ForgetImage(duration_s=6.0), AtSubmission())).running() as trial:
        assert "is unknown on" in trial.observed()
        trial.until(lambda: any(pod.reason in ("ErrImagePull", "ImagePullBackOff") for pod in trial.hosts()), "without an image")
        trial.healed()
        trial.until(lambda: any(pod.phase == "Running" for pod in trial.hosts()), "running")
