"""Quota, another job, activation and revocation, as the queue of the run has them."""

from pathlib import Path

import pytest

from harness.capabilities import Processes, QueueHost
from harness.quantities import whole_number
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    JOBS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    WORKLOADS,
    ApiError,
    Object,
)
from harness.targets.kubernetes.needs import PRIORITY_LABEL, QUEUE_LABEL
from harness.targets.kubernetes.occupying import JOB_NAME_LABEL, PRIORITY, occupant_name
from harness.targets.kubernetes.quota import LIMIT_NAME, REQUESTED, nominal_quota
from harness.undo import DeleteObject, Reactivate, RestoreQuota
from tests.unit.targets.kubernetes.fake_host import NAMESPACE, POOL, TPU, Host

VICTIM = Processes(task=0, attempt=0)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def queue_of(host: Host) -> Object:
    found: Object = host.get(CLUSTER_QUEUES, "cluster-queue")
    return found


def admit(host: Host, name: str, chips: int, flavor: str = "on-demand") -> None:
    """Kueue admits a job as soon as it is there."""
    create = host.api.create

    def create_and_admit(resource, body, namespace=""):
        made = create(resource, body, namespace)
        if resource == JOBS:
            owner = [{"kind": "Job", "name": body["metadata"]["name"], "uid": made["metadata"]["uid"]}]
            assigned = [{"flavors": {TPU: flavor}, "resourceUsage": {TPU: str(chips)}}]
            status = {"conditions": [{"type": "Admitted", "status": "True"}], "admission": {"podSetAssignments": assigned}}
            host.api.put(WORKLOADS, {"metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": owner}, "status": status})
        return made

    host.api.create = create_and_admit


def test_it_is_what_faults_ask_for(host) -> None:
    assert isinstance(host, QueueHost)


# ---- quota -------------------------------------------------------------------------------------------------------------


def test_one_flavor_gets_another_quota_and_the_others_keep_theirs(host) -> None:
    assert host.quota_of("on-demand") == 16
    assert host.quota_undo("on-demand", to=4) == (
        RestoreQuota(queue="cluster-queue", flavor="on-demand", resource=TPU, quota="16", wrote="4"),
    )
    host.set_quota("on-demand", 4)

    assert nominal_quota(queue_of(host), "on-demand") == "4"
    assert nominal_quota(queue_of(host), "dws") == "16"


@pytest.mark.parametrize(
    ("written", "chips"), [("16", 16), (16, 16), ("1k", 1000), ("1G", 10**9), ("2Ki", 2048), ("1e3", 1000), ("4000m", 4), ("1.5k", 1500)]
)
def test_chips_are_read_however_the_api_server_writes_them(written: object, chips: int) -> None:
    assert whole_number(written) == chips


@pytest.mark.parametrize("written", ["", "four", "500m", "1.5", "4 ", "k"])
def test_what_is_no_number_of_chips_is_none(written: str) -> None:
    with pytest.raises(ValueError, match="is no quantity of whole things"):
        whole_number(written)


