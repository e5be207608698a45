"""Changes become events once, and only those of the run."""

import pytest

from harness.history import NodeSeen, PodSeen, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.targets.kubernetes.api import (
    EVENTS,
    JOBS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    Object,
    Resource,
)
from harness.targets.kubernetes.inventory import Inventory
from harness.targets.kubernetes.leaks import PATIENCE_S, LeakLook
from harness.targets.kubernetes.telling import EVENTS_MAX, Teller
from harness.targets.kubernetes.watching import Change
from tests.unit.targets.kubernetes.cluster_objects import (
    NAMESPACE,
    condition,
    job,
    metadata,
    node,
    pending,
    pod,
    ray_job,
    ray_pod,
    request,
    workload,
)
from tests.unit.targets.kubernetes.fake_api import FakeApi
from tests.unit.targets.kubernetes.test_attempts import Watch


class Seen:
    """A teller that takes one change after the other."""

    def __init__(self, *, is_ray: bool = False) -> None:
        self.attempts = Watch(is_ray=is_ray).attempts
        self.inventory = Inventory("run-1")
        self.teller = Teller(self.inventory, self.attempts, epoch_s=100.0)

    def see(self, resource: Resource, thing: Object, *, is_deleted: bool = False, now_s: float = 101.0) -> list:
        return self.teller.see(Change("deleted" if is_deleted else "modified", resource, thing), now_s)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_what_belongs_to_the_job_is_known_by_label_and_by_owner(seen):
    (submitted,) = seen.see(JOBS, job())
    (queued,) = seen.see(WORKLOADS, workload(condition("QuotaReserved")))
    (asked,) = seen.see(PROVISIONING_REQUESTS, request("r-1"))
    (bound,) = seen.see(PODS, pending("a"))

    assert isinstance(submitted, SubmissionSeen)
    assert isinstance(queued, WorkloadSeen)
    assert isinstance(asked, ProvisioningSeen)
    assert isinstance(bound, PodSeen)
    assert {event.t_s for event in (submitted, queued, asked, bound)} == {1.0}


def test_what_is_somebody_elses_is_told_of_nothing(seen):
    assert seen.see(PODS, pod("a", task=None)) == []
    assert seen.see(WORKLOADS, workload(owner="uid-another")) == []
    stranger = pod("b")
    stranger["metadata"]["labels"]["chaos-harness/run-id"] = "run-2"
    assert seen.see(PODS, stranger) == []


def test_what_is_seen_before_its_owner_is_told_with_it(seen):
    assert seen.see(PROVISIONING_REQUESTS, request("r-1")) == []
    assert seen.see(WORKLOADS, workload()) == []

    told = seen.see(JOBS, job(), now_s=102.0)

    assert [type(event) for event in told] == [SubmissionSeen, WorkloadSeen, ProvisioningSeen]


def test_a_change_that_changes_nothing_that_is_told_is_no_event(seen):
    first = seen.see(PODS, pending("a"))
    again = pending("a")
    again["status"]["hostIP"] = "10.0.0.1"

    assert len(first) == 1
    assert seen.see(PODS, again, now_s=105.0) == []
    assert len(seen.see(PODS, pod("a"), now_s=106.0)) == 1


def test_a_pod_has_the_attempt_that_it_is_or_would_be(seen):
    told = [seen.see(PODS, thing)[0] for thing in (pod("a"), pod("a", phase="Failed", code=1), pending("b"), pod("b"))]

    assert [event.attempt for event in told] == [0, 0, 1, 1]


def test_the_pool_of_a_pod_is_that_of_its_node(seen):
    (told,) = seen.see(NODES, node("worker2", pool="dws-pool"))

    assert isinstance(told, NodeSeen)
    assert seen.see(PODS, pod("a"))[0].pool == "dws-pool"


def test_the_control_plane_is_no_node_of_the_job(seen):
    assert seen.see(NODES, node("plane", pool="")) == []


def test_what_is_gone_is_told_as_deleted(seen):
    seen.see(JOBS, job())
    seen.see(PODS, pod("a"))
    seen.see(WORKLOADS, workload())
    seen.see(PROVISIONING_REQUESTS, request("r-1"))

    assert seen.see(PODS, pod("a"), is_deleted=True)[0].phase == "Deleted"
    assert seen.see(PROVISIONING_REQUESTS, request("r-1"), is_deleted=True)[0].is_deleted
    assert seen.see(WORKLOADS, workload(), is_deleted=True) == []
    assert seen.see(JOBS, job(), is_deleted=True)[0].status == "Deleted"


