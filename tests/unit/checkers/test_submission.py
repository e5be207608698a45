"""Each task is one object, and stays it."""

from harness.checkers.submission import check
from harness.scenario import Platform
from harness.scenario.expectations import SubmittedOnce
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import ClusterRun, fallen_back


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
