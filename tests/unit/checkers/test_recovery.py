"""Recoveries keep within their time, and their parts add up."""

import pytest

from harness.checkers.recovery import check
from harness.history import ObservationLost
from harness.scenario.expectations import RecoversWithin
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed, uninterrupted


def judge(run: Run, total_s: float = 60.0, *, within_budget: bool = True) -> Finding:
    return check(RecoversWithin(total_s=total_s), run.evidence(within_budget=within_budget))


def test_a_recovery_in_time_is_right_and_told_in_parts():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    parts = {name: value for name, value in finding.measures.items() if name != "recovery_s"}
    assert {"detect_s", "requeue_s", "provision_s", "start_s", "restore_s", "replay_s"} <= parts.keys()
    assert sum(parts.values()) == pytest.approx(finding.measures["recovery_s"])


def test_a_recovery_that_takes_too_long_is_broken():
    finding = judge(resumed(), 0.5)
    assert finding.outcome is Outcome.INVALID
    assert "0.5 s are promised" in finding.reason


def test_the_slowest_of_several_decides():
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 12).killed("2-kill")
    run.t_s += 30
    run.attempt(2).begin(10).steps(11, 20).complete()
    assert judge(run, 60).outcome is Outcome.VALID
    assert judge(run, 60).measures["requeue_s"] > 30
    assert judge(run, 20).outcome is Outcome.INVALID


def dead() -> Run:
    return Run().attempt(0).begin().steps(1, 7).killed().attempt(1).boot()


def test_a_fault_that_nothing_new_followed_is_late_when_its_time_is_over():
    run = dead()
    assert judge(run.fork().close("deadline")).outcome is Outcome.UNKNOWN
    run.t_s += 100
    finding = judge(run.close("deadline"))
    assert finding.outcome is Outcome.INVALID
    assert "had not recovered" in finding.reason
    assert judge(run, within_budget=False).outcome is Outcome.UNKNOWN


def test_without_a_recovery_nothing_is_measured():
    assert judge(uninterrupted()).outcome is Outcome.UNKNOWN
    assert judge(Run()).outcome is Outcome.UNKNOWN


def test_lost_events_may_have_been_the_first_new_step():
    run = resumed().add(ObservationLost, what="events", count=1, detail="x")
    assert judge(run, 0.5).outcome is Outcome.UNKNOWN
    assert judge(run).outcome is Outcome.UNKNOWN
