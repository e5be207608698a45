"""Entries about objects of a cluster, beyond the events that the written exports hold."""

import pytest

from harness.history import ClusterEventSeen, PoolScaled, ProvisioningSeen, StepDone, SubmissionSeen, WorkloadSeen
from harness.incidents import JobWords, read_export, timeline_of
from harness.incidents.timestamps import write_timestamp
from tests.unit.incidents.logs import BEGIN_NS, Document, as_lines, diagnosed, kinds

WORKLOAD = "job-pretrain-0a1b2"


def entry(t_s: float, log: str, resource: str, **fields: object) -> Document:
    return {
        "insertId": f"e-{t_s}",
        "logName": f"projects/p/logs/{log}",
        "timestamp": write_timestamp(BEGIN_NS + round(t_s * 1e9)),
        "resource": {"type": resource, "labels": fields.pop("resource_labels", {})},
        **fields,
    }


def event(t_s: float, kind: str, name: str, reason: str, message: str = "") -> Document:
    payload = {"involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message}
    return entry(t_s, "events", "k8s_cluster", jsonPayload=payload)


def audited(t_s: float, thing: Document, where: str = "response") -> Document:
    payload = {"methodName": "io.x-k8s.kueue.v1beta1.workloads.status.update", where: thing}
    return entry(t_s, "cloudaudit.googleapis.com%2Factivity", "k8s_cluster", protoPayload=payload)


def workload(*conditions: tuple[str, str, str], active: bool = True) -> Document:
    told = [{"type": kind, "status": status, "reason": "r", "message": message} for kind, status, message in conditions]
    return {"kind": "Workload", "metadata": {"name": WORKLOAD}, "spec": {"active": active}, "status": {"conditions": told}}


def line(t_s: float, text: str, pod: str, labels: dict[str, str] | None = None) -> Document:
    place = {"pod_name": pod, "namespace_name": "default"}
    named = {"k8s-pod/batch_kubernetes_io/job-name": "pretrain", **(labels or {})}
    return entry(t_s, "stdout", "k8s_container", textPayload=text, labels=named, resource_labels=place)


def events_of(*entries: Document) -> list[object]:
    return [each.event for each in timeline_of(read_export(as_lines(entries)), JobWords()).seen]


@pytest.mark.parametrize("where", ["response", "request"])
def test_a_workload_in_an_audit_entry_tells_its_conditions(where):
    quota = (
        "QuotaReserved",
        "False",
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor x, 4 more needed",
    )

    (seen,) = events_of(audited(0, workload(quota, active=False), where))

    assert isinstance(seen, WorkloadSeen)
    assert (seen.name, seen.is_active, seen.holds("QuotaReserved")) == (WORKLOAD, False, False)


def test_waiting_told_by_conditions_is_waiting():
    quota = (
        "QuotaReserved",
        "False",
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor x, 4 more needed",
    )
    entries = [
        audited(0, workload(quota)),
        event(900, "Workload", WORKLOAD, "Admitted"),
        event(1000, "Workload", WORKLOAD, "FinishedWorkload"),
    ]

    assert kinds(diagnosed(as_lines(entries))) == {"waited-for-quota": "valid", "healthy": "valid"}
    assert kinds(diagnosed(as_lines(entries[:1]))) == {"waited-for-quota": "unknown"}


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("Succeeded", {"healthy": "valid"}),
        ("Failed", {"failed-by-itself": "invalid"}),
        ("OutOfSync", {"unknown": "unknown"}),
        ("WorkloadSliceReplaced", {"unknown": "unknown"}),
    ],
)
def test_a_workload_that_is_finished_is_complete_only_where_its_job_succeeded(reason, found):
    told = {"type": "Finished", "status": "True", "reason": reason, "message": "Job finished"}
    thing: Document = {"kind": "Workload", "metadata": {"name": WORKLOAD}, "status": {"conditions": [told]}}
    entries = [event(0, "Workload", WORKLOAD, "Admitted"), line(1, "Step 1", "pretrain-0-abcde"), audited(9, thing)]

    assert kinds(diagnosed(as_lines(entries))) == found


def test_a_request_in_an_audit_entry_is_a_fallback_and_its_end_a_revocation():
    def request(*conditions: str) -> Document:
        told = [{"type": kind, "status": "True"} for kind in conditions]
        name = f"{WORKLOAD}-dws-prov-2"
        return {"kind": "ProvisioningRequest", "metadata": {"name": name}, "status": {"conditions": told}}

    entries = [
        event(0, "Workload", WORKLOAD, "QuotaReserved"),
        audited(1, request("Accepted", "Provisioned")),
        audited(9, request("Accepted", "Provisioned", "BookingExpired", "CapacityRevoked")),
    ]

    assert kinds(diagnosed(as_lines(entries))) == {"capacity-revoked": "invalid", "fell-back-to-dws": "valid"}
    assert [seen.number for seen in events_of(*entries) if isinstance(seen, ProvisioningSeen)] == [2, 2]


