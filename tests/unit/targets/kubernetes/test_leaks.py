"""What a job has left is told once, when nothing is left or the patience is over."""

import pytest

from harness.kind.topology import TPU_RESOURCE
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    ApiError,
    Object,
    Resource,
)
from harness.targets.kubernetes.inventory import Inventory
from harness.targets.kubernetes.leaks import ASKED_S, PATIENCE_S, LeakLook
from harness.targets.kubernetes.watching import Change
from tests.unit.targets.kubernetes.cluster_objects import NAMESPACE, RUN, metadata, pod, ray_job, workload
from tests.unit.targets.kubernetes.fake_api import FakeApi

CLUSTER = {"metadata": metadata("ray-0-h4mzd", None), "status": {"state": "ready"}}
COMPLETE = ray_job("Complete", "SUCCEEDED", cluster="ray-0-h4mzd")
FINISHED = workload({"type": "QuotaReserved", "status": "True"}, {"type": "Finished", "status": "True"}, owner="uid-ray-0")


def looked_at(*things: tuple[Resource, Object]) -> Inventory:
    inventory = Inventory(RUN)
    for resource, thing in things:
        inventory.see(Change("added", resource, thing))
    return inventory


def look_at(inventory: Inventory, api: FakeApi | None = None) -> LeakLook:
    return LeakLook(inventory, api or FakeApi(), NAMESPACE)


def cluster_queue(name: str = "cluster-queue", **chips: int) -> Object:
    """A queue that counts chips as reserved."""
    reserved = [
        {"name": flavor, "resources": [{"name": TPU_RESOURCE, "total": str(total)}, {"name": "cpu", "total": "9"}]}
        for flavor, total in chips.items()
    ]
    return {"metadata": {"name": name}, "spec": {}, "status": {"flavorsReservation": reserved}}


def holding(name: str, chips: int, *, namespace: str = NAMESPACE, queue: str = "cluster-queue", is_finished: bool = False) -> Object:
    """A workload that has chips of flavor dws, of nobody's task."""
    kinds = ("QuotaReserved", "Admitted", *(("Finished",) if is_finished else ()))
    assigned = [{"name": "main", "flavors": {TPU_RESOURCE: "dws"}, "resourceUsage": {TPU_RESOURCE: str(chips)}}]
    made = workload(*[{"type": kind, "status": "True"} for kind in kinds], name=name, owner="uid-occupant")
    made["metadata"]["namespace"] = namespace
    made["status"]["admission"] = {"clusterQueue": queue, "podSetAssignments": assigned}
    return made


def books(*things: tuple[Resource, Object]) -> FakeApi:
    """An API server whose queues say what is reserved."""
    local = {"metadata": {"name": "user-queue", "namespace": NAMESPACE}, "spec": {"clusterQueue": "cluster-queue"}}
    return FakeApi([(LOCAL_QUEUES, local), *things])


def found(look: LeakLook, t_s: float) -> set[tuple[str, str]]:
    return {(left.what, left.detail) for left in look.tell(t_s)}


def test_a_raycluster_that_is_kept_is_told_with_its_pods_when_the_patience_is_over():
    hosts = [(PODS, pod("hosts-0")), (PODS, pod("head-0")), (PODS, pod("submitter-0", phase="Succeeded"))]
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (RAY_CLUSTERS, CLUSTER), (WORKLOADS, FINISHED), *hosts))

    assert found(look, 100.0) == found(look, 100.0 + PATIENCE_S - 0.1) == set()
    assert not look.is_done
    assert [left.what for left in look.tell(100.0 + PATIENCE_S)] == ["ray-cluster", "pod", "pod"]
    assert look.is_done
    assert look.tell(100.0 + 2 * PATIENCE_S) == []


def test_quota_that_is_still_taken_is_told():
    held = workload({"type": "QuotaReserved", "status": "True"}, owner="uid-ray-0")
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, held)))

    look.tell(0.0)

    assert found(look, PATIENCE_S) == {("quota", "QuotaReserved")}


def test_a_raycluster_that_goes_in_time_is_nothing():
    inventory = looked_at((RAY_JOBS, COMPLETE), (RAY_CLUSTERS, CLUSTER), (WORKLOADS, FINISHED))
    look = look_at(inventory)
    assert look.tell(10.0) == []
    inventory.see(Change("deleted", RAY_CLUSTERS, CLUSTER))

    assert found(look, 12.5) == {("none", "looked 2.5 s after the end of the execution")}


def test_chips_that_a_queue_reserves_for_no_workload_are_told_though_every_object_is_gone():
    api = books((CLUSTER_QUEUES, cluster_queue(dws=8)), (WORKLOADS, holding("over", 4, is_finished=True)))
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, FINISHED)), api)

    assert found(look, 0.0) == found(look, PATIENCE_S - 0.1) == set()
    (left,) = look.tell(PATIENCE_S + ASKED_S)

    assert (left.what, left.name) == ("quota", "cluster-queue/dws")
    assert left.detail == "8 of google.com/tpu are reserved, 0 of them for a workload that is there"


def test_chips_that_somebody_else_has_reserved_are_no_leak_of_the_job():
    others = [(WORKLOADS, holding("occupant", 4)), (WORKLOADS, holding("elsewhere", 4, namespace="default"))]
    queues = [(CLUSTER_QUEUES, cluster_queue(dws=8)), (CLUSTER_QUEUES, cluster_queue("foreign-queue", dws=16))]
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, FINISHED)), books(*queues, *others))

    assert [left.what for left in look.tell(0.0)] == ["none"]


def test_chips_of_another_queue_s_workload_account_for_nothing_in_this_one():
    api = books((CLUSTER_QUEUES, cluster_queue(dws=4)), (WORKLOADS, holding("elsewhere", 4, queue="foreign-queue")))
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, FINISHED)), api)

    look.tell(0.0)

    assert [left.name for left in look.tell(PATIENCE_S)] == ["cluster-queue/dws"]


def test_books_that_kueue_has_not_written_yet_are_read_again():
    api = books((CLUSTER_QUEUES, cluster_queue(dws=8)))
    look = look_at(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, FINISHED)), api)
    assert look.tell(0.0) == []
    api.put(CLUSTER_QUEUES, cluster_queue(dws=0))

    assert look.tell(ASKED_S / 2) == []  # asked no more often than that
    assert [left.what for left in look.tell(ASKED_S)] == ["none"]


def test_a_server_that_does_not_answer_is_asked_again_and_one_that_refuses_is_not():
    api = books()
    api.failures["list", CLUSTER_QUEUES.plural] = ApiError(attempted="list", what="clusterqueues", status=0, reason="refused")
    look = look_at(looked_at((RAY_JOBS, COMPLETE)), api)
    assert look.tell(0.0) == look.tell(PATIENCE_S) == []
    api.failures["list", CLUSTER_QUEUES.plural] = ApiError(attempted="list", what="clusterqueues", status=403, reason="Forbidden")
    with pytest.raises(ApiError):
        look.tell(PATIENCE_S + ASKED_S)
    api.failures.clear()

    assert [left.what for left in look.tell(PATIENCE_S + 2 * ASKED_S)] == ["none"]
