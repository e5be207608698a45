"""Undos on a project: what they do, what they leave alone, and that a cluster which is busy is waited for."""

from types import SimpleNamespace

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import compute_v1, container_v1

from harness.clock import ManualClock
from harness.errors import UndoError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.cluster_api import Answer, ClusterApi, path_of
from harness.targets.gcp.cluster_undoing import act
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.undoing import CLUSTER_S, ProjectRestorer
from harness.undo import (
    DeleteInstance,
    DeleteNodePool,
    DeleteObject,
    ResizeNodePool,
    RestoreAutoscaling,
    RestoreInCluster,
    RestoreProject,
    RestoreQuota,
    Uncordon,
    UndoJournal,
    restored_by,
)

CLUSTER = "projects/our-project/locations/us-east5-b/clusters/tpu"
POOL = f"{CLUSTER}/nodePools/dws-pool"
DONE = container_v1.Operation(name="operation-1", status=container_v1.Operation.Status.DONE)


def error(code: str, message: str = "as told") -> Exception:
    return exceptions.from_grpc_status(grpc.StatusCode[code], message)


class Clusters:
    """Kubernetes Engine with one pool, which refuses a while when it is busy."""

    def __init__(self, *, is_there: bool = True, labels: dict[str, str] | None = None, busy: int = 0) -> None:
        self.is_there, self.labels, self.busy = is_there, labels or {}, busy
        self.done: list[tuple[str, object]] = []
        self.autoscaling: dict[str, object] = {}
        self.status = "RUNNING"

    def _operate(self, method: str, request: dict[str, object]) -> container_v1.Operation:
        if not self.is_there:
            raise error("NOT_FOUND")
        if self.busy:
            self.busy -= 1
            raise error("FAILED_PRECONDITION", "Cluster is running incompatible operation operation-0.")
        self.done.append((method, request))
        return DONE

    def set_node_pool_size(self, *, request, retry, timeout):
        return self._operate("size", request)

    def set_node_pool_autoscaling(self, *, request, retry, timeout):
        return self._operate("autoscaling", request)

    def delete_node_pool(self, *, request, retry, timeout):
        found = self._operate("delete", request)
        self.is_there = False
        return found

    def get_node_pool(self, *, request, retry, timeout):
        if not self.is_there:
            raise error("NOT_FOUND")
        config = {"resource_labels": self.labels}
        return container_v1.NodePool(name="dws-pool", config=config, autoscaling=self.autoscaling, status=self.status)

    def get_operation(self, *, request, retry, timeout):
        assert request == {"name": "projects/our-project/locations/us-east5-b/operations/operation-1"}
        return DONE


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def restorer(clock: ManualClock, **clients: object) -> ProjectRestorer:
    return ProjectRestorer(SimpleNamespace(**clients), Caller(clock=clock), "our-project")


def test_a_pool_gets_its_size_and_its_autoscaling_back_in_that_order(clock):
    clusters = Clusters()
    autoscaling = RestoreAutoscaling(name=POOL, enabled=True, max_node_count=4, location_policy="ANY")
    said = restorer(clock, clusters=clusters).restore((ResizeNodePool(name=POOL, node_count=0), autoscaling))
    assert clusters.done == [
        ("size", {"name": POOL, "node_count": 0}),
        ("autoscaling", {"name": POOL, "autoscaling": {"enabled": True, "max_node_count": 4, "location_policy": "ANY"}}),
    ]
    assert said == f"node pool {POOL} has 0 nodes a zone; the autoscaling of node pool {POOL} is on as it was"


class PoolMachines:
    """Compute Engine with so many machines of the pool."""

    def __init__(self, count: int) -> None:
        self.count = count

    def list(self, *, request, retry, timeout):
        items = [compute_v1.Instance(labels={"goog-k8s-cluster-name": "tpu"}, status="RUNNING") for _ in range(self.count)]
        return SimpleNamespace(pages=iter([SimpleNamespace(items=items, next_page_token="")]))


@pytest.mark.parametrize(
    ("there", "is_resized", "said"),
    [(0, True, "has 4 nodes a zone"), (4, False, "has 4 nodes a zone"), (2, False, "somebody has resized it since, and it is left")],
)
def test_a_pool_is_resized_only_from_what_the_fault_has_made_of_it(clock, there, is_resized, said):
    clusters = Clusters()
    action = ResizeNodePool(name=POOL, node_count=4, wrote=0)
    assert said in restorer(clock, clusters=clusters, instances=PoolMachines(there)).restore((action,))
    assert [method for method, _ in clusters.done] == ["size"] * is_resized