def test_what_befalls_another_node_did_not_hit_the_job():
    def error(t_s: float, node: str) -> Document:
        payload = {"methodName": "compute.instances.hostError", "resourceName": f"projects/p/zones/z/instances/{node}"}
        return entry(t_s, "cloudaudit.googleapis.com%2Fsystem_event", "gce_instance", protoPayload=payload)

    mine = line(0, "Step 1", "pretrain-0-aaaaa", {"compute.googleapis.com/resource_name": "node-a"})

    assert "host-error" not in kinds(diagnosed(as_lines([mine, error(5, "node-b")])))
    assert "host-error" in kinds(diagnosed(as_lines([mine, error(5, "node-a")])))


def test_the_quota_of_a_project_is_told_from_that_of_a_queue():
    text = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 16.0 in region us-central1."
    entries = [event(0, "Workload", WORKLOAD, "Admitted"), event(1, "Pod", "pretrain-0-aaaaa", "FailedScaleUp", text)]

    (found,) = diagnosed(as_lines(entries)).diagnoses
    assert (found.kind, "quota of the project" in found.says) == ("waited-for-quota", True)


def test_addresses_that_are_used_up_are_no_stockout():
    text = "RESOURCE_POOL_EXHAUSTED: the resource pool of external IP addresses is exhausted"
    entries = [event(0, "Workload", WORKLOAD, "Admitted"), event(1, "Pod", "pretrain-0-aaaaa", "FailedScaleUp", text)]

    assert "stockout" not in kinds(diagnosed(as_lines(entries)))


@pytest.mark.parametrize(
    ("message_id", "kind"),
    [
        ("scale.up.error.out.of.resources", "stockout"),
        ("scale.up.error.quota.exceeded", "waited-for-quota"),
        ("scale.up.error.ip.space.exhausted", "unknown"),
    ],
)
def test_what_the_autoscaler_could_not_do_is_told_by_its_message_id(message_id, kind):
    result = {"resultInfo": {"results": [{"eventId": "e-1", "errorMsg": {"messageId": message_id, "parameters": ["group"]}}]}}
    log = "container.googleapis.com%2Fcluster-autoscaler-visibility"
    entries = [event(0, "Workload", WORKLOAD, "Pending"), entry(1, log, "k8s_cluster", jsonPayload=result)]

    assert set(kinds(diagnosed(as_lines(entries)))) == {kind}


def test_pods_that_run_together_are_one_attempt_and_only_one_of_them_is_heard():
    entries = []
    for step in range(1, 4):
        for index in (0, 1):
            label = {"k8s-pod/batch_kubernetes_io/job-completion-index": str(index)}
            entries.append(line(step + index / 10, f"Step {step}", f"pretrain-{index}-aaaaa", label))

    (story,) = timeline_of(read_export(as_lines(entries)), JobWords()).attempts

    assert [step.step for step, _ in story.of_type(StepDone)] == [1, 2, 3]
    assert len(story.lines()) == 6


def test_jobs_whose_names_begin_alike_are_told_apart():
    other = "job-pretrain-large-0a1b2"
    entries = [
        event(0, "Workload", WORKLOAD, "Admitted"),
        event(1, "Workload", other, "EvictedDueToPodsReadyTimeout"),
        event(2, "Pod", "pretrain-large-0-zzzzz", "OOMKilling", "Memory cgroup out of memory"),
        event(3, "Workload", WORKLOAD, "FinishedWorkload"),
    ]

    assert kinds(diagnosed(as_lines(entries), name="pretrain")) == {"healthy": "valid"}
    assert "out-of-memory" in kinds(diagnosed(as_lines(entries), name="pretrain-large"))


def test_the_autoscaler_is_heard_and_what_is_not_known_of_it_is_counted():
    visible = {
        "decision": {"scaleUp": {"increasedMigs": [{"mig": {"nodepool": "pool-a"}, "requestedNodes": 4}, {"requestedNodes": -1}, 7]}},
    }
    strange = {"noDecisionStatus": {"noScaleUp": {}}}
    log = "container.googleapis.com%2Fcluster-autoscaler-visibility"
    entries = [
        event(0, "Workload", WORKLOAD, "Admitted"),
        entry(1, log, "k8s_cluster", jsonPayload=visible),
        entry(2, log, "k8s_cluster", jsonPayload=strange),
        event(3, "Job", "pretrain", "Completed"),
    ]

    seen = events_of(*entries)

    assert [(each.pool, each.nodes) for each in seen if isinstance(each, PoolScaled)] == [("pool-a", 4), ("", 0), ("", 0)]
    assert [each.status for each in seen if isinstance(each, SubmissionSeen)] == ["Complete"]
    assert any(isinstance(each, ClusterEventSeen) for each in seen)
    assert diagnosed(as_lines(entries)).counts.unknown == 1
