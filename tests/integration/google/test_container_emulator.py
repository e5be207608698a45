"""Kubernetes Engine spoken with its unmodified client, on a clock that only the test moves."""

import google.api_core.exceptions as failures
import grpc
import pytest
from google.cloud import container_v1
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from google.protobuf.duration_pb2 import Duration

from harness.clock import ManualClock
from harness.emulator.compute.service import ComputeService
from harness.emulator.container.compute_groups import ComputeGroups
from harness.emulator.container.durations import Durations
from harness.emulator.container.groups import NamedInstances
from harness.emulator.container.names import Name
from harness.emulator.container.service import ContainerService
from harness.emulator.failures import ApiError
from harness.emulator.injection import InjectedFault
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.operations import Operations
from harness.emulator.project import Projects, ProjectState
from harness.emulator.wire.servers import Servers
from harness.emulator.world import World

PARENT = "projects/p/locations/us-east5-b"
CLUSTER = f"{PARENT}/clusters/train"
DONE = container_v1.Operation.Status.DONE
Pool = container_v1.NodePool.Status
Cluster = container_v1.Cluster.Status
Code = container_v1.StatusCondition.Code
GUIDE_B = {
    "name": "dws-pool",
    "initial_node_count": 0,
    "config": {"machine_type": "ct6e-standard-4t", "flex_start": True, "max_run_duration": Duration(seconds=600)},
    "autoscaling": {"enabled": True, "total_max_node_count": 4},
    "queued_provisioning": {"enabled": True},
    "placement_policy": {"type_": "COMPACT", "tpu_topology": "4x4"},
}


class NoBuckets:
    def mount(self, bucket, below=""):
        raise AssertionError(bucket)


class Bench:
    """The service, its clock, and a client."""

    def __init__(self, root, channel_of):
        self.clock = ManualClock()
        self.project = ProjectState(name="p", number=7)
        self.world = World(
            clock=self.clock,
            root=root,
            projects=Projects([self.project]),
            log=LogEntryStore(self.clock),
            buckets=NoBuckets(),
            operations=Operations(self.clock),
        )
        self.groups = self.make_groups()
        self.service = ContainerService(self.world, self.groups, Durations(create_pool_s=60, resize_s=30))
        self.servers = Servers(self.world, [self.service, *self.others()])
        self.client = container_v1.ClusterManagerClient(
            transport=ClusterManagerGrpcTransport(channel=channel_of(self.servers.endpoints.grpc))
        )

    def make_groups(self):
        return NamedInstances()

    def others(self):
        return []

    def finish(self, operation):
        """The operation when it is done."""
        assert operation.status != DONE
        self.clock.advance(100)
        done = self.operation(operation)
        assert done.status == DONE
        return done

    def operation(self, operation):
        return self.client.get_operation(name=f"{PARENT}/operations/{operation.name}")

    def create_cluster(self, **fields):
        cluster = {"name": "train", "initial_node_count": 1, **fields}
        return self.finish(self.client.create_cluster(parent=PARENT, cluster=cluster))

    def create_pool(self, **fields):
        pool = {"name": "on-demand-pool", "initial_node_count": 4, "config": {"machine_type": "ct6e-standard-4t"}, **fields}
        return self.client.create_node_pool(parent=CLUSTER, node_pool=pool)

    def pool(self, name="on-demand-pool"):
        return self.client.get_node_pool(name=f"{CLUSTER}/nodePools/{name}")

    def resize(self, count, name="on-demand-pool"):
        return self.client.set_node_pool_size({"name": f"{CLUSTER}/nodePools/{name}", "node_count": count})

    def nodes(self):
        return self.client.get_cluster(name=CLUSTER).current_node_count


class ComputeBench(Bench):
    """The same over instances of Compute Engine."""

    def make_groups(self):
        self.compute = ComputeService(self.world)
        return ComputeGroups(self.world, self.compute.engine)

    def others(self):
        return [self.compute]


@pytest.fixture
def channel_of():
    channels = []

    def make(address):
        channels.append(grpc.insecure_channel(address))
        return channels[-1]

    yield make
    for channel in channels:
        channel.close()


@pytest.fixture(params=[Bench, ComputeBench], ids=["alone", "over-compute"])
def bench(request, tmp_path, channel_of):
    bench = request.param(tmp_path, channel_of)
    with bench.servers:
        yield bench


@pytest.fixture
def alone(tmp_path, channel_of):
    bench = Bench(tmp_path, channel_of)
    with bench.servers:
        yield bench


@pytest.fixture
def over_compute(tmp_path, channel_of):
    bench = ComputeBench(tmp_path, channel_of)
    with bench.servers:
        yield bench


