"""Kueue's objects of a run, and that the cluster's are afterwards as they were before."""

import pytest

from harness.clock import ManualClock
from harness.errors import BrokenHarnessError, InvalidDocumentError
from harness.targets.kubernetes.api import ADMISSION_CHECKS, CLUSTER_QUEUES, LOCAL_QUEUES, PROVISIONING_CONFIGS, RESOURCE_FLAVORS, ApiError
from harness.targets.kubernetes.manifest_files import guide_queues
from harness.targets.kubernetes.queue_objects import QueueObjects, put_back
from tests.unit.targets.kubernetes.fake_api import FakeApi

RUN = "run-1"
NAMESPACE = "harness-run-1"


def objects(api: FakeApi, clock: ManualClock | None = None) -> QueueObjects:
    return QueueObjects(api, clock or ManualClock(), guide_queues(), namespace=NAMESPACE, run_id=RUN)


def active(api: FakeApi) -> None:
    api.set_condition(CLUSTER_QUEUES, "cluster-queue", type="Active", status="True")
    api.set_condition(LOCAL_QUEUES, "user-queue", NAMESPACE, type="Active", status="True")


def test_the_guides_objects_are_applied_the_local_queue_in_the_runs_namespace():
    api = FakeApi()

    objects(api).apply()

    assert {key for key in api.objects if key[0] == "localqueues"} == {("localqueues", NAMESPACE, "user-queue")}
    assert {key[2] for key in api.objects if key[0] == "resourceflavors"} == {"default-cpu", "on-demand", "dws"}
    queue = api.objects["clusterqueues", "", "cluster-queue"]
    (group,) = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["default-cpu", "on-demand", "dws"]
    assert queue["spec"]["admissionChecksStrategy"]["admissionChecks"] == [{"name": "dws-prov", "onFlavors": ["dws"]}]


def test_queues_are_waited_for_until_kueue_takes_jobs():
    api = FakeApi()
    queues = objects(api)
    queues.apply()
    active(api)

    queues.await_active()


def test_queues_that_stay_inactive_are_told_with_kueues_words():
    api, clock = FakeApi(), ManualClock()
    queues = objects(api, clock)
    queues.apply()
    api.set_condition(CLUSTER_QUEUES, "cluster-queue", type="Active", status="False", reason="CheckNotFoundOrInactive", message="no check")

    with pytest.raises(
        BrokenHarnessError, match=r"clusterqueues cluster-queue \(CheckNotFoundOrInactive: no check\).*localqueues user-queue"
    ):
        queues.await_active()


def test_queues_of_a_file_that_kueue_refuses_are_the_mistake_of_who_wrote_it():
    api = FakeApi()
    queues = objects(api)
    queues.apply()
    active(api)
    api.set_condition(CLUSTER_QUEUES, "cluster-queue", type="Active", status="False", reason="FlavorNotFound", message="spot")

    with pytest.raises(InvalidDocumentError, match=r"cluster\.queues q\.yaml: Kueue takes no jobs in these .*\(FlavorNotFound: spot\)"):
        queues.await_active("cluster.queues q.yaml")
    api.objects["clusterqueues", "", "cluster-queue"]["status"] = {}
    with pytest.raises(BrokenHarnessError, match=r"clusterqueues cluster-queue \(Kueue says nothing of it\)"):
        queues.await_active("cluster.queues q.yaml")


def test_a_kueue_that_does_not_answer_just_now_is_asked_again(monkeypatch):
    api, clock = FakeApi(), ManualClock()
    queues = objects(api, clock)
    queues.apply()
    active(api)
    error = ApiError(attempted="get", what="clusterqueues/cluster-queue", status=500, reason="conversion webhook failed")
    api.failures["get", "clusterqueues"] = error
    with pytest.raises(BrokenHarnessError, match=r"has not activated the queues of the run in 60 s: .*conversion webhook failed"):
        queues.await_active()

    monkeypatch.setattr(clock, "sleep", lambda _: api.failures.clear())
    queues.await_active()


def test_what_was_not_there_is_gone_afterwards_queues_first():
    api = FakeApi()
    queues = objects(api)
    replaced = queues.replaced()
    queues.apply()

    assert put_back(api, ManualClock(), replaced, run_id=RUN) == []

    assert {key[0] for key in api.objects} == {"localqueues"}  # it goes with the namespace
    deleted = [name for verb, name, _ in api.calls if verb == "delete"]
    assert deleted[0] == "clusterqueues"


def test_what_was_there_is_as_it_was():
    api = FakeApi()
    before = {
        "metadata": {"name": "dws-prov", "uid": "u", "resourceVersion": "5"},
        "spec": {"controllerName": "another"},
        "status": {"x": 1},
    }
    api.put(ADMISSION_CHECKS, before)
    queues = objects(api)
    replaced = queues.replaced()
    queues.apply()
    assert api.objects["admissionchecks", "", "dws-prov"]["spec"]["controllerName"] != "another"

    put_back(api, ManualClock(), replaced, run_id=RUN)
    put_back(api, ManualClock(), replaced, run_id=RUN)

    assert api.objects["admissionchecks", "", "dws-prov"]["spec"]["controllerName"] == "another"
    assert ("provisioningrequestconfigs", "", "dws-config") not in api.objects
    assert all("resourceVersion" not in one.before for one in replaced)
    assert "labels" not in api.objects["admissionchecks", "", "dws-prov"]["metadata"]  # it was never ours


@pytest.mark.parametrize("labels", [{}, {"chaos-harness/run-id": "another"}])
def test_what_somebody_else_has_made_since_is_not_deleted(labels):
    """The run was killed when it had written down what it was about to make."""
    api = FakeApi()
    replaced = objects(api).replaced()
    api.put(CLUSTER_QUEUES, {"metadata": {"name": "cluster-queue", "labels": labels}})

    assert put_back(api, ManualClock(), replaced, run_id=RUN) == []

    assert api.get(CLUSTER_QUEUES, "cluster-queue") is not None


def test_what_takes_the_place_of_what_is_deleted_is_not_waited_for():
    class Restless(FakeApi):
        def delete(self, resource, name, namespace="", grace_s=None, uid=""):
            is_there = super().delete(resource, name, namespace, grace_s, uid)
            self.put(resource, {"metadata": {"name": name}})
            return is_there

    api, clock = Restless(), ManualClock()
    queues = objects(api)
    replaced = queues.replaced()
    queues.apply()

    assert put_back(api, clock, replaced, run_id=RUN) == []
    assert clock.monotonic_s() == 0.0


def test_an_object_that_kueue_holds_back_is_told():
    class HeldApi(FakeApi):
        def delete(self, resource, name, namespace="", grace_s=None, uid=""):
            return True if resource == RESOURCE_FLAVORS else super().delete(resource, name, namespace, grace_s, uid)

    api = HeldApi()
    queues = objects(api)
    replaced = queues.replaced()
    queues.apply()

    problems = put_back(api, ManualClock(), replaced, run_id=RUN)

    assert len(problems) == 3
    assert "resourceflavors default-cpu is still being deleted" in problems[0]
    assert api.get(PROVISIONING_CONFIGS, "dws-config") is None
