"""What a job has left is told once, when nothing is left or the patience is over."""

from harness.targets.kubernetes.api import PODS, RAY_CLUSTERS, RAY_JOBS, WORKLOADS, Object, Resource
from harness.targets.kubernetes.inventory import Inventory
from harness.targets.kubernetes.leaks import PATIENCE_S, LeakLook
from harness.targets.kubernetes.watching import Change
from tests.unit.targets.kubernetes.cluster_objects import RUN, metadata, pod, ray_job, workload

CLUSTER = {"metadata": metadata("ray-0-h4mzd", None), "status": {"state": "ready"}}
COMPLETE = ray_job("Complete", "SUCCEEDED", cluster="ray-0-h4mzd")
FINISHED = workload({"type": "QuotaReserved", "status": "True"}, {"type": "Finished", "status": "True"}, owner="uid-ray-0")


def looked_at(*things: tuple[Resource, Object]) -> Inventory:
    inventory = Inventory(RUN)
    for resource, thing in things:
        inventory.see(Change("added", resource, thing))
    return inventory


def found(look: LeakLook, t_s: float) -> set[tuple[str, str]]:
    return {(left.what, left.detail) for left in look.tell(t_s)}


def test_a_raycluster_that_is_kept_is_told_with_its_pods_when_the_patience_is_over():
    hosts = [(PODS, pod("hosts-0")), (PODS, pod("head-0")), (PODS, pod("submitter-0", phase="Succeeded"))]
    look = LeakLook(looked_at((RAY_JOBS, COMPLETE), (RAY_CLUSTERS, CLUSTER), (WORKLOADS, FINISHED), *hosts))

    assert found(look, 100.0) == found(look, 100.0 + PATIENCE_S - 0.1) == set()
    assert not look.is_done
    assert [left.what for left in look.tell(100.0 + PATIENCE_S)] == ["ray-cluster", "pod", "pod"]
    assert look.is_done
    assert look.tell(100.0 + 2 * PATIENCE_S) == []


def test_quota_that_is_still_taken_is_told():
    held = workload({"type": "QuotaReserved", "status": "True"}, owner="uid-ray-0")
    look = LeakLook(looked_at((RAY_JOBS, COMPLETE), (WORKLOADS, held)))

    look.tell(0.0)

    assert found(look, PATIENCE_S) == {("quota", "QuotaReserved")}


def test_a_raycluster_that_goes_in_time_is_nothing():
    inventory = looked_at((RAY_JOBS, COMPLETE), (RAY_CLUSTERS, CLUSTER), (WORKLOADS, FINISHED))
    look = LeakLook(inventory)
    assert look.tell(10.0) == []
    inventory.see(Change("deleted", RAY_CLUSTERS, CLUSTER))

    assert found(look, 12.5) == {("none", "looked 2.5 s after the end of the execution")}
