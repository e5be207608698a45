"""Attempts are counted, and each death that was charged is explained by an injection, by the platform, or by the job itself."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.retries import check
from harness.history import FaultRequested
from harness.scenario import Injection
from harness.scenario.cluster_faults import (
    BreakNode,
    CordonNode,
    DeletePods,
    EvictPods,
    ForgetImage,
    LoseNode,
    LosePool,
    LowerQuota,
    OccupyCapacity,
    PreemptWorkload,
    RestartComponent,
    RevokeCapacity,
)
from harness.scenario.expectations import WithinRetries
from harness.scenario.faults import FailWrites, Fault, FlipByte, Kill, KillRayProcess, Maintenance, Pause, SlowWrites
from harness.scenario.triggers import AtStep, OnEffect
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun


def judge(run: Run, *injections: Injection, attempts_max: int = 2, own_failures_max: int = 0, **fields: object) -> Finding:
    promise = WithinRetries(attempts_max=attempts_max, own_failures_max=own_failures_max)
    return check(promise, run.evidence(injections=injections, **fields))


def hit_and_crashed(fault: Fault, kind: str) -> tuple[Run, Injection]:
    """An injection acts, and then the job ends by itself."""
    run = Run().attempt(0).begin().steps(1, 7).request("hit", kind).observe("hit").exit(1)
    run.attempt(1).begin(5).steps(6, 20).complete()
    at = OnEffect(of="0-kill") if isinstance(fault, FlipByte) else AtStep(step=7)
    return run, Injection(fault=fault, at=at, name="hit")


def test_an_injected_death_is_counted_and_explained():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert finding.measures == {"attempts": 2.0, "own_failures": 0.0, "ended_from_outside": 1.0}
    assert "task 0 attempt 0 ended with signal 9" in finding.evidence[0]
    assert "(injected: 1-kill)" in finding.evidence[0]


def test_on_a_cluster_what_kubernetes_charged_is_told_apart_from_the_attempts():
    run = ClusterRun().submit().admit().attempt(0).begin().steps(1, 7).evict().exit(143, cause="platform").admit()
    run.attempt(1).begin(5).steps(6, 20).done().exit(0).submit(status="Complete").end_task().left().finish()
    kept = "attempts: 2, of at most 2; ended from outside: 1, by the job itself: 0"
    assert judge(run).reason == f"{kept}; failures charged to the Job's backoffLimit: 0"
    assert judge(resumed()).reason == kept


def test_an_attempt_too_many_is_broken():
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 7).killed("2-kill")
    finding = judge(run.attempt(2).begin(5).steps(6, 20).complete())
    assert (finding.outcome, finding.reason) == (Outcome.INVALID, "task 0 took 3 attempts, 2 are promised")


def test_a_death_of_the_job_itself_is_broken_unless_it_is_allowed():
    run = Run().attempt(0).begin().steps(1, 7).exit(1).attempt(1).begin(5).steps(6, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "1 attempt died of the job itself, 0 are allowed: task 0 attempt 0 ended with exit code 1" in finding.reason
    assert judge(run, own_failures_max=1).outcome is Outcome.VALID


def test_a_final_failure_is_a_death_too():
    run = Run().attempt(0).begin().steps(1, 7).exit(signal=11, retried=False).finish(succeeded=False)
    assert judge(run).outcome is Outcome.INVALID


@pytest.mark.parametrize("cause", ["fault", "timeout", "cancel", "grace", "platform"])
def test_what_the_platform_ended_is_not_the_job_s_own(cause: str):
    run = Run().attempt(0).begin().steps(1, 7).exit(143, cause=cause).attempt(1).begin(5).steps(6, 20).complete()
    finding = judge(run)
    assert (finding.outcome, finding.measures["ended_from_outside"]) == (Outcome.VALID, 1.0)


@pytest.mark.parametrize(
    ("fault", "kind", "explains"),
    [
        (FailWrites(), "fail-writes", True),
        (KillRayProcess(component="raylet"), "kill-ray-process", True),
        (Pause(), "pause", False),
        (SlowWrites(), "slow-writes", False),
        (FlipByte(), "flip-byte", False),
        (Maintenance(profile="cloudrun-job-cpu-maintenance"), "maintenance", False),
        (Maintenance(), "maintenance", True),
        (LoseNode(), "lose-node", True),
        (LosePool(), "lose-pool", True),
        (BreakNode(), "break-node", True),
        (BreakNode(how="kubelet"), "break-node", False),
        (BreakNode(how="partition"), "break-node", False),
        (EvictPods(), "evict-pods", True),
        (DeletePods(part="head"), "delete-pods", True),
        (DeletePods(part="submitter"), "delete-pods", False),
        (EvictPods(part="submitter"), "evict-pods", False),
        (PreemptWorkload(), "preempt-workload", True),
        (RevokeCapacity(), "revoke-capacity", True),
        (CordonNode(), "cordon-node", False),
        (LowerQuota(), "lower-quota", False),
        (OccupyCapacity(), "occupy-capacity", False),
        (ForgetImage(), "forget-image", False),
        (RestartComponent(), "restart-component", False),
    ],
)
def test_only_a_fault_that_takes_processes_or_storage_away_explains_a_death(fault: Fault, kind: str, *, explains: bool):
    run, injection = hit_and_crashed(fault, kind)
    cause = Injection(fault=Kill(), at=AtStep(step=99), name="0-kill")
    finding = judge(run, *((cause, injection) if isinstance(fault, FlipByte) else (injection,)))
    assert finding.outcome is (Outcome.VALID if explains else Outcome.INVALID)


@pytest.mark.parametrize("how", ["kubelet", "partition"])
def test_a_node_that_falls_silent_explains_a_death_when_it_is_held_for_lost(how):
    silent = Injection(fault=BreakNode(how=how), at=AtStep(step=7), name="hit")
    run = ClusterRun().attempt(0).pod().begin().steps(1, 7).request("hit", "break-node").observe("hit")
    lost, another = run.fork().node(state="Unknown"), run.fork().node("node-9", state="Unknown")
    assert judge(lost.exit(1).attempt(1).begin(5).steps(6, 20).complete(), silent).outcome is Outcome.VALID
    assert judge(another.exit(1).attempt(1).begin(5).steps(6, 20).complete(), silent).outcome is Outcome.INVALID
    assert judge(run.exit(1).node(state="Unknown").attempt(1).begin(5).steps(6, 20).complete(), silent).outcome is Outcome.INVALID


def test_a_fault_that_was_not_seen_explains_nothing():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultRequested, injection="hit", fault="fail-writes").exit(1)
    run.attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run, Injection(fault=FailWrites(), at=AtStep(step=7), name="hit")).outcome is Outcome.INVALID


def test_a_fault_that_the_attempt_got_over_explains_no_later_death():
    storage = Run().attempt(0).begin().steps(1, 6).request("hit", "fail-writes").observe("hit").steps(7, 12).exit(1)
    storage.attempt(1).begin(10).steps(11, 20).complete()
    assert judge(storage, Injection(fault=FailWrites(), at=AtStep(step=6), name="hit")).outcome is Outcome.INVALID
    ray = Run().attempt(0).begin().steps(1, 7).request("hit", "kill-ray-process").observe("hit").begin(5).steps(6, 8).exit(1)
    ray.attempt(1).begin(5).steps(6, 20).complete()
    assert judge(ray, Injection(fault=KillRayProcess(component="raylet"), at=AtStep(step=7), name="hit")).outcome is Outcome.INVALID


def test_an_attempt_that_was_held_for_dead_is_charged_however_it_ends():
    for code in (0, 75):
        run = Run().attempt(0).begin().steps(1, 7).request("1-overlap", "overlap-attempts").abandon()
        run.attempt(1).begin(5).on(0).exit(code).on(1).steps(6, 20).complete()
        finding = judge(run)
        assert (finding.outcome, finding.measures["ended_from_outside"]) == (Outcome.VALID, 1.0)
        assert "held for dead by the platform" in finding.evidence[0]


def test_an_attempt_after_a_success_is_broken():
    run = Run().attempt(0).begin().steps(1, 20).done().exit(0).attempt(1).begin(20).complete()
    assert "attempt 1 of task 0 was started although attempt 0 had exited 0" in judge(run).reason


def test_tasks_are_counted_apart():
    run = resumed()
    run.attempt(0, task=1).begin().steps(1, 20).done().exit(0, retried=False).end_task()
    assert judge(run).outcome is Outcome.VALID
    run.attempt(1, task=1).exit(1, retried=False)
    assert judge(run).outcome is Outcome.INVALID


@pytest.mark.parametrize("why", ["deadline", "hang", "interrupted", "error"])
def test_a_task_that_we_ended_may_have_needed_more_attempts(why: str):
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 8).exit(signal=9, cause="stop").close(why)
    finding = judge(run)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason == "task 0 was never seen to end: it had 2 attempts so far"
    assert finding.measures["own_failures"] == 0.0
    assert judge(run, attempts_max=1).outcome is Outcome.INVALID


def test_without_an_attempt_or_its_end_nothing_is_known():
    assert judge(Run()).outcome is Outcome.UNKNOWN
    assert judge(Run().attempt(0).begin().finish()).outcome is Outcome.UNKNOWN


def test_one_attempt_is_enough():
    assert judge(uninterrupted(), attempts_max=1).outcome is Outcome.VALID


End = Literal["kill", "crash", "overlap", "timeout"]


@given(st.lists(st.sampled_from(["kill", "crash", "overlap", "timeout"]), max_size=5), st.integers(1, 6), st.integers(0, 3))
def test_the_judgement_is_a_count(ends: list[End], attempts_max: int, own_failures_max: int):
    run = Run()
    for number, end in enumerate(ends):
        run.attempt(number).begin()
        if end == "kill":
            run.killed()
        elif end == "overlap":
            run.abandon()
        else:
            run.exit(1, cause="timeout" if end == "timeout" else "job")
    run.attempt(len(ends)).begin().steps(1, 20).complete()
    finding = judge(run, attempts_max=attempts_max, own_failures_max=own_failures_max)
    kept = len(ends) < attempts_max and ends.count("crash") <= own_failures_max
    assert finding.outcome is (Outcome.VALID if kept else Outcome.INVALID)
    assert finding.measures["ended_from_outside"] == len(ends) - ends.count("crash")
