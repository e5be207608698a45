"""What is wrong on a cluster is caught in the history that it must leave there, told from the sources of Kueue and KubeRay: no cluster is needed."""

from collections.abc import Callable

import pytest

from harness.checkers import judge
from harness.scenario import Workload
from harness.verdict import Outcome
from scenarios import CATALOGUE
from tests.detection.cluster_trials import CLUSTER_TRIALS, ClusterTrial, mistaken
from tests.unit.checkers.cluster_builders import CLASS, REQUEST, ClusterRun, condition

TRIALS = {trial.promise: trial for trial in CLUSTER_TRIALS}


def taken(workload: Workload) -> ClusterRun:
    """Another job has the on-demand chips, and keeps them to the end."""
    run = ClusterRun(workload)
    run.request("on-demand-taken", "occupy-capacity").observe("on-demand-taken", "admitted to 16 chips of flavor on-demand")
    return run


def waited_in_vain(run: ClusterRun) -> ClusterRun:
    ended_s = run.watch().t_s
    run.heal("on-demand-taken").close("deadline", ended_s=ended_s)
    return run


def provisioned_gpus(workload: Workload, **annotations: str) -> ClusterRun:
    """The check is passed at once, and the pod is never bound: its pool is empty."""
    run = taken(workload).submit().queued("").reserve("dws", check="Ready", said="the provisioning request is not needed").admit("dws")
    run.submit(status="Running").pod("counter-0-x7k2p", node="", pool="", phase="Pending", **annotations)
    run.pod("counter-0-x7k2p", node="", pool="", phase="Pending", reason="Unschedulable", **annotations)
    return waited_in_vain(run)


def kept_its_cluster(workload: Workload, *left: str) -> ClusterRun:
    """The RayJob is complete and its workload finished, and 45 s later all is there."""
    run = ClusterRun(workload).submit(object_kind="RayJob", status="").queued("").admit("on-demand", head="default-cpu")
    run.pod("counter-0-head", role="head", rank=-1, node="node-0", pool="default-pool").pod("counter-0-hosts-worker")
    run.attempt(0).begin().steps(1, workload.steps).done().exit(0, retried=False)
    run.submit(object_kind="RayJob", status="Complete", job_status="SUCCEEDED").end_workload()
    for what in left or ("none",):
        run.left(what, "counter-0-h4mzd", "ready")
    run.finish()
    return run


def found_on_demand_free(workload: Workload) -> ClusterRun:
    """Nobody asks DWS for anything."""
    run = ClusterRun(workload).submit().queued("").admit("on-demand").node().attempt(0).pod()
    run.begin().steps(1, workload.steps).done().exit(0, retried=False)
    run.submit(status="Complete").end_workload().left().finish()
    return run


TOLD: dict[str, Callable[[Workload], ClusterRun]] = {
    "consumes-provisioning": provisioned_gpus,
    "leaves-nothing": lambda workload: kept_its_cluster(workload, "ray-cluster", "pod", "pod"),
    "landed": found_on_demand_free,
}


def judged(trial: ClusterTrial, run: ClusterRun) -> str:
    return mistaken(trial, judge(trial.scenario, run.history(), None))


@pytest.mark.parametrize("promise", TOLD)
def test_what_is_wrong_is_caught_in_the_history_that_it_leaves(promise: str) -> None:
    trial = TRIALS[promise]

    assert judged(trial, TOLD[promise](trial.scenario.workload)) == ""


def test_a_host_that_waits_with_both_annotations_is_not_accused() -> None:
    trial = TRIALS["consumes-provisioning"]
    tied = {"provisioning_request": REQUEST, "provisioning_class": CLASS}

    assert judged(trial, provisioned_gpus(trial.scenario.workload, **tied)) == "consumes-provisioning is not invalid"


def test_a_rayjob_that_takes_its_cluster_down_is_not_accused() -> None:
    trial = TRIALS["leaves-nothing"]

    assert judged(trial, kept_its_cluster(trial.scenario.workload)) == "the verdict is valid, and must be invalid"


def test_a_script_that_was_played_has_landed() -> None:
    trial = TRIALS["landed"]
    asked = ClusterRun(trial.scenario.workload).submit().queued().reserve("dws").provisioning(condition("Accepted")).close("deadline")
    landed, *_ = judge(trial.scenario, asked.history(), None).findings

    assert (landed.checker, landed.outcome) == ("landed", Outcome.VALID)


NEVER_ANSWERED = CATALOGUE["a-request-that-is-never-answered-leaves-the-job-pending"]


@pytest.mark.parametrize(("watched_s", "outcome"), [(0.5, Outcome.UNKNOWN), (19.0, Outcome.UNKNOWN), (20.0, Outcome.VALID)])
def test_that_nothing_comes_of_a_request_is_proved_by_watching_it(watched_s: float, outcome: Outcome) -> None:
    run = taken(NEVER_ANSWERED.workload).submit().queued("").reserve("dws").provisioning(condition("Accepted")).watch(watched_s)
    ended_s = run.t_s
    run.heal("on-demand-taken").close("deadline", ended_s=ended_s)

    assert judge(NEVER_ANSWERED, run.history(), None).outcome is outcome