def test_the_submitters_own_job_is_no_submission():
    seen = Seen(is_ray=True)
    seen.see(RAY_JOBS, ray_job("Running"))
    inner = {
        "kind": "Job",
        "metadata": metadata("ray-0", None, uid="uid-inner", ownerReferences=[{"uid": "uid-ray-0"}]),
        "spec": {},
        "status": {},
    }

    assert seen.see(JOBS, inner) == []
    assert seen.inventory.submission(0)["kind"] == "RayJob"


def event(number: int) -> Object:
    involved = {"kind": "Pod", "name": "a"}
    return {"metadata": {"name": f"e{number}", "uid": f"uid-{number}"}, "involvedObject": involved, "reason": "R", "message": "m"}


def test_an_event_that_repeats_is_told_once_and_no_more_than_can_be_read(seen):
    assert len(seen.see(EVENTS, event(0))) == 1
    assert seen.see(EVENTS, event(0)) == []

    told = sum(len(seen.see(EVENTS, event(number))) for number in range(1, EVENTS_MAX + 5))

    assert told == EVENTS_MAX - 1
    assert isinstance(seen.see(EVENTS, event(0), is_deleted=True), list)
    assert seen.see(EVENTS, event(EVENTS_MAX + 1)) == []
    assert seen.teller.events_untold == 5


def test_the_newest_open_workload_of_an_elastic_job_is_its_own(seen):
    seen.see(JOBS, job())
    for name, conditions, created in (("w-1", [condition("Finished")], "1"), ("w-2", [], "2"), ("w-3", [condition("Finished")], "3")):
        thing = workload(*conditions, name=name)
        thing["metadata"]["creationTimestamp"] = created
        seen.see(WORKLOADS, thing)

    assert seen.inventory.workload(0)["metadata"]["name"] == "w-2"


# ---- leaks -----------------------------------------------------------------------------------------------------------


def left(seen: Seen, look: LeakLook, t_s: float) -> list[tuple[str, str]]:
    return [(event.what, event.name) for event in look.tell(t_s)]


def test_nothing_left_is_told_at_once_and_once(seen):
    seen.see(JOBS, job(condition("Complete")))
    seen.see(WORKLOADS, workload(condition("QuotaReserved"), condition("Finished")))
    seen.see(PODS, pod("a", phase="Succeeded", code=0))
    seen.see(PROVISIONING_REQUESTS, request("r-1", condition("Accepted"), condition("Provisioned")))
    look = LeakLook(seen.inventory, FakeApi(), NAMESPACE)

    assert left(seen, look, 5.0) == [("none", "")]
    assert look.is_done
    assert left(seen, look, 6.0) == []


def test_what_goes_in_time_is_no_leak():
    seen = Seen(is_ray=True)
    seen.see(RAY_JOBS, ray_job("Complete", "SUCCEEDED"))
    cluster = {"metadata": metadata("c1"), "status": {"state": "ready"}}
    seen.see(RAY_CLUSTERS, cluster)
    look = LeakLook(seen.inventory, FakeApi(), NAMESPACE)

    assert left(seen, look, 5.0) == []
    assert not look.is_done
    seen.see(RAY_CLUSTERS, cluster, is_deleted=True)
    assert left(seen, look, 6.0) == [("none", "")]


def test_what_stays_is_told_by_name_when_the_patience_is_over():
    seen = Seen(is_ray=True)
    seen.see(RAY_JOBS, ray_job("Complete", "SUCCEEDED"))
    seen.see(RAY_CLUSTERS, {"metadata": metadata("c1"), "status": {"state": "ready"}})
    seen.see(PODS, ray_pod("head", "c1", role="head"))
    seen.see(WORKLOADS, workload(condition("QuotaReserved"), condition("Admitted"), owner="uid-ray-0"))
    seen.see(WORKLOADS, workload(name="w-2", owner="uid-ray-0"))
    seen.see(PROVISIONING_REQUESTS, request("r-1", condition("Accepted")))
    look = LeakLook(seen.inventory, FakeApi(), NAMESPACE)

    assert left(seen, look, 5.0) == []
    assert left(seen, look, 5.0 + PATIENCE_S) == [
        ("ray-cluster", "c1"),
        ("pod", "head"),
        ("workload", "w-2"),
        ("quota", "workload-0"),
        ("provisioning-request", "r-1"),
    ]


def test_what_others_left_is_not_the_jobs(seen):
    seen.see(PODS, pod("a", task=None))
    seen.see(WORKLOADS, workload(condition("QuotaReserved"), owner="uid-another"))

    assert left(seen, LeakLook(seen.inventory, FakeApi(), NAMESPACE), 5.0) == [("none", "")]
