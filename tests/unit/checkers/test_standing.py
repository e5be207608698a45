"""Where the workload of each task stands at the end."""

import pytest

from harness.checkers.standing import check
from harness.scenario import Injection
from harness.scenario.cluster_faults import RevokeCapacity
from harness.scenario.expectations import WorkloadEnds
from harness.scenario.triggers import AtStep
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import STOCKOUT, ClusterRun, condition, fallen_back

STATES = ("finished", "admitted", "pending", "deactivated")


def judge(run: Run, state: str, message: str = "") -> Finding:
    return check(WorkloadEnds(state=state, message=message), run.evidence())


def ended(state: str) -> ClusterRun:
    run = ClusterRun().submit().queued()
    if state == "pending":
        run.reserve(said=STOCKOUT)
    if state in ("admitted", "finished", "deactivated"):
        run.admit("on-demand")
    if state == "deactivated":
        run.deactivate()
    if state == "finished":
        run.end_workload()
    return run.watch()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("promised", STATES)
def test_only_the_promised_state_is_right(state: str, promised: str):
    finding = judge(ended(state).close("finished" if state == "finished" else "deadline"), promised)
    assert finding.outcome is (Outcome.VALID if state == promised else Outcome.INVALID)


def test_a_state_that_has_just_begun_is_nobody_s_last():
    run = ended("admitted").evict()
    for promised in ("pending", "admitted", "finished"):
        finding = judge(run.fork().watch(5.0).close("deadline"), promised)
        assert finding.outcome is Outcome.UNKNOWN
        assert "task 0 was watched for 5.20 s, since when it was pending" in finding.reason
    assert judge(run.fork().watch(5.0).reserve().watch(5.0).close("deadline"), "pending").outcome is Outcome.VALID
    assert judge(run.watch(5.0).reserve().watch(5.0).close("deadline"), "finished").outcome is Outcome.INVALID


def test_how_long_it_must_stand_there_is_the_promise_s():
    promise = WorkloadEnds(state="pending", watched_s=20.0)
    run = ended("pending")
    assert check(promise, run.fork().close("deadline").evidence()).outcome is Outcome.UNKNOWN
    assert check(promise, run.watch(10.0).close("deadline").evidence()).outcome is Outcome.VALID


def test_what_it_waits_for_is_found_in_what_it_says():
    assert judge(ended("pending").close("deadline"), "pending", "not enough resources").outcome is Outcome.VALID
    finding = judge(ended("pending").close("deadline"), "pending", "Quota '.*' exceeded")
    assert finding.outcome is Outcome.INVALID
    assert STOCKOUT in finding.reason


def test_what_evicted_it_is_found_too():
    assert (
        judge(ended("deactivated").close("deadline"), "deactivated", "Evicted AdmissionCheck: dws-prov was rejected").outcome
        is Outcome.VALID
    )


def test_one_that_was_activated_again_waits():
    assert judge(ended("deactivated").reactivate().watch().close("deadline"), "pending").outcome is Outcome.VALID


def test_one_that_backs_off_waits():
    run = ended("admitted").evict().kueue(condition("Requeued", "False", "PodsReadyTimeout")).watch().close("deadline")
    finding = judge(run, "pending")
    assert finding.outcome is Outcome.VALID
    assert "backoff since" in finding.evidence[0]


def test_what_we_did_to_clean_up_does_not_count():
    run = ended("admitted").left("quota", "cluster-queue").deactivate().close("deadline")
    assert judge(run, "admitted").outcome is Outcome.VALID


def test_a_run_that_was_broken_off_might_have_ended_elsewhere():
    assert judge(ended("pending").close("interrupted"), "pending").outcome is Outcome.UNKNOWN
    assert judge(ended("pending").close("interrupted"), "finished").outcome is Outcome.UNKNOWN
    assert judge(ended("finished").close("interrupted"), "finished").outcome is Outcome.VALID


def test_without_a_workload_nothing_is_known():
    assert judge(resumed(), "finished").outcome is Outcome.UNKNOWN
    assert judge(fallen_back(), "finished").outcome is Outcome.VALID


def test_where_a_fault_did_not_land_no_other_end_is_held_against_it():
    revoke = Injection(fault=RevokeCapacity(), at=AtStep(step=7), name="revoke")
    run = ended("admitted").attempt(0).begin().steps(1, 7).request("revoke", "revoke-capacity")
    promise = WorkloadEnds(state="deactivated")
    assert check(promise, run.fork().close("deadline").evidence(injections=(revoke,))).outcome is Outcome.UNKNOWN
    assert check(promise, run.observe("revoke").close("deadline").evidence(injections=(revoke,))).outcome is Outcome.INVALID


def test_where_a_workload_goes_because_the_run_was_ended_is_not_where_it_stood():
    run = ended("admitted")
    history = run.fork().end_workload().close("deadline", ended_s=run.t_s)
    assert judge(history, "admitted").outcome is Outcome.VALID
    assert judge(history, "finished").outcome is Outcome.INVALID


def test_where_a_workload_would_have_stood_is_unknown_when_somebody_took_its_job_away():
    run = ended("admitted").submit(status="Deleted")

    assert judge(run, "admitted").outcome is Outcome.UNKNOWN
    assert judge(ended("admitted").close("deadline"), "finished").outcome is Outcome.INVALID
    assert judge(ended("admitted").submit(status="Deleted").close(), "finished").outcome is Outcome.UNKNOWN
    assert judge(ended("finished").submit(status="Complete").submit(status="Deleted").close(), "finished").outcome is Outcome.VALID