def test_a_cluster_comes_up_with_its_pool_and_goes(bench):
    operation = bench.client.create_cluster(parent=PARENT, cluster={"name": "train", "initial_node_count": 2})
    assert operation.operation_type == container_v1.Operation.Type.CREATE_CLUSTER
    assert bench.client.get_cluster(name=CLUSTER).status == Cluster.PROVISIONING
    bench.finish(operation)
    cluster = bench.client.get_cluster(name=CLUSTER)
    assert (cluster.status, cluster.current_node_count) == (Cluster.RUNNING, 2)
    assert [(pool.name, pool.status) for pool in cluster.node_pools] == [("default-pool", Pool.RUNNING)]
    assert [found.name for found in bench.client.list_clusters(parent="projects/p/locations/-").clusters] == ["train"]
    operation = bench.client.delete_cluster(name=CLUSTER)
    assert bench.client.get_cluster(name=CLUSTER).status == Cluster.STOPPING
    bench.finish(operation)
    assert bench.client.list_clusters(parent=PARENT).clusters == []


def test_a_pool_is_made_resized_to_zero_and_back_and_deleted(bench):
    bench.create_cluster()
    operation = bench.create_pool()
    assert bench.pool().status == Pool.PROVISIONING
    assert bench.client.get_cluster(name=CLUSTER).status == Cluster.RECONCILING
    bench.finish(operation)
    before = bench.pool()
    assert (before.status, bench.nodes()) == (Pool.RUNNING, 5)
    operation = bench.resize(0)
    assert bench.pool().status == Pool.RECONCILING
    bench.finish(operation)
    bench.clock.advance(1000)
    assert (bench.pool().initial_node_count, bench.nodes()) == (0, 1)
    bench.finish(bench.resize(4))
    assert (bench.pool(), bench.nodes()) == (before, 5)
    operation = bench.client.delete_node_pool(name=f"{CLUSTER}/nodePools/on-demand-pool")
    assert bench.pool().status == Pool.STOPPING
    bench.finish(operation)
    with pytest.raises(failures.NotFound, match=r"Not found: projects/p/zones/us-east5-b/clusters/train/nodePools/on-demand-pool\."):
        bench.pool()


def test_one_operation_at_a_time_works_on_a_cluster(bench):
    bench.create_cluster()
    running = bench.create_pool()
    for call in (
        lambda: bench.create_pool(name="other"),
        lambda: bench.resize(1, "default-pool"),
        lambda: bench.client.delete_cluster(name=CLUSTER),
    ):
        with pytest.raises(failures.FailedPrecondition, match=rf"Cluster is running incompatible operation {running.name}\.") as caught:
            call()
        assert (caught.value.reason, caught.value.domain) == ("CLUSTER_ALREADY_HAS_OPERATION", "container.googleapis.com")
    bench.finish(running)
    bench.finish(bench.resize(1))


def test_a_zone_without_machines_leaves_a_pool_that_says_so_and_fills_up_when_there_are_some(bench):
    bench.create_cluster()
    stock = bench.groups if isinstance(bench.groups, NamedInstances) else bench.compute.engine.instances.stock
    stock.exhaust("us-east5-b")
    done = bench.finish(bench.create_pool())
    assert (done.error.code, done.nodepool_conditions[0].code) == (8, Code.GCE_STOCKOUT)
    assert "[GCE_STOCKOUT]: Instance 'gke-train-on-demand-pool-" in done.status_message
    assert "does not have enough resources available to fulfill the request" in done.status_message
    pool = bench.pool()
    assert (pool.status, pool.conditions[0].code, pool.conditions[0].canonical_code) == (Pool.ERROR, Code.GCE_STOCKOUT, 8)
    assert bench.nodes() == 1
    assert bench.client.get_cluster(name=CLUSTER).conditions[0].code == Code.GCE_STOCKOUT
    stock.refill("us-east5-b")
    pool = bench.pool()
    assert (pool.status, list(pool.conditions), pool.status_message) == (Pool.RUNNING, [], "")
    assert bench.nodes() == 5


def test_a_quota_that_does_not_suffice_is_refused_at_once(bench):
    bench.create_cluster()
    bench.project.quotas["CPUS"] = 20
    said = r"Insufficient regional quota to satisfy request: resource \"CPUS\": request requires '32.0' and is short '12.0'"
    with pytest.raises(failures.PermissionDenied, match=said):
        bench.create_pool(config={"machine_type": "n2-standard-8"})
    with pytest.raises(failures.NotFound):
        bench.pool()


def test_guide_b_s_pool_is_filled_by_a_request_and_emptied_at_the_end_of_its_life(alone):
    alone.create_cluster()
    alone.finish(alone.create_pool(**GUIDE_B))
    pool = alone.pool("dws-pool")
    assert (pool.queued_provisioning.enabled, pool.config.flex_start, pool.config.max_run_duration.total_seconds()) == (True, True, 600)
    with pytest.raises(failures.InvalidArgument, match="provisioning requests"):
        alone.resize(4, "dws-pool")
    alone.service.engine.provision(alone.service.engine.registry.pool(name_of("dws-pool")), 4)
    assert alone.nodes() == 5
    alone.clock.advance(599)
    assert alone.nodes() == 5
    alone.clock.advance(1)
    assert alone.nodes() == 1


