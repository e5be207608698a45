"""Undos and sweeps of node pools and machines, with Google's own clients against the emulator, on a clock that waiting moves."""

import random
import threading
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.cloud import compute_v1

from harness.clock import SystemClock
from harness.emulator import Emulator
from harness.errors import UndoError
from harness.targets.gcp.adopting import look_up_pool
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.leftover_search import Leftover
from harness.targets.gcp.place import Place
from harness.targets.gcp.pool_sizes import PoolSizes
from harness.targets.gcp.resolving import Resolver
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.sweeping import Became, Sweep
from harness.targets.gcp.undoing import ProjectRestorer
from harness.undo import DeleteInstance, DeleteNodePool, ResizeNodePool

PROJECT, ZONE = "our-project", "us-east5-b"
PARENT = f"projects/{PROJECT}/locations/{ZONE}"
CLUSTER = f"{PARENT}/clusters/tpu"
POOL = f"{CLUSTER}/nodePools/dws-pool"
PLACE = Place(project=PROJECT, region="us-east5", bucket="our-bucket", job="train", cluster="tpu", zone=ZONE)
ALLOWED = {"harness-chaos": "allowed"}


class Hastened:
    """The system's clock; whoever sleeps moves it ahead instead."""

    def __init__(self) -> None:
        self._clock, self._ahead_s, self._guard = SystemClock(), 0.0, threading.Lock()

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() + self._ahead_s

    def utc(self) -> datetime:
        return self._clock.utc() + timedelta(seconds=self._ahead_s)

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(0.002)
        with self._guard:
            self._ahead_s += seconds


@pytest.fixture
def clock() -> Hastened:
    return Hastened()


@pytest.fixture
def emulator(tmp_path: Path, clock: Hastened):
    with Emulator(tmp_path, clock=clock, projects=[PROJECT], buckets=[PLACE.bucket]) as running:
        yield running


@pytest.fixture
def clients(emulator: Emulator):
    with closing(connect(PROJECT, emulator.endpoints.environment(), Secrets())) as found:
        yield found


@pytest.fixture
def caller(clock: Hastened) -> Caller:
    return Caller(clock=clock, chance=random.Random(1))


def finish(clients: Clients, clock: Hastened, operation) -> None:
    for _ in range(1000):
        if clients.clusters.get_operation(name=f"{PARENT}/operations/{operation.name}").status.name == "DONE":
            return
        clock.sleep(10.0)
    pytest.fail("the operation does not end")


def make_pool(clients: Clients, clock: Hastened, name: str, labels: dict[str, str], nodes: int = 2) -> None:
    autoscaling = {"enabled": True, "total_max_node_count": 4, "location_policy": "ANY", "autoprovisioned": True}
    config = {"machine_type": "ct6e-standard-4t", "resource_labels": labels}
    pool = {"name": name, "initial_node_count": nodes, "config": config, "autoscaling": autoscaling}
    finish(clients, clock, clients.clusters.create_node_pool(parent=CLUSTER, node_pool=pool))


@pytest.fixture
def cluster(clients: Clients, clock: Hastened) -> None:
    wanted = {"name": "tpu", "initial_node_count": 1, "resource_labels": ALLOWED}
    finish(clients, clock, clients.clusters.create_cluster(parent=PARENT, cluster=wanted))
    make_pool(clients, clock, "dws-pool", ALLOWED)


def nodes_of(clients: Clients, pool: str) -> int:
    found = clients.instances.list(project=PROJECT, zone=ZONE)
    return sum(f"-{pool}-" in instance.name and instance.status != "STOPPING" for instance in found)


@pytest.mark.usefixtures("cluster")
def test_a_pool_that_was_taken_away_is_put_back_as_the_plan_had_seen_it(clients, caller, clock):
    before = clients.clusters.get_node_pool(name=POOL)
    saved = PoolSizes(clients, caller, PROJECT).saved(look_up_pool(clients, caller, POOL))
    finish(clients, clock, clients.clusters.set_node_pool_autoscaling({"name": POOL, "autoscaling": {"enabled": False}}))
    finish(clients, clock, clients.clusters.set_node_pool_size({"name": POOL, "node_count": 0}))
    assert nodes_of(clients, "dws-pool") == 0
    for _ in range(2):  # twice is harmless
        ProjectRestorer(clients, caller, PROJECT).restore(saved)
        assert nodes_of(clients, "dws-pool") == 2
        assert clients.clusters.get_node_pool(name=POOL).autoscaling == before.autoscaling


@pytest.mark.usefixtures("cluster")
def test_an_undo_waits_for_what_the_cluster_is_doing(clients, caller):
    clients.clusters.set_node_pool_size({"name": POOL, "node_count": 0})  # it goes on
    ProjectRestorer(clients, caller, PROJECT).restore((ResizeNodePool(name=POOL, node_count=3),))
    assert nodes_of(clients, "dws-pool") == 3


@pytest.mark.usefixtures("cluster")
def test_what_a_plan_says_of_a_cluster_is_what_it_is(clients, caller):
    resolved = Resolver(clients, caller, PLACE).resolve()
    pool = next(resource for resource in resolved.resources if resource.name == POOL)
    assert pool.facts["labels.harness-chaos"] == "allowed"
    assert pool.facts["machine_type"] == "ct6e-standard-4t"
    assert resolved.pool_sizes["dws-pool"] == 4


