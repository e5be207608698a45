"""A fault counts when it was requested and observed, in each attempt that was promised it."""

import pytest

from harness.checkers.landed import check
from harness.history import BarrierReached, FaultFailed, FaultRequested, Marked
from harness.scenario import Injection, Trigger
from harness.scenario.cluster_faults import LoseNode, LowerQuota
from harness.scenario.faults import FlipByte, Kill
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed, uninterrupted

KILL = Injection(fault=Kill(), at=AtStep(step=7))


def test_without_faults_there_is_nothing_to_land():
    finding = check(uninterrupted().evidence())
    assert (finding.outcome, finding.reason) == (Outcome.VALID, "no fault was declared")


def test_a_fault_that_was_requested_and_observed_has_landed():
    finding = check(resumed().evidence(injections=(KILL,)))
    assert finding.outcome is Outcome.VALID
    assert finding.measures == {"faults_declared": 1.0, "faults_landed": 1.0}
    assert "1-kill in attempt 0 was requested at" in finding.evidence[0]
    assert "wait status: signal 9" in finding.evidence[0]


def test_a_fault_that_never_came_says_what_it_waited_for_and_how_far_the_attempt_got():
    finding = check(uninterrupted().evidence(injections=(Injection(fault=Kill(), at=AtStep(step=25, rank=1)),)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "1-kill in attempt 0 was never requested: it waited for step 25 of rank 1; attempt 0 ended at" in finding.reason
    assert finding.reason.endswith("having reached step 20")


def test_an_operation_that_never_came_is_named():
    at = AtOperation(operation="rename", path="step_*", nth=2, after="save.begin", when="before")
    reason = check(uninterrupted().evidence(injections=(Injection(fault=Kill(), at=at),))).reason
    assert "it waited for the moment before operation 2 of kind rename on step_* by rank 0 since it said save.begin for time 1" in reason
    from_start = check(uninterrupted().evidence(injections=(Injection(fault=Kill(), at=AtOperation(operation="mkdir", path=".")),)))
    assert "the moment after operation 1 of kind mkdir on . by rank 0 since its start" in from_start.reason


@pytest.mark.parametrize("at", [AtStep(step=7), AtMarker(event="step", nth=7)])
def test_a_job_that_was_not_held_at_the_moment_was_not_hit_there(at: Trigger):
    def told(run: Run) -> Finding:
        return check(run.killed().attempt(1).begin(5).steps(6, 20).complete().evidence(injections=(Injection(fault=Kill(), at=at),)))

    finding = told(Run().attempt(0).begin().steps(1, 9))
    assert finding.outcome is Outcome.UNKNOWN
    assert "when the job had gone on to step: it keeps no barrier" in finding.reason
    held = Run().attempt(0).begin().steps(1, 7).here(BarrierReached, rank=0, event="step", when="after", step=7)
    assert told(held.here(Marked, rank=0, name="a-thread-speaks")).outcome is Outcome.VALID


def test_each_attempt_of_an_injection_is_owed_its_own_fault():
    twice = Injection(fault=Kill(), at=AtStep(step=7), attempts=(0, 1))
    finding = check(resumed().evidence(injections=(twice,)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "1 of 2 faults landed: 1-kill in attempt 1 was never requested" in finding.reason
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 7).killed().attempt(2).begin(5).steps(6, 20).complete()
    assert check(run.evidence(injections=(twice,))).outcome is Outcome.VALID


def test_an_attempt_that_never_was_is_named():
    late = Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=2, when="before"), attempts=(3,))
    reason = check(resumed().evidence(injections=(late,))).reason
    assert "the moment before occurrence 2 of save.begin on rank 0; task 0 had no attempt 3" in reason


def test_a_request_without_an_effect_proves_nothing():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultRequested, injection="1-kill", fault="kill").steps(8, 20).complete()
    finding = check(run.evidence(injections=(KILL,)))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason.endswith("and its effect was never seen")


def test_a_fault_that_could_not_act_says_why():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultFailed, injection="1-kill", detail="no such process").steps(8, 20).complete()
    finding = check(run.evidence(injections=(KILL,)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "could not act" in finding.reason
    assert "no such process" in finding.reason


def test_a_fault_that_began_to_act_and_failed_says_why():
    run = Run().attempt(0).begin().steps(1, 7).request("1-kill", "kill").here(FaultFailed, injection="1-kill", detail="half of it is done")
    finding = check(run.steps(8, 20).complete().evidence(injections=(KILL,)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "could not act" in finding.reason
    assert "half of it is done" in finding.reason


def test_a_fault_on_the_effect_of_another_lands_once_in_whatever_attempt():
    kill = Injection(fault=Kill(), at=AtStep(step=7), name="kill", attempts=(1,))
    flip = Injection(fault=FlipByte(), at=OnEffect(of="kill"))
    run = Run().attempt(0).begin().steps(1, 4).exit(1).attempt(1).begin().steps(1, 7).killed("kill").damaged("2-flip-byte")
    run.attempt(2).begin(5).steps(6, 20).complete()
    assert check(run.evidence(injections=(kill, flip))).outcome is Outcome.VALID
    missing = check(uninterrupted().evidence(injections=(kill, flip)))
    assert any("it waited for the effect of kill; the run had 1 attempt" in line for line in missing.evidence)


def test_what_a_trigger_waits_for_is_said_for_every_kind():
    injections = (
        Injection(fault=Kill(), at=OnLog(pattern="x+", nth=2)),
        Injection(fault=Kill(), at=AfterSeconds(seconds=2.5), attempts=(1,)),
        Injection(fault=LowerQuota(), at=AtSubmission()),
        Injection(fault=LoseNode(), at=OnCondition(of="workload", condition="Evicted", reason="Preempted", nth=2)),
    )
    said = " ".join(check(Run().evidence(injections=injections)).evidence)
    assert "occurrence 2 of a log line that matches 'x+'" in said
    assert "2.5 s of the attempt to pass" in said
    assert "the submission of the job" in said
    assert "occurrence 2 of Evicted=True (Preempted) of the workload" in said


@pytest.mark.parametrize("at", [AtSubmission(), OnCondition(of="workload", condition="Admitted")])
def test_what_goes_by_the_cluster_lands_once_in_whatever_attempt(at: Trigger):
    hit = Injection(fault=LoseNode(), at=at, name="hit")
    run = Run().attempt(0).begin().steps(1, 4).exit(1).attempt(1).begin().steps(1, 7).request("hit", "lose-node").observe("hit").exit(1)
    finding = check(run.attempt(2).begin(5).steps(6, 20).complete().evidence(injections=(hit,)))
    assert (finding.outcome, finding.measures["faults_declared"]) == (Outcome.VALID, 1.0)
