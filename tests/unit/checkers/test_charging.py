"""Failures of the job are charged, evictions by the queue are not (case 58)."""

from harness.checkers.charging import check
from harness.scenario.expectations import ChargesRetries
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import ClusterRun, fallen_back


def judge(run: Run, failed_max: int = 0) -> Finding:
    return check(ChargesRetries(failed_max=failed_max), run.evidence())


def test_an_eviction_that_is_charged_to_nobody_is_right():
    finding = judge(fallen_back())
    assert (finding.outcome, finding.measures) == (Outcome.VALID, {"failures_charged": 0.0, "evictions": 1.0})


def test_an_eviction_that_is_charged_is_broken_even_within_the_budget():
    run = ClusterRun().submit().admit().evict().submit(failed=1).admit().end_workload().close()
    finding = judge(run, failed_max=3)
    assert finding.outcome is Outcome.INVALID
    assert "charged at" in finding.reason
    assert "for the eviction at" in finding.reason
    assert "Preempted" in finding.reason


def test_a_death_of_the_job_s_own_is_no_eviction():
    run = ClusterRun().submit().admit().attempt(0).begin().steps(1, 7).exit(1).evict().submit(failed=1).admit().close()
    assert judge(run, failed_max=1).outcome is Outcome.VALID
    assert judge(run, failed_max=0).outcome is Outcome.INVALID
    twice = ClusterRun().submit().admit().attempt(0).begin().exit(1).evict().submit(failed=2).admit().close()
    assert judge(twice, failed_max=2).outcome is Outcome.INVALID


def test_a_failure_while_it_is_admitted_counts_once_and_no_more_than_allowed():
    run = ClusterRun().submit().admit().submit(failed=1).submit(failed=1).submit(failed=2).close()
    assert judge(run, failed_max=2).outcome is Outcome.VALID
    finding = judge(run, failed_max=1)
    assert finding.outcome is Outcome.INVALID
    assert "2 failures were charged to job-0, 1 are allowed" in finding.reason


def test_a_count_that_falls_behind_for_a_moment_charges_nothing_twice():
    assert (
        judge(ClusterRun().submit().admit().submit(failed=1).submit(failed=0).submit(failed=1).close(), failed_max=1).outcome
        is Outcome.VALID
    )


def test_an_object_that_was_made_anew_begins_from_nothing():
    run = ClusterRun().submit().admit().submit(failed=1).submit(uid="another").submit(uid="another", failed=1).close()
    assert judge(run, failed_max=1).outcome is Outcome.INVALID


def test_what_cleaning_does_is_not_charged():
    assert judge(ClusterRun().submit().admit().left().submit(failed=1).close()).outcome is Outcome.VALID


def test_without_an_object_or_an_end_nothing_is_known():
    assert judge(resumed()).outcome is Outcome.UNKNOWN
    assert judge(ClusterRun().submit().admit().close("interrupted")).outcome is Outcome.UNKNOWN
    assert judge(ClusterRun().submit().admit().submit(failed=1)).outcome is Outcome.INVALID


def test_what_happens_because_a_run_was_ended_is_not_charged():
    run = ClusterRun().submit().admit()
    assert judge(run.fork().submit(failed=1).close("deadline", ended_s=run.t_s)).outcome is Outcome.VALID
    later = run.submit(failed=1)
    assert judge(later.close("deadline", ended_s=later.t_s)).outcome is Outcome.INVALID