@pytest.mark.parametrize(
    ("now", "is_set"),
    [
        ({}, True),
        ({"enabled": True, "max_node_count": 4}, False),
        ({"enabled": True, "max_node_count": 9}, False),
    ],
    ids=["as the fault has left it", "as it was", "as somebody has set it since"],
)
def test_autoscaling_that_somebody_has_set_since_is_told_and_left(clock, now, is_set):
    clusters = Clusters()
    clusters.autoscaling = now
    action = RestoreAutoscaling(name=POOL, enabled=True, max_node_count=4, is_off_by_fault=True)
    said = restorer(clock, clusters=clusters).restore((action,))
    assert [method for method, _ in clusters.done] == ["autoscaling"] * is_set
    assert ("somebody has set it since, and it is left" in said) is (now.get("max_node_count") == 9)


def test_a_pool_on_which_something_is_done_is_waited_for_before_it_is_counted(clock):
    clusters = Clusters()
    clusters.status = "RECONCILING"
    action = ResizeNodePool(name=POOL, node_count=4, wrote=0)
    with pytest.raises(UndoError, match="RECONCILING still"):
        restorer(clock, clusters=clusters, instances=PoolMachines(0)).restore((action,))
    assert clusters.done == []


def test_a_cluster_that_is_busy_is_waited_for(clock):
    clusters = Clusters(busy=20)
    restorer(clock, clusters=clusters).restore((ResizeNodePool(name=POOL, node_count=4),))
    assert len(clusters.done) == 1
    clusters.busy = 10**9
    with pytest.raises(UndoError, match="incompatible operation"):
        restorer(clock, clusters=clusters).restore((ResizeNodePool(name=POOL, node_count=4),))
    assert clock.monotonic_s() <= 2 * CLUSTER_S


def test_what_is_gone_needs_no_undo(clock):
    clusters = Clusters(is_there=False)
    actions = (
        ResizeNodePool(name=POOL, node_count=4),
        RestoreAutoscaling(name=POOL, enabled=False),
        ResizeNodePool(name=POOL, node_count=4, wrote=0),
        RestoreAutoscaling(name=POOL, enabled=False, is_off_by_fault=True),
        DeleteNodePool(name=POOL, run_id="ab12"),
    )
    assert restorer(clock, clusters=clusters).restore(actions).count("is gone") == 5


def test_a_pool_of_the_run_is_deleted_and_that_twice_is_harmless(clock):
    clusters = Clusters(labels={"harness-run": "ab12", "harness-chaos": "allowed"})
    for _ in range(2):
        assert restorer(clock, clusters=clusters).restore((DeleteNodePool(name=POOL, run_id="ab12"),)) == f"node pool {POOL} is gone"
    assert clusters.done == [("delete", {"name": POOL})]


@pytest.mark.parametrize("labels", [{}, {"harness-run": "ab12"}, {"harness-run": "cd34"}, {"harness-chaos": "allowed"}])
@pytest.mark.parametrize("run_id", ["ab12", ""])
def test_a_pool_of_somebody_else_is_not_deleted(clock, labels, run_id):
    clusters = Clusters(labels=labels)
    with pytest.raises(UndoError, match="left alone"):
        restorer(clock, clusters=clusters).restore((DeleteNodePool(name=POOL, run_id=run_id),))
    assert clusters.done == []


def test_one_that_fails_does_not_keep_the_others_from_being_done(clock):
    clusters = Clusters()
    foreign = ResizeNodePool(name="projects/another-project/locations/z/clusters/c/nodePools/p", node_count=1)
    with pytest.raises(UndoError, match="not in the project our-project"):
        restorer(clock, clusters=clusters).restore((foreign, ResizeNodePool(name=POOL, node_count=4)))
    assert clusters.done == [("size", {"name": POOL, "node_count": 4})]


