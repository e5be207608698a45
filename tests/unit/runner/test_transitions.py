"""A state is counted when an object comes into it, however often it is told."""

import pytest

from harness.history import Event, LogLine
from harness.history.cluster import ConditionState, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.runner.transitions import Transitions
from harness.scenario.triggers import OnCondition


def workload(kind: str = "Admitted", status: str = "True", reason: str = "", *, task: int = 0, uid: str = "w") -> WorkloadSeen:
    return WorkloadSeen(t_s=0.0, task=task, name="w", uid=uid, conditions=(ConditionState(type=kind, status=status, reason=reason),))


def submission(status: str, *, uid: str = "s", reason: str = "") -> SubmissionSeen:
    return SubmissionSeen(t_s=0.0, object_kind="Job", name="s", uid=uid, status=status, reason=reason)


def reached(at: OnCondition, *events: Event) -> list[int]:
    """The places at which the trigger is met."""
    transitions = Transitions(at, task=0)
    return [place for place, event in enumerate(events) if transitions.see(event)]


ADMITTED = OnCondition(of="workload", condition="Admitted")


def test_a_condition_that_is_told_again_is_no_second_time() -> None:
    assert reached(ADMITTED, workload(), workload(), workload(status="False"), workload()) == [0]


def test_the_nth_time_is_the_nth_change() -> None:
    at = OnCondition(of="workload", condition="Admitted", nth=2)

    assert reached(at, workload(), workload(), workload(status="False"), workload(), workload()) == [3]


def test_a_successor_of_the_object_counts_on() -> None:
    at = OnCondition(of="workload", condition="Admitted", nth=2)

    assert reached(at, workload(uid="one"), workload(uid="two"), workload(uid="one")) == [1]


def test_a_reason_that_is_asked_for_must_be_there() -> None:
    at = OnCondition(of="workload", condition="Evicted", reason="Preempted")

    events = [
        workload("Evicted", reason="AdmissionCheck"),
        workload("Evicted", reason="Preempted"),
        workload("Evicted", reason="Preempted"),
    ]
    assert reached(at, *events) == [1]


def test_a_status_that_is_false_must_be_said() -> None:
    at = OnCondition(of="workload", condition="Admitted", status="False")

    assert reached(at, workload("QuotaReserved"), workload(), workload(status="False")) == [2]


@pytest.mark.parametrize(
    "other",
    [
        workload(task=1),
        ProvisioningSeen(t_s=0.0, name="p", uid="p", conditions=workload().conditions),
        LogLine(t_s=0.0, stream="stdout", text="Admitted"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_other_objects_and_other_tasks_are_none_of_its_business(other) -> None:
    assert reached(ADMITTED, other) == []


def test_a_request_is_met_by_its_condition() -> None:
    at = OnCondition(of="provisioning-request", condition="Provisioned", nth=2)
    seen = [ProvisioningSeen(t_s=0.0, name=uid, uid=uid, conditions=(ConditionState(type="Provisioned", status="True"),)) for uid in "ab"]

    assert reached(at, seen[0], seen[0], seen[1]) == [2]


def test_a_submission_is_met_by_its_status() -> None:
    at = OnCondition(of="submission", condition="Running")

    assert reached(at, submission("Suspended"), submission("Running"), submission("Running")) == [1]


def test_a_submission_leaves_only_a_status_that_it_had() -> None:
    at = OnCondition(of="submission", condition="Running", status="False")

    assert reached(at, submission("Suspended"), submission("Running"), submission("Suspended")) == [2]