@pytest.mark.usefixtures("cluster")
def test_a_pool_that_its_autoscaler_had_grown_is_as_large_as_it_is(clients, caller, clock):
    finish(clients, clock, clients.clusters.set_node_pool_autoscaling({"name": POOL, "autoscaling": {"enabled": False}}))
    assert Resolver(clients, caller, PLACE).resolve().pool_sizes["dws-pool"] == 2
    for number in range(3):
        make_machine(clients, f"grown-{number}", {"goog-k8s-node-pool-name": "dws-pool", "goog-k8s-cluster-name": "tpu"})
    assert Resolver(clients, caller, PLACE).resolve().pool_sizes["dws-pool"] == 5


@pytest.mark.usefixtures("cluster")
def test_machines_of_a_cluster_of_the_same_name_elsewhere_are_not_the_pools(clients, caller):
    pool = look_up_pool(clients, caller, POOL)
    for number in range(3):  # of a regional cluster, whose pool is in this zone, too
        labels = {"goog-k8s-node-pool-name": "dws-pool", "goog-k8s-cluster-name": "tpu", "goog-k8s-cluster-location": PLACE.region}
        make_machine(clients, f"other-{number}", labels)
    size, _ = PoolSizes(clients, caller, PROJECT).saved(pool)
    assert size == ResizeNodePool(name=POOL, node_count=2, wrote=0)
    ProjectRestorer(clients, caller, PROJECT).restore((ResizeNodePool(name=POOL, node_count=0), size))
    assert nodes_of(clients, "dws-pool") == 2


def make_machine(clients: Clients, name: str, labels: dict[str, str]) -> None:
    disk = {"boot": True, "initialize_params": {"source_image": "projects/debian-cloud/global/images/family/debian-12"}}
    resource = compute_v1.Instance(
        name=name,
        machine_type=f"zones/{ZONE}/machineTypes/n2-standard-4",
        labels=labels,
        disks=[disk],
        network_interfaces=[{"network": "global/networks/default"}],
    )
    clients.instances.insert_unary(project=PROJECT, zone=ZONE, instance_resource=resource)


DEAD = "0123456789ab"


@pytest.mark.usefixtures("cluster")
def test_a_sweep_takes_pools_and_machines_of_known_runs_and_leaves_all_others(clients, caller, clock):
    make_pool(clients, clock, "placeholder-pool", ALLOWED | {"harness-run": DEAD}, nodes=1)
    make_machine(clients, "placeholder", ALLOWED | {"harness-run": DEAD})
    make_machine(clients, "mine", {"team": "vision"})
    make_machine(clients, "prod-db", {"harness-run": "ci-pipeline-42", "env": "production"})
    make_machine(clients, "of-no-owner", {"harness-run": DEAD})
    make_machine(clients, "of-another-run", ALLOWED | {"harness-run": "ba9876543210"})
    clock.sleep(600.0)
    done = [(left.kind, left.name.rpartition("/")[2], became) for left, _, became in swept(clients, caller)]
    assert sorted(done) == [
        ("instance", "of-another-run", Became.ALONE),
        ("instance", "of-no-owner", Became.ALONE),
        ("instance", "placeholder", Became.REMOVED),
        ("instance", "prod-db", Became.ALONE),
        ("node-pool", "placeholder-pool", Became.REMOVED),
    ]
    assert {pool.name for pool in clients.clusters.get_cluster(name=CLUSTER).node_pools} >= {"dws-pool"}
    names = {instance.name for instance in clients.instances.list(project=PROJECT, zone=ZONE)}
    assert names >= {"mine", "prod-db", "of-no-owner", "of-another-run"}
    assert "placeholder" not in names
    assert Became.REMOVED not in {became for _, _, became in swept(clients, caller)}


def swept(clients: Clients, caller: Caller) -> list[tuple[Leftover, str, Became]]:
    return list(Sweep(clients, caller, PLACE).sweep(known=frozenset({DEAD}), living=frozenset()))


@pytest.mark.usefixtures("cluster")
def test_an_undo_deletes_no_machine_that_its_owners_have_not_allowed(clients, caller, clock):
    make_machine(clients, "prod-db", {"harness-run": "ab12", "env": "production"})
    clock.sleep(600.0)
    with pytest.raises(UndoError, match="does not carry harness-chaos=allowed"):
        ProjectRestorer(clients, caller, PROJECT).restore((DeleteInstance(zone=ZONE, name="prod-db", run_id="ab12"),))
    assert clients.instances.get(project=PROJECT, zone=ZONE, instance="prod-db").name == "prod-db"


@pytest.mark.usefixtures("cluster")
def test_what_is_somebody_elses_is_left_alone(clients, caller, clock):
    make_machine(clients, "mine", {"team": "vision"})
    clock.sleep(600.0)
    actions = (DeleteNodePool(name=POOL, run_id="ab12"), DeleteInstance(zone=ZONE, name="mine", run_id="ab12"))
    with pytest.raises(UndoError) as caught:
        ProjectRestorer(clients, caller, PROJECT).restore(actions)
    assert str(caught.value).count("it is another's, and left alone") == 2
    assert nodes_of(clients, "dws-pool") == 2
    assert clients.instances.get(project=PROJECT, zone=ZONE, instance="mine").name == "mine"