class Machines:
    """Compute Engine with one machine."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels, self.deleted = labels, 0

    def get(self, *, request, retry, timeout):
        if "operation" in request:
            return compute_v1.Operation(status="DONE")
        if self.deleted:
            raise exceptions.NotFound("gone")
        return compute_v1.Instance(labels=self.labels)

    def delete_unary(self, *, request, retry, timeout):
        self.deleted += 1
        return compute_v1.Operation(name="operation-2", status="PENDING")


@pytest.mark.parametrize(
    ("labels", "deleted"),
    [({"harness-run": "ab12", "harness-chaos": "allowed"}, 1), ({"harness-run": "ab12"}, 0), ({"harness-run": "cd34"}, 0), ({}, 0)],
)
def test_only_a_machine_of_the_run_is_deleted(clock, labels, deleted):
    machines = Machines(labels)
    restoring = restorer(clock, instances=machines, zone_operations=machines)
    action = DeleteInstance(zone="us-east5-b", name="placeholder", run_id="ab12")
    if deleted:
        assert "is gone" in restoring.restore((action,))
        assert "is gone" in restoring.restore((action,))
    else:
        with pytest.raises(UndoError, match="left alone"):
            restoring.restore((action,))
    assert machines.deleted == deleted


# ---- inside a cluster ------------------------------------------------------------------------------------------------


class ApiServer:
    """Objects by path, with resource versions."""

    def __init__(self, **objects: dict[str, object]) -> None:
        self.objects: dict[str, dict[str, object]] = dict(objects)
        self.calls: list[str] = []
        self.deletions: list[dict[str, object]] = []
        self.meanwhile = lambda: None

    def exchange(self, verb, path, headers, body, timeout_s) -> Answer:
        import json

        self.calls.append(f"{verb} {path}")
        found = self.objects.get(path)
        if found is None:
            return Answer(404, json.dumps({"kind": "Status", "message": "not found"}).encode())
        if verb == "DELETE":
            assert headers["Content-Type"] == "application/json"
            self.deletions.append(json.loads(body or b"{}"))
            del self.objects[path]
        if verb == "PATCH":
            self.meanwhile()
            assert headers["Content-Type"] == "application/merge-patch+json"
            change = json.loads(body)
            wanted = change.get("metadata", {}).get("resourceVersion", found["metadata"]["resourceVersion"])
            if wanted != found["metadata"]["resourceVersion"]:
                return Answer(409, json.dumps({"message": "the object has been modified"}).encode())
            found["spec"] = {**found.get("spec", {}), **change["spec"]}
            found["metadata"]["resourceVersion"] += "1"
        return Answer(200, json.dumps(found).encode())


QUEUE = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/cluster-queue"
NODE = "/api/v1/nodes/node-1"


def queue(quota: str) -> dict[str, object]:
    resources = [{"name": "google.com/tpu", "nominalQuota": quota}, {"name": "cpu", "nominalQuota": "40"}]
    groups = [{"flavors": [{"name": "on-demand", "resources": resources}, {"name": "dws", "resources": []}]}]
    return {"metadata": {"resourceVersion": "1"}, "spec": {"resourceGroups": groups}}


@pytest.mark.parametrize(
    ("wrote", "stands", "then"),
    [("0", "0", "16"), ("0", "16", "16"), ("0", "8", "8"), ("0", "1k", "1k"), ("1000", "1k", "16"), ("", "8", "16")],
    ids=[
        "the fault's",
        "as before",
        "another",
        "another, as Kueue writes it",
        "the fault's, as Kueue writes it",
        "a journal that does not say",
    ],
)
def test_quota_that_somebody_has_changed_since_is_told_and_left(clock, wrote, stands, then):
    server = ApiServer(**{QUEUE: queue(stands)})
    action = RestoreQuota(queue="cluster-queue", flavor="on-demand", resource="google.com/tpu", quota="16", wrote=wrote)
    caller = Caller(clock=clock)
    said = act(ClusterApi(CLUSTER, caller, server.exchange), caller, action)
    assert server.objects[QUEUE]["spec"] == queue(then)["spec"]
    assert ("somebody has changed it since, and it is left; before the fault it was 16" in said) is (then != "16")


def test_quota_is_put_back_and_nothing_beside_it(clock):
    server = ApiServer(**{QUEUE: queue("0")})
    action = RestoreQuota(queue="cluster-queue", flavor="on-demand", resource="google.com/tpu", quota="16")
    caller = Caller(clock=clock)
    assert act(ClusterApi(CLUSTER, caller, server.exchange), caller, action) == "the quota of flavor on-demand is 16 again"
    assert server.objects[QUEUE]["spec"] == queue("16")["spec"]


def test_a_queue_that_somebody_else_changes_meanwhile_is_looked_at_again(clock):
    server = ApiServer(**{QUEUE: queue("0")})

    def change() -> None:
        server.meanwhile = lambda: None
        server.objects[QUEUE] |= {"metadata": {"resourceVersion": "7"}}

    server.meanwhile = change
    action = RestoreQuota(queue="cluster-queue", flavor="on-demand", resource="google.com/tpu", quota="16")
    caller = Caller(clock=clock)
    # the change comes after the object was looked up for the patch: the version in the patch is old
    server.objects[QUEUE]["metadata"] = dict(server.objects[QUEUE]["metadata"])
    act(ClusterApi(CLUSTER, caller, server.exchange), caller, action)
    assert server.objects[QUEUE]["spec"] == queue("16")["spec"]


def test_a_node_takes_pods_again_and_one_that_is_gone_needs_nothing(clock):
    server = ApiServer(**{NODE: {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}})
    caller = Caller(clock=clock)
    api = ClusterApi(CLUSTER, caller, server.exchange)
    assert act(api, caller, Uncordon(node="node-1")) == "node node-1 is schedulable"
    assert server.objects[NODE]["spec"] == {"unschedulable": None}
    assert act(api, caller, Uncordon(node="node-2")) == "node node-2 is gone"


def test_an_object_is_seen_to_be_gone(clock):
    path = path_of("batch/v1", "jobs", "default", "placeholder")
    server = ApiServer(**{path: {"metadata": {"resourceVersion": "1"}}})
    caller = Caller(clock=clock)
    api = ClusterApi(CLUSTER, caller, server.exchange)
    action = DeleteObject(api_version="batch/v1", resource="jobs", namespace="default", name="placeholder")
    assert act(api, caller, action) == "jobs placeholder is gone"
    assert act(api, caller, action) == "jobs placeholder is gone"
    assert [said["propagationPolicy"] for said in server.deletions] == ["Background"], "its pods hold chips"
    kept = {path: {"metadata": {"resourceVersion": "1"}}}
    server.objects, server.exchange_ = dict(kept), server.exchange

    def stubborn(verb, *rest) -> Answer:
        answer = server.exchange_(verb, *rest)
        server.objects = dict(kept)
        return answer

    with pytest.raises(UndoError, match="still there"):
        act(ClusterApi(CLUSTER, caller, stubborn), caller, action)


def test_an_api_server_that_refuses_is_told_as_it_says(clock):
    caller = Caller(clock=clock)
    api = ClusterApi(CLUSTER, caller, lambda *_: Answer(403, b'{"message": "nodes is forbidden"}'))
    with pytest.raises(CallError, match="nodes is forbidden"):
        act(api, caller, Uncordon(node="node-1"))


def test_a_name_stays_inside_its_path():
    assert path_of("v1", "nodes", "", "../secrets/x") == "/api/v1/nodes/..%2Fsecrets%2Fx"


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_undos_of_a_project_are_journalled_as_data_and_read_again(tmp_path):
    undo = RestoreProject(
        project="our-project",
        actions=(
            ResizeNodePool(name=POOL, node_count=4),
            RestoreAutoscaling(name=POOL, enabled=True, max_node_count=4),
            DeleteNodePool(name=POOL, run_id="ab12"),
            DeleteInstance(zone="z", name="i", run_id="ab12"),
            RestoreInCluster(cluster=CLUSTER, uid="u", action=Uncordon(node="n")),
        ),
        emulator="grpc=127.0.0.1:1,http=127.0.0.1:2",
    )
    journal = UndoJournal(tmp_path / "undo.jsonl")
    journal.owe("1-lose-pool@0", undo)
    assert [entry.undo for entry in journal.owed()] == [undo]
    journal.settle("1-lose-pool@0")
    assert journal.owed() == []


def test_two_faults_on_one_thing_are_known_to_be():
    first = RestoreProject(project="p", actions=(ResizeNodePool(name=POOL, node_count=4),))
    second = RestoreProject(project="p", actions=(RestoreAutoscaling(name=POOL, enabled=True), ResizeNodePool(name=POOL, node_count=0)))
    third = RestoreProject(project="p", actions=(RestoreInCluster(cluster=CLUSTER, uid="", action=Uncordon(node="n")),))
    assert restored_by(first) & restored_by(second) == {f"the size of node pool {POOL}"}
    assert not restored_by(first) & restored_by(third)
    assert restored_by(third) == {f"whether node n is schedulable of {CLUSTER}"}
