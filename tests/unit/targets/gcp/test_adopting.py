"""A cluster is adopted when its owner allows it, it runs, and it says who its API server is."""

import base64
from types import SimpleNamespace

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import compute_v1, container_v1

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError
from harness.targets.gcp.adopting import adopt
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.failures import PermissionMissingError, ResourceMissingError
from harness.targets.gcp.guard import NotAllowedError
from harness.targets.gcp.place import Place
from harness.targets.gcp.pool_sizes import PoolSizes, require_resizable
from harness.undo import ResizeNodePool, RestoreAutoscaling

PLACE = Place(project="our-project", region="us-east5", bucket="our-bucket", job="", cluster="tpu", zone="us-east5-b")
NAME = "projects/our-project/locations/us-east5-b/clusters/tpu"
AUTHORITY = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
ALLOWED = {"harness-chaos": "allowed"}


def cluster_of(**fields: object) -> container_v1.Cluster:
    base = {
        "id": "uid-1",
        "status": "RUNNING",
        "endpoint": "203.0.113.7",
        "resource_labels": ALLOWED,
        "master_auth": {"cluster_ca_certificate": base64.b64encode(AUTHORITY.encode()).decode()},
        "node_pools": [
            {"name": "on-demand-pool", "locations": ["us-east5-a", "us-east5-b"], "config": {"resource_labels": ALLOWED}},
            {"name": "default-pool"},
            {"name": "dws-pool", "config": {"resource_labels": ALLOWED}, "queued_provisioning": {"enabled": True}},
        ],
    }
    return container_v1.Cluster({**base, **fields})


class Engine:
    """Kubernetes Engine with one cluster, or an error."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def get_cluster(self, *, request, retry, timeout):
        assert request == {"name": NAME}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def get_node_pool(self, *, request, retry, timeout):
        return next(pool for pool in self.answer.node_pools if request["name"].endswith(f"/nodePools/{pool.name}"))


def adopted(answer: object, **options: object):
    return adopt(SimpleNamespace(clusters=Engine(answer)), Caller(clock=ManualClock()), PLACE, **options)


def test_it_is_known_by_address_authority_and_uid():
    found = adopted(cluster_of())
    assert (found.name, found.uid, found.address, found.authority) == (NAME, "uid-1", "https://203.0.113.7", AUTHORITY)
    assert {pool.name: (pool.is_allowed, pool.is_queued, pool.zones) for pool in found.pools.values()} == {
        "on-demand-pool": (True, False, 2),
        "default-pool": (False, False, 1),
        "dws-pool": (True, True, 1),
    }


@pytest.mark.parametrize("is_on", [True, False])
def test_whether_pods_mount_buckets_is_the_add_on(is_on):
    addons = {"gcs_fuse_csi_driver_config": {"enabled": is_on}}
    assert adopted(cluster_of(addons_config=addons)).mounts_buckets is is_on


def test_one_whose_owner_does_not_allow_faults_is_adopted_for_cleaning_alone():
    with pytest.raises(NotAllowedError, match="not labelled harness-chaos=allowed"):
        adopted(cluster_of(resource_labels={"harness-chaos": "no"}))
    assert adopted(cluster_of(resource_labels={}), may_be_hurt=False).uid == "uid-1"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "STOPPING"}, "is STOPPING"),
        ({"endpoint": ""}, "says no address"),
        ({"master_auth": {}}, "no certificate"),
        ({"master_auth": {"cluster_ca_certificate": "!!"}}, "no certificate"),
        ({"master_auth": {"cluster_ca_certificate": base64.b64encode(b"something else").decode()}}, "no certificate"),
    ],
)
def test_one_that_cannot_be_spoken_with_is_told_so(fields, why):
    with pytest.raises(TargetUnavailableError, match=why):
        adopted(cluster_of(**fields))


@pytest.mark.parametrize(("code", "kind"), [("NOT_FOUND", ResourceMissingError), ("PERMISSION_DENIED", PermissionMissingError)])
def test_what_the_service_refuses_is_told_as_it_says(code, kind):
    with pytest.raises(kind, match="as told"):
        adopted(exceptions.from_grpc_status(grpc.StatusCode[code], "as told"))


class Machines:
    """Compute Engine with machines by zone, of one pool, and some of another cluster's pool of that name."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def list(self, *, request, retry, timeout):
        assert request.filter == 'labels.goog-k8s-node-pool-name="p"'
        ours, theirs = ({"goog-k8s-cluster-name": name, "goog-k8s-node-pool-name": "p"} for name in ("tpu", "another"))
        items = [compute_v1.Instance(labels=ours, status="RUNNING") for _ in range(self.counts[request.zone])]
        items += [compute_v1.Instance(labels=theirs, status="RUNNING"), compute_v1.Instance(labels=ours, status="STOPPING")]
        return SimpleNamespace(pages=iter([SimpleNamespace(items=items, next_page_token="")]))


def sizes_of(found: container_v1.Cluster, counts: dict[str, int]) -> PoolSizes:
    clients = SimpleNamespace(clusters=Engine(found), instances=Machines(counts))
    return PoolSizes(clients, Caller(clock=ManualClock()), "our-project")


def test_what_a_pool_has_is_known_before_it_is_changed():
    scaling = {"enabled": True, "max_node_count": 4, "location_policy": "ANY"}
    pool = {"name": "p", "locations": ["a", "b"], "config": {"resource_labels": ALLOWED}, "autoscaling": scaling}
    found = cluster_of(node_pools=[pool])
    full = f"{NAME}/nodePools/p"
    assert sizes_of(found, {"a": 2, "b": 2}).saved(adopted(found).pools["p"]) == (
        ResizeNodePool(name=full, node_count=2, wrote=0),
        RestoreAutoscaling(name=full, enabled=True, max_node_count=4, location_policy="ANY", is_off_by_fault=True),
    )


def test_a_pool_that_could_not_be_given_back_as_it_is_is_not_emptied():
    found = cluster_of(node_pools=[{"name": "p", "locations": ["a", "b"], "config": {"resource_labels": ALLOWED}}])
    with pytest.raises(LookupError, match="has 3 nodes in a, 0 in b: Kubernetes Engine gives all zones"):
        sizes_of(found, {"a": 3, "b": 0}).saved(adopted(found).pools["p"])


def test_a_pool_that_gets_its_nodes_by_requests_or_is_not_labelled_is_not_resized():
    pools = adopted(cluster_of()).pools
    require_resizable(pools["on-demand-pool"])
    with pytest.raises(LookupError, match="provisioning requests"):
        require_resizable(pools["dws-pool"])
    with pytest.raises(LookupError, match="default-pool is not labelled"):
        require_resizable(pools["default-pool"])