def test_a_quota_that_kueue_writes_in_its_own_way_is_the_one_that_was_asked_for(host) -> None:
    patch = host.api.patch

    def patch_canonically(resource, name, body, *places):
        body["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "1k"
        return patch(resource, name, body, *places)

    host.api.patch = patch_canonically
    host.set_quota("on-demand", 1000)

    assert (host.quota_of("on-demand"), host.quota_in_force("on-demand")) == (1000, 1000)


def test_a_flavor_that_is_not_there_is_named(host) -> None:
    with pytest.raises(LookupError, match=r"queue 'cluster-queue' has no quota of google.com/tpu of flavor 'spot'"):
        host.quota_of("spot")
    with pytest.raises(LookupError, match="no queue 'cluster-queue' with flavor 'spot'"):
        host.set_quota("spot", 0)


def test_a_change_in_between_is_tried_again_and_not_for_ever(host) -> None:
    host.api.failures["patch", "clusterqueues"] = ApiError(attempted="patch", what="q", status=409, reason="Conflict")

    with pytest.raises(LookupError, match="somebody else keeps changing it"):
        host.set_quota("on-demand", 4)
    assert len([call for call in host.api.calls if call[0] == "patch"]) == 5


def test_kueue_counts_with_a_quota_when_it_has_observed_it(host) -> None:
    assert host.quota_in_force("on-demand") == 16
    queue = queue_of(host)
    queue["metadata"]["generation"] = 2
    host.put(CLUSTER_QUEUES, queue)

    assert host.quota_in_force("on-demand") is None


def test_a_server_that_does_not_answer_proves_nothing(host) -> None:
    for plural in ("clusterqueues", "resourcequotas", "jobs"):
        host.api.failures["get", plural] = ApiError(attempted="get", what=plural, status=0, reason="refused")

    assert host.quota_in_force("on-demand") is None
    assert not host.is_limited_to(None)
    assert not host.is_vacated("x")
    assert not host.has_admitted("x")


def test_a_limit_is_in_force_when_the_controller_says_so(host) -> None:
    host.limit_namespace(4)
    assert not host.is_limited_to(4)
    quota = host.get(RESOURCE_QUOTAS, LIMIT_NAME, NAMESPACE)
    assert quota["spec"] == {"hard": {REQUESTED: "4"}}
    assert quota["metadata"]["labels"] == {"chaos-harness/run-id": "run-1"}
    host.put(RESOURCE_QUOTAS, {**quota, "status": {"hard": {REQUESTED: "4"}}})
    assert host.is_limited_to(4)
    assert not host.is_limited_to(None)
    host.limit_namespace(None)

    assert host.is_limited_to(None)
    assert host.limit_undo() == (DeleteObject(api_version="v1", resource="resourcequotas", namespace=NAMESPACE, name=LIMIT_NAME),)


# ---- another job -------------------------------------------------------------------------------------------------------


def test_another_job_holds_what_is_free_as_a_training_job_would(host) -> None:
    admit(host, "occupant", 8)

    assert host.occupy("quota.1", flavor="on-demand", chips=0) == "job occupant-quota-1 for 8 chips of flavor on-demand"
    assert host.grounds.ahead == {"occupant-quota-1"}
    assert "was admitted to 8 chips of flavor on-demand" in host.occupied("quota.1", flavor="on-demand")
    assert host.grounds.ahead == set()
    job = host.get(JOBS, "occupant-quota-1", NAMESPACE)
    pod = job["spec"]["template"]["spec"]
    assert (job["spec"]["suspend"], job["spec"]["parallelism"], job["spec"]["completions"]) == (True, 2, 2)
    assert pod["containers"][0]["resources"]["limits"] == {TPU: "4"}
    assert pod["nodeSelector"] == {POOL: "on-demand-pool"}
    assert job["metadata"]["labels"] == {QUEUE_LABEL: "user-queue", "chaos-harness/run-id": "run-1"}


@pytest.mark.parametrize(("chips", "pods", "each"), [(16, 4, 4), (3, 1, 3), (6, 2, 3), (7, 7, 1), (1, 1, 1)])
def test_the_chips_are_spread_evenly_over_pods_that_fit_on_a_host(host, chips, pods, each) -> None:
    admit(host, "occupant", chips)
    host.occupy("x", flavor="on-demand", chips=chips)
    job = host.get(JOBS, "occupant-x", NAMESPACE)

    assert job["spec"]["parallelism"] == pods
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][TPU] == str(each)


def test_a_job_that_is_not_admitted_yet_is_ahead_of_the_tasks_until_it_is_deleted(host) -> None:
    host.occupy("x", flavor="on-demand", chips=8)

    assert host.occupied("x", flavor="on-demand") == ""
    host.api.failures["get", "jobs"] = ApiError(attempted="get", what="jobs", status=0, reason="refused")
    assert host.occupied("x", flavor="on-demand") == ""
    assert host.grounds.ahead == {"occupant-x"}
    host.vacate("x")
    assert host.grounds.ahead == set()


def test_a_job_that_is_admitted_elsewhere_occupies_nothing(host) -> None:
    admit(host, "occupant", 8, flavor="dws")
    host.occupy("x", flavor="on-demand", chips=8)

    with pytest.raises(LookupError, match=r"was admitted to \{'dws': 8\}"):
        host.occupied("x", flavor="on-demand")


def test_where_nothing_is_free_there_is_nothing_to_occupy(host) -> None:
    queue = queue_of(host)
    queue["status"]["flavorsReservation"][0]["resources"][0]["total"] = "16"
    host.put(CLUSTER_QUEUES, queue)

    with pytest.raises(LookupError, match="no chip of flavor 'on-demand' is free"):
        host.occupy("x", flavor="on-demand", chips=0)


def preempting(host: Host) -> None:
    queue = queue_of(host)
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    host.put(CLUSTER_QUEUES, queue)


def test_another_job_of_higher_priority_asks_for_what_the_victim_has_and_what_is_free(host) -> None:
    preempting(host)

    assert (
        host.preempt("2-preempt-workload", VICTIM) == "job occupant-2-preempt-workload of higher priority for 16 chips of flavor on-demand"
    )
    job = host.get(JOBS, "occupant-2-preempt-workload", NAMESPACE)
    name = job["metadata"]["labels"][PRIORITY_LABEL]
    assert host.get(PRIORITY_CLASSES, name)["value"] == PRIORITY
    assert host.occupation_undo("2-preempt-workload") == (
        DeleteObject(api_version="batch/v1", resource="jobs", namespace=NAMESPACE, name="occupant-2-preempt-workload"),
        DeleteObject(api_version=PRIORITY_CLASSES.api_version, resource="workloadpriorityclasses", namespace="", name=name),
    )
    host.vacate("2-preempt-workload")
    assert host.get(PRIORITY_CLASSES, name) is None


def test_two_that_preempt_have_a_class_each_so_that_the_end_of_one_takes_none_from_the_other(host) -> None:
    preempting(host)
    for name in ("one", "other"):
        host.preempt(name, VICTIM)
    host.vacate("one")

    kept = host.get(JOBS, "occupant-other", NAMESPACE)["metadata"]["labels"][PRIORITY_LABEL]
    assert host.get(PRIORITY_CLASSES, kept) is not None


