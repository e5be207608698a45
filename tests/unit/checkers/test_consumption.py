"""Hosts on provisioned capacity are tied to their request (case 61)."""

from typing import Any

import pytest

from harness.checkers.consumption import check
from harness.history import PodSeen
from harness.scenario.expectations import ConsumesProvisioning
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import CLASS, REQUEST, ClusterRun, condition, fallen_back

TIED = {"provisioning_request": REQUEST, "provisioning_class": CLASS}


def judge(run: Run) -> Finding:
    return check(ConsumesProvisioning(), run.evidence())


def provisioned() -> ClusterRun:
    run = ClusterRun().submit().queued().reserve().provisioning(condition("Accepted"), condition("Provisioned")).admit("dws")
    run.attempt(0)
    return run


def test_both_annotations_are_right():
    finding = judge(fallen_back())
    assert (finding.outcome, finding.measures) == (Outcome.VALID, {"hosts_judged": 1.0})


@pytest.mark.parametrize("missing", ["provisioning_request", "provisioning_class"])
def test_one_annotation_is_not_enough(missing: str):
    finding = judge(provisioned().pod(pool="dws-pool", **{**TIED, missing: ""}))
    assert finding.outcome is Outcome.INVALID
    assert "autoscaling.x-k8s.io/" in finding.reason


def test_a_host_that_goes_past_the_queue_is_told_by_its_node():
    run = ClusterRun().node("node-2", pool="dws-pool").attempt(0)
    assert judge(run.pod(node="node-2", pool="dws-pool")).outcome is Outcome.INVALID


def test_a_request_that_nobody_has_made_is_none():
    finding = judge(provisioned().pod(pool="dws-pool", **{**TIED, "provisioning_request": "another"}))
    assert finding.outcome is Outcome.INVALID
    assert "names another, and no such request was seen" in finding.reason


def test_another_class_keeps_no_node():
    finding = judge(provisioned().pod(pool="dws-pool", **{**TIED, "provisioning_class": "check-capacity.autoscaling.x-k8s.io"}))
    assert finding.outcome is Outcome.INVALID
    assert "names class check-capacity.autoscaling.x-k8s.io" in finding.reason


def test_the_request_of_another_task_is_not_its_own():
    run = provisioned().pod(pool="dws-pool", **TIED)
    run.submit(task=1).queued().reserve().provisioning(condition("Accepted"), condition("Provisioned")).admit("dws").attempt(0, task=1)
    finding = judge(run.pod("pod-1", pool="dws-pool", **TIED))
    assert finding.outcome is Outcome.INVALID
    assert f"names {REQUEST}, and no such request was seen: job-1-dws-prov-1" in finding.reason


def test_where_no_request_was_seen_nobody_knows_whether_there_was_one():
    run = ClusterRun().node("node-2", pool="dws-pool").attempt(0).pod(node="node-2", pool="dws-pool", **TIED)
    finding = judge(run)
    assert finding.outcome is Outcome.UNKNOWN
    assert "no request of task 0 was seen at all" in finding.reason


def waiting(run: ClusterRun, name: str = "pod-0", **fields: Any) -> ClusterRun:
    """A host that is bound to no node."""
    return run.pod(name, **{"node": "", "pool": "", "phase": "Pending", **fields})


def test_a_host_that_is_never_bound_owes_the_annotations_too():
    """Kueue makes no request where its config names other chips, and admits the job all the same."""
    run = waiting(waiting(provisioned()), reason="Unschedulable")
    finding = judge(run)
    assert (finding.outcome, finding.measures) == (Outcome.INVALID, {"hosts_judged": 1.0})
    assert "(pod pod-0, bound to no node) waited for provisioned capacity without autoscaling.x-k8s.io/" in finding.reason


def test_a_host_that_is_seen_before_its_admission_is_still_of_it():
    run = waiting(ClusterRun().submit().queued().reserve()).admit("dws")
    assert judge(run).outcome is Outcome.INVALID


def test_a_host_of_the_admission_before_owes_nothing_to_the_next():
    run = waiting(ClusterRun().submit().admit("on-demand")).evict()
    waiting(run, is_terminating=True)
    run.queued().reserve().provisioning(condition("Accepted"), condition("Provisioned")).admit("dws")
    finding = judge(waiting(run, phase="Deleted", is_terminating=True))
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "no host ran on provisioned capacity")


def test_a_host_that_only_waits_proves_nothing():
    finding = judge(waiting(provisioned(), **TIED))
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "no host ran on provisioned capacity")
    assert judge(waiting(provisioned(), **TIED).pod("pod-1", pool="dws-pool", **TIED)).measures == {"hosts_judged": 2.0}


def test_a_host_that_is_made_when_all_is_over_is_not_judged():
    run = provisioned()
    run.left()
    assert judge(waiting(run)).outcome is Outcome.UNKNOWN


def test_on_demand_hosts_and_heads_owe_nothing():
    run = ClusterRun().submit().admit("on-demand").node().attempt(0).pod()
    assert judge(waiting(run, "pod-1")).outcome is Outcome.UNKNOWN
    finding = judge(provisioned().here(PodSeen, name="head", uid="h", role="head", node="node-0", phase="Running"))
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "no host ran on provisioned capacity")


def test_without_a_cluster_nothing_is_known():
    finding = judge(resumed())
    assert finding.outcome is Outcome.UNKNOWN
    assert "target kind" in finding.reason
