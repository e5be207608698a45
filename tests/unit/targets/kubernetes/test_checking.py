"""What a scenario asks for and the cluster does not have is refused before anything is waited for; what is wrong by intent is not."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, UnknownNameError
from harness.kind import DEFAULT_TOPOLOGY, Topology
from harness.scenario import Cluster, Injection, Scenario, Workload
from harness.scenario.cluster_faults import ClusterFault, ForgetImage, LosePool, LowerQuota, OccupyCapacity
from harness.scenario.expectations import AdmittedTo, Completes
from harness.scenario.triggers import AtSubmission
from harness.targets.kubernetes.checking import check_asked, check_names
from harness.targets.kubernetes.manifest_files import guide_queues, queues_of
from scenarios import CATALOGUE
from tests.detection.cluster_trials import CLUSTER_TRIALS

ROOT = Path(__file__).resolve().parents[4]
SCENARIOS = [*CATALOGUE.values(), *(trial.scenario for trial in CLUSTER_TRIALS)]


def launch_of(cluster: Cluster) -> Launch:
    return Launch(
        run_id="r",
        job="job",
        command=("job",),
        directory=ROOT,
        environment={},
        checkpoint_dir=ROOT,
        logs_dir=ROOT,
        root=ROOT,
        cluster=cluster,
    )


def scenario_of(*faults: ClusterFault, flavors: tuple[str, ...] = ()) -> Scenario:
    injections = tuple(Injection(fault=fault, at=AtSubmission()) for fault in faults)
    expects = (Completes(), AdmittedTo(flavors=(flavors,))) if flavors else (Completes(),)
    return Scenario(name="a-b", why="x", workload=Workload(name="job", command=("job",)), injections=injections, expects=expects)


@pytest.mark.parametrize(
    ("cluster", "field", "problem"),
    [
        (Cluster(on_demand_nodes=99), "cluster.on_demand_nodes", "it is 99, and on-demand-pool has 2 nodes; write at most 2, or -1"),
        (Cluster(chips=1000), "cluster.chips", "it is 1000, and no node of the cluster has more than 8"),
        (Cluster(priority="high"), "cluster.priority", "WorkloadPriorityClass high is not there; there is none; name one of these, or"),
    ],
)
def test_a_launch_that_asks_for_more_than_there_is_is_refused(cluster: Cluster, field: str, problem: str) -> None:
    launch = launch_of(cluster)

    with pytest.raises(InvalidDocumentError) as caught:
        check_asked(launch, guide_queues(), DEFAULT_TOPOLOGY)

    assert str(caught.value).startswith(f"job: {field}: {problem}")


@pytest.mark.parametrize("cluster", [Cluster(on_demand_nodes=2, chips=8), Cluster(on_demand_nodes=0), Cluster(on_demand_nodes=-1)])
def test_a_launch_that_asks_for_what_there_is_is_taken(cluster: Cluster) -> None:
    check_asked(launch_of(cluster), guide_queues(), DEFAULT_TOPOLOGY)


@pytest.mark.parametrize("missing", ["on-demand-pool", "dws-pool"])
def test_a_cluster_without_a_pool_that_is_provisioned_is_refused(missing: str) -> None:
    topology = Topology(pools=tuple(pool for pool in DEFAULT_TOPOLOGY.pools if pool.name != missing))

    with pytest.raises(UnknownNameError, match=f"no node pool of the cluster is named '{missing}'"):
        check_asked(launch_of(Cluster()), guide_queues(), topology)


@pytest.mark.parametrize(
    ("scenario", "field", "problem"),
    [
        (
            scenario_of(LosePool(pool="pool-9")),
            "injections[0].fault.pool",
            "node pool pool-9 is not there; there is default-pool, dws-pool, on-",
        ),
        (scenario_of(LosePool(), ForgetImage(pool="x")), "injections[1].fault.pool", "node pool x is not there"),
        (
            scenario_of(LowerQuota(flavor="spot")),
            "injections[0].fault.flavor",
            "flavor with chips spot is not there; there is default-cpu, dws,",
        ),
        (scenario_of(OccupyCapacity(flavor="spot")), "injections[0].fault.flavor", "flavor with chips spot is not there"),
        (scenario_of(flavors=("on-demand", "spot")), "expects[1].flavors", "flavor spot is not there"),
    ],
)
def test_what_a_scenario_names_and_the_cluster_does_not_have_is_refused(scenario: Scenario, field: str, problem: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        check_names(scenario, guide_queues(), DEFAULT_TOPOLOGY)

    assert str(caught.value).startswith(f"a-b: {field}: {problem}")


def test_where_a_run_brings_no_cluster_queue_nothing_is_known_of_its_flavors() -> None:
    check_names(scenario_of(LowerQuota(flavor="spot")), [], DEFAULT_TOPOLOGY)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_catalogue_and_what_is_wrong_by_intent_stay_possible(scenario: Scenario) -> None:
    launch = launch_of(scenario.cluster)
    queues = queues_of(launch)

    check_asked(launch, queues, DEFAULT_TOPOLOGY)
    check_names(scenario, queues, DEFAULT_TOPOLOGY)