def test_a_queue_that_preempts_nobody_is_named(host) -> None:
    with pytest.raises(LookupError, match=r"'cluster-queue' preempts nobody: spec.preemption.withinClusterQueue is Never"):
        host.preempt("x", VICTIM)


def test_a_victim_without_chips_cannot_be_preempted(host) -> None:
    preempting(host)
    host.workload["status"] = {}
    host.put(WORKLOADS, host.workload)

    with pytest.raises(LookupError, match="the workload of task 0 holds no chips"):
        host.preempt("x", VICTIM)


def test_the_other_job_is_gone_with_its_pods_and_its_workload(host) -> None:
    admit(host, "occupant", 8)
    host.occupy("x", flavor="on-demand", chips=8)
    assert host.has_admitted("x")
    pod = {"metadata": {"name": "p", "namespace": NAMESPACE, "labels": {JOB_NAME_LABEL: "occupant-x"}}}
    host.api.put(PODS, pod)
    host.vacate("x")
    host.vacate("x")
    assert not host.is_vacated("x")
    host.api.remove(PODS, "p", NAMESPACE)
    assert not host.is_vacated("x")
    host.api.remove(WORKLOADS, "occupant", NAMESPACE)

    assert host.is_vacated("x")
    assert not host.has_admitted("x")


@pytest.mark.parametrize(
    ("injection", "name"), [("2-lower-quota", "occupant-2-lower-quota"), ("A_b.C", "occupant-a-b-c"), ("x" * 90, "occupant-" + "x" * 40)]
)
def test_the_name_of_an_injection_becomes_one_that_kubernetes_takes(injection, name) -> None:
    assert occupant_name(injection) == name


# ---- the victim's own --------------------------------------------------------------------------------------------------


def test_a_workload_is_deactivated_and_activated(host) -> None:
    assert host.activation_undo(VICTIM) == (Reactivate(namespace=NAMESPACE, name="job-0-workload"),)
    assert host.set_active(VICTIM, is_active=False) is True
    assert host.get(WORKLOADS, "job-0-workload", NAMESPACE)["spec"]["active"] is False
    assert host.set_active(VICTIM, is_active=True) is True
    assert host.get(WORKLOADS, "job-0-workload", NAMESPACE)["spec"]["active"] is True


def test_a_workload_that_is_gone_is_activated_no_more(host) -> None:
    host.api.remove(WORKLOADS, "job-0-workload", NAMESPACE)

    assert host.set_active(VICTIM, is_active=True) is False
    assert host.set_active(Processes(task=1), is_active=True) is False
    with pytest.raises(LookupError, match="task 1 has no workload"):
        host.activation_undo(Processes(task=1))


def test_a_workload_that_somebody_deactivated_is_activated_and_one_that_kueue_did_is_deleted(host) -> None:
    host.set_active(VICTIM, is_active=False)
    evicted = {"type": "Evicted", "status": "True", "reason": "Deactivated"}
    host.api.set_condition(WORKLOADS, "job-0-workload", NAMESPACE, **evicted)
    assert host.reactivate(VICTIM) == "workload job-0-workload was activated"
    assert host.get(WORKLOADS, "job-0-workload", NAMESPACE)["spec"]["active"] is True

    host.api.set_condition(WORKLOADS, "job-0-workload", NAMESPACE, **evicted | {"reason": "DeactivatedDueToAdmissionCheck"})
    assert host.reactivate(VICTIM) == f"workload job-0-workload ({host.workload['metadata']['uid']}) was deleted"
    assert host.get(WORKLOADS, "job-0-workload", NAMESPACE) is None
    assert host.reactivate(VICTIM) == host.reactivate(Processes(task=1)) == ""


def test_a_workload_that_is_about_to_be_deactivated_by_its_check_is_deleted_too(host) -> None:
    target = {"type": "DeactivationTarget", "status": "True", "reason": "AdmissionCheck"}
    host.api.set_condition(WORKLOADS, "job-0-workload", NAMESPACE, **target)

    assert host.reactivate(VICTIM).endswith("was deleted")


def test_the_request_that_is_provisioned_is_revoked_and_its_pods_are_the_faults(host) -> None:
    host.provisioned("Accepted", "Provisioned")

    assert host.revoke_capacity(VICTIM) == ("worker2",)
    assert host.revoked == ["request-1"]
    assert host.grounds.hurt == {host.get(PODS, "job-0-0", NAMESPACE)["metadata"]["uid"]}


@pytest.mark.parametrize("conditions", [("Accepted",), ("Accepted", "Provisioned", "CapacityRevoked"), ("Accepted", "Failed")])
def test_what_is_not_provisioned_cannot_be_revoked(host, conditions) -> None:
    host.provisioned(*conditions)

    with pytest.raises(LookupError, match="task 0 has no ProvisioningRequest that is provisioned"):
        host.revoke_capacity(VICTIM)
