"""Each task is one object, and stays it."""

import pytest

from harness.checkers.submission import DOUBLED_WITHIN_S, check
from harness.scenario import Platform
from harness.scenario.expectations import SubmittedOnce
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import ClusterRun, condition, fallen_back


def judge(run: Run) -> Finding:
    return check(SubmittedOnce(), run.evidence())


def test_one_object_seen_again_and_again_is_right():
    finding = judge(fallen_back())
    assert (finding.outcome, finding.measures) == (Outcome.VALID, {"objects": 1.0})


def test_a_second_object_is_broken_even_under_the_same_name():
    finding = judge(ClusterRun().submit().submit(status="Deleted").submit(uid="another").close())
    assert finding.outcome is Outcome.INVALID
    assert "task 0 was submitted 2 times: job-0 (uid u0) at" in finding.reason


def test_a_run_that_was_broken_off_proves_nothing_but_may_have_broken_it():
    assert judge(ClusterRun().submit().close("interrupted")).outcome is Outcome.UNKNOWN
    assert judge(ClusterRun().submit()).outcome is Outcome.UNKNOWN
    assert judge(ClusterRun().submit().submit(uid="another").close("interrupted")).outcome is Outcome.INVALID


def test_every_task_must_have_been_seen():
    assert judge(resumed()).outcome is Outcome.UNKNOWN
    run = ClusterRun(platform=Platform(tasks=2)).submit()
    assert judge(run.fork().close()).outcome is Outcome.UNKNOWN
    assert judge(run.submit(task=1).close()).outcome is Outcome.VALID


@pytest.mark.parametrize("first", [ClusterRun().submit().queued(), ClusterRun().submit().admit()], ids=["waits", "admitted-at-once"])
def test_a_second_workload_beside_a_first_one_is_one_object_queued_twice(first):
    finding = judge(first.fork().kueue(uid="w-another", name="another").close())
    assert finding.outcome is Outcome.INVALID
    assert "Kueue made a second workload of task 0, another at" in finding.reason
    assert "`readOnly: false`" in finding.reason


def test_a_second_workload_is_right_where_an_elastic_job_has_grown_or_the_first_is_long_gone_or_finished():
    grown = ClusterRun().submit().admit().kueue(uid="w-another", name="another", replaces="namespace/job-job-0")
    assert judge(grown.close()).outcome is Outcome.VALID
    later = ClusterRun().submit().queued().watch(DOUBLED_WITHIN_S).kueue(uid="w-another", name="another")
    assert judge(later.close()).outcome is Outcome.VALID
    finished = ClusterRun().submit().queued().kueue(condition("Finished", "True", "OutOfSync", "m")).kueue(uid="w-another", name="another")
    assert judge(finished.close()).outcome is Outcome.VALID