def test_a_request_that_cannot_be_filled_makes_no_node_at_all(alone):
    alone.create_cluster()
    alone.finish(alone.create_pool(**GUIDE_B))
    alone.groups.exhaust("us-east5-b")
    with pytest.raises(ApiError, match="GCE_STOCKOUT"):
        alone.service.engine.provision(alone.service.engine.registry.pool(name_of("dws-pool")), 4)
    alone.groups.refill("us-east5-b")
    assert alone.nodes() == 1
    assert alone.pool("dws-pool").status == Pool.RUNNING


def name_of(pool):
    return Name(project="p", location="us-east5-b", cluster="train", pool=pool)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"autoscaling": {}}, "autoscaling must be enabled"),
        ({"initial_node_count": 1}, "initial_node_count must be 0"),
        ({"config": {"flex_start": True, "spot": True}}, "spot or preemptible"),
        ({"config": {"max_run_duration": Duration(seconds=8 * 86_400)}}, "at most 604800s"),
        ({"config": {"reservation_affinity": {"consume_reservation_type": "ANY_RESERVATION"}}}, "NO_RESERVATION"),
        ({"name": "Dws"}, "small letters"),
        ({"autoscaling": {"enabled": True}}, "max_node_count"),
        ({"autoscaling": {"enabled": True, "min_node_count": 3, "max_node_count": 2}}, "above the greatest"),
        ({"autoscaling": {"enabled": True, "max_node_count": 2, "total_max_node_count": 2}}, "not both"),
    ],
)
def test_a_queued_pool_that_cannot_be_is_refused(alone, changed, said):
    alone.create_cluster()
    with pytest.raises(failures.InvalidArgument, match=said):
        alone.create_pool(**{**GUIDE_B, **changed})


def test_labels_are_replaced_by_who_has_seen_them(alone):
    alone.create_cluster(resource_labels={"a": "1"})
    seen = alone.client.get_cluster(name=CLUSTER)
    asked = {"name": CLUSTER, "resource_labels": {"harness-chaos": "allowed"}, "label_fingerprint": seen.label_fingerprint}
    alone.finish(alone.client.set_labels(asked))
    assert dict(alone.client.get_cluster(name=CLUSTER).resource_labels) == {"harness-chaos": "allowed"}
    with pytest.raises(failures.FailedPrecondition, match="fingerprint"):
        alone.client.set_labels(asked)


def test_autoscaling_and_settings_of_a_pool_are_changed(alone):
    alone.create_cluster()
    alone.finish(alone.create_pool())
    name = f"{CLUSTER}/nodePools/on-demand-pool"
    alone.finish(alone.client.set_node_pool_autoscaling({"name": name, "autoscaling": {"enabled": True, "max_node_count": 4}}))
    seen = alone.pool()
    update = {"name": name, "labels": {"labels": {"a": "b"}}, "flex_start": True, "etag": seen.etag}
    alone.finish(alone.client.update_node_pool(update))
    pool = alone.pool()
    assert (pool.autoscaling.max_node_count, dict(pool.config.labels), pool.config.flex_start) == (4, {"a": "b"}, True)
    with pytest.raises(failures.Aborted, match="etag"):
        alone.client.update_node_pool(update)


def test_an_upgrade_can_be_cancelled_and_other_operations_cannot(alone):
    alone.create_cluster()
    making = alone.create_pool()
    with pytest.raises(failures.FailedPrecondition, match=f"Operation {making.name} cannot be cancelled"):
        alone.client.cancel_operation(name=f"{PARENT}/operations/{making.name}")
    alone.finish(making)
    upgrading = alone.client.update_node_pool({"name": f"{CLUSTER}/nodePools/on-demand-pool", "machine_type": "n2-standard-8"})
    alone.client.cancel_operation(name=f"{PARENT}/operations/{upgrading.name}")
    ended = alone.operation(upgrading)
    assert (ended.status, ended.error.code) == (DONE, 1)
    assert (alone.pool().status, alone.pool().config.machine_type) == (Pool.RUNNING, "ct6e-standard-4t")
    alone.finish(alone.resize(1))


def test_operations_are_listed_with_what_they_are_about(alone):
    alone.create_cluster()
    making = alone.create_pool()
    found = {operation.name: operation for operation in alone.client.list_operations(parent="projects/p/locations/-").operations}
    assert len(found) == 2
    assert found[making.name] == alone.operation(making)
    assert making.target_link.endswith("projects/p/zones/us-east5-b/clusters/train/nodePools/on-demand-pool")
    with pytest.raises(failures.NotFound):
        alone.client.get_operation(name=f"{PARENT}/operations/none")


