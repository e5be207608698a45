"""What is read of objects, and what becomes of fields that are not there."""

import pytest

from harness.history import CheckState, ConditionState
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.reading import (
    event_seen,
    job_status,
    node_seen,
    pod_seen,
    provisioning_seen,
    signal_in,
    submission_seen,
    workload_seen,
)
from tests.unit.targets.kubernetes.cluster_objects import condition, host, job, node, pending, pod, ray_job, ray_pod, request, workload

KEY = AttemptKey(0, 1)


def test_a_pod_is_told_with_all_that_a_judge_asks_for():
    thing = host("a", 1, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=15, conditions=(condition("Ready"),))
    thing["metadata"]["annotations"] = {
        "autoscaling.x-k8s.io/consume-provisioning-request": "request-1",
        "autoscaling.x-k8s.io/provisioning-class-name": "queued-provisioning.gke.io",
    }
    thing["spec"]["nodeSelector"] = {"b": "2", "a": "1"}

    seen = pod_seen(thing, KEY, 3.0, pools={"worker2": "dws-pool"})

    assert (seen.task, seen.attempt, seen.rank, seen.role, seen.node, seen.pool) == (0, 1, 1, "host", "worker2", "dws-pool")
    assert (seen.is_ready, seen.is_terminating, seen.grace_s, seen.exit_code) == (True, True, 15.0, None)
    assert (seen.provisioning_request, seen.provisioning_class) == ("request-1", "queued-provisioning.gke.io")
    assert seen.selector == ("a=1", "b=2")


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (pending("a"), "ContainerCreating"),
        (pod("a", phase="Pending", state={}, conditions=(condition("PodScheduled", "False", "Unschedulable"),)), "Unschedulable"),
        (pod("a", phase="Failed", state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), "OOMKilled"),
        (
            pod("a", phase="Failed", code=143, conditions=(condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),)),
            "EvictionByEvictionAPI",
        ),
        (pod("a", phase="Succeeded", code=0), ""),
        (pod("a"), ""),
    ],
)
def test_the_most_telling_reason_is_told(thing, reason):
    assert pod_seen(thing, KEY, 0.0, pools={}).reason == reason


def test_a_pod_that_is_gone_says_so_whatever_its_phase_was():
    assert pod_seen(pod("a"), KEY, 0.0, pools={}, is_deleted=True).phase == "Deleted"


def test_head_submitter_and_hosts_of_a_ray_job_are_told_apart():
    told = [pod_seen(ray_pod("a", "c", role=role, rank=2), KEY, 0.0, pools={}) for role in ("head", "submitter", "host")]

    assert [(seen.role, seen.rank) for seen in told] == [("head", -1), ("submitter", -1), ("host", 2)]


def test_a_node_tells_its_taints_and_only_labels_that_mean_something():
    thing = node(
        "worker2", ready="Unknown", unschedulable=True, taints=[{"key": "google.com/tpu", "effect": "NoSchedule", "value": "present"}]
    )
    thing["metadata"]["labels"] |= {"kubernetes.io/os": "linux", "cloud.google.com/active-node-maintenance": "ONGOING"}

    seen = node_seen(thing, 1.0)

    assert (seen.state, seen.is_schedulable, seen.taints) == ("Unknown", False, ("google.com/tpu:NoSchedule",))
    assert seen.labels == ("cloud.google.com/active-node-maintenance=ONGOING",)
    assert node_seen(thing, 1.0, is_deleted=True).state == "Deleted"


def test_a_workload_tells_flavors_checks_and_requeues():
    assigned = [
        {"name": "main", "flavors": {"cpu": "on-demand", "google.com/tpu": "dws"}},
        {"name": "head", "flavors": {"cpu": "default-cpu"}},
    ]
    thing = workload(
        condition("QuotaReserved", "True", "QuotaReserved", "m"),
        active=False,
        admission={"podSetAssignments": assigned},
        admissionChecks=[{"name": "dws-prov", "state": "Pending", "message": "waiting"}],
        requeueState={"count": 2},
    )

    seen = workload_seen(thing, KEY, 1.0)

    assert seen.flavors == {"main": "dws", "head": "default-cpu"}
    assert seen.checks == (CheckState(name="dws-prov", state="Pending", message="waiting"),)
    assert seen.conditions == (ConditionState(type="QuotaReserved", status="True", reason="QuotaReserved", message="m"),)
    assert (seen.is_active, seen.requeues, seen.queue, seen.replaces) == (False, 2, "user-queue", "")
    thing["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "namespace/job-job-0"}
    assert workload_seen(thing, KEY, 1.0).replaces == "namespace/job-job-0"


def test_a_request_has_the_number_in_its_name():
    assert provisioning_seen(request("job-0-abc-dws-prov-3"), KEY, 1.0).number == 3
    assert provisioning_seen(request("by-hand"), KEY, 1.0).number == 1


@pytest.mark.parametrize(
    ("thing", "status"),
    [
        (job(), "Running"),
        (job(suspended=True), "Suspended"),
        (job(condition("Complete")), "Complete"),
        (job(condition("FailureTarget"), condition("Failed", "True", "BackoffLimitExceeded")), "Failed"),
        (job(condition("Complete", "False")), "Running"),
    ],
)
def test_where_a_job_stands(thing, status):
    assert job_status(thing) == status


def test_a_submission_tells_what_was_charged_and_why_it_failed():
    seen = submission_seen(job(condition("Failed", "True", "BackoffLimitExceeded"), failed=3), KEY, 1.0)

    assert (seen.object_kind, seen.status, seen.reason, seen.failed) == ("Job", "Failed", "BackoffLimitExceeded", 3)


def test_a_ray_job_tells_its_cluster_and_what_ray_says():
    seen = submission_seen(ray_job("Failed", "FAILED", cluster="ray-0-abc", reason="AppFailed"), KEY, 1.0)

    assert (seen.object_kind, seen.status, seen.job_status, seen.ray_cluster, seen.reason) == (
        "RayJob",
        "Failed",
        "FAILED",
        "ray-0-abc",
        "AppFailed",
    )


def test_long_messages_are_cut():
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "a"},
        "type": "Warning",
        "reason": "R",
        "message": "x" * 5000,
    }

    seen = event_seen(event, 1.0)

    assert (seen.object_name, seen.is_warning, len(seen.message)) == ("Pod/a", True, 1000)


@pytest.mark.parametrize(("code", "number"), [(137, 9), (139, 11), (134, 6), (143, None), (1, None), (0, None)])
def test_codes_that_stand_for_a_signal(code, number):
    assert signal_in(code) == number