def test_the_older_way_to_name_things_names_the_same(alone):
    alone.create_cluster()
    old = {"project_id": "p", "zone": "us-east5-b", "cluster_id": "train"}
    assert alone.client.get_cluster(old) == alone.client.get_cluster(name=CLUSTER)
    assert alone.client.get_node_pool({**old, "node_pool_id": "default-pool"}) == alone.pool("default-pool")


def test_what_is_there_already_and_what_is_not(alone):
    alone.create_cluster()
    with pytest.raises(failures.AlreadyExists, match=r"Already exists: projects/p/zones/us-east5-b/clusters/train\."):
        alone.client.create_cluster(parent=PARENT, cluster={"name": "train"})
    with pytest.raises(failures.AlreadyExists):
        alone.create_pool(name="default-pool")
    with pytest.raises(failures.NotFound, match=r"Not found: projects/p/zones/us-east5-b/clusters/other\."):
        alone.client.get_cluster(name=f"{PARENT}/clusters/other")
    with pytest.raises(failures.InvalidArgument):
        alone.client.get_cluster(name="train")
    with pytest.raises(failures.InvalidArgument):
        alone.client.get_cluster()


def test_a_permission_that_is_missing_is_named(alone):
    alone.create_cluster()
    alone.project.granted = frozenset({"container.clusters.get"})
    assert alone.client.get_cluster(name=CLUSTER).name == "train"
    said = r'Required "container\.clusters\.update" permission\(s\) for "projects/p/zones/us-east5-b/clusters/train/nodePools/default-pool"'
    with pytest.raises(failures.PermissionDenied, match=said):
        alone.resize(0, "default-pool")


def test_a_regional_cluster_has_its_nodes_in_three_zones(alone):
    parent = "projects/p/locations/us-east5"
    operation = alone.client.create_cluster(parent=parent, cluster={"name": "wide", "initial_node_count": 2})
    assert operation.target_link.endswith("projects/p/locations/us-east5/clusters/wide")
    alone.clock.advance(10)
    cluster = alone.client.get_cluster(name=f"{parent}/clusters/wide")
    assert (cluster.current_node_count, len(cluster.instance_group_urls)) == (6, 3)


def test_reads_are_no_writes_and_faults_strike(alone):
    alone.create_cluster()
    writes = len(alone.world.calls.writes())
    alone.client.get_cluster(name=CLUSTER)
    alone.client.list_node_pools(parent=CLUSTER)
    assert len(alone.world.calls.writes()) == writes
    alone.world.injections.add(InjectedFault(method="google.container.v1.ClusterManager/SetNodePoolSize", error=ApiError("ABORTED", "no")))
    with pytest.raises(failures.Aborted, match="no"):
        alone.resize(0, "default-pool")
    assert alone.world.calls.writes()[-1].resource == "projects/p/zones/us-east5-b/clusters/train/nodePools/default-pool"
    assert alone.nodes() == 1


def test_a_node_that_is_gone_is_made_anew(alone):
    alone.create_cluster()
    alone.finish(alone.create_pool())
    (group,) = alone.service.engine.registry.pool(name_of("on-demand-pool")).groups()
    before = alone.groups.instances(group)
    alone.groups.lose(min(before))
    assert len(alone.groups.instances(group)) == 3
    assert alone.nodes() == 5
    assert alone.groups.instances(group) == before


def test_nodes_are_instances_of_compute_engine_and_one_deleted_there_comes_back(over_compute):
    bench = over_compute
    bench.create_cluster()
    bench.finish(bench.create_pool())
    instances = [found for found in bench.compute.engine.instances if "on-demand-pool" in found.name]
    assert len(instances) == 4
    assert {found.labels["goog-k8s-cluster-name"] for found in instances} == {"train"}
    assert {found.described.machine_type.rpartition("/")[2] for found in instances} == {"ct6e-standard-4t"}
    bench.clock.advance(10_000)
    bench.compute.engine.delete(instances[0])
    bench.clock.advance(10_000)
    assert bench.nodes() == 5
    assert bench.compute.engine.instances.find(instances[0].zone, instances[0].name) is not instances[0]


def test_a_node_stopped_there_is_started_again(over_compute):
    bench = over_compute
    bench.create_cluster()
    bench.clock.advance(10_000)
    (node,) = bench.compute.engine.instances
    bench.compute.engine.stop(node)
    bench.clock.advance(10_000)
    assert bench.compute.engine.instances.find(node.zone, node.name).stage.status == "TERMINATED"
    bench.client.get_cluster(name=CLUSTER)
    bench.clock.advance(10_000)
    assert bench.compute.engine.instances.find(node.zone, node.name).stage.status == "RUNNING"
    assert bench.nodes() == 1
