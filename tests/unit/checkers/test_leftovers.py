"""What is left in the cluster is a verdict, and nobody looking is none."""

import pytest

from harness.checkers.leftovers import check
from harness.history import ObservationLost
from harness.scenario.expectations import LeavesNothing
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import ClusterRun, fallen_back


def judge(run: Run) -> Finding:
    return check(LeavesNothing(), run.evidence())


def test_a_look_that_found_nothing_is_right():
    assert judge(fallen_back()).outcome is Outcome.VALID


@pytest.mark.parametrize("what", ["ray-cluster", "workload", "pod", "provisioning-request", "quota"])
def test_whatever_is_left_is_broken(what: str):
    finding = judge(ClusterRun().left(what, "it", "still there").close())
    assert (finding.outcome, finding.measures) == (Outcome.INVALID, {"left": 1.0})
    assert f"{what} it was left at" in finding.reason


def test_nobody_looking_proves_nothing():
    for run in (resumed(), ClusterRun().submit().close()):
        finding = judge(run)
        assert finding.outcome is Outcome.UNKNOWN
        assert "nobody looked" in finding.reason


def test_a_look_that_missed_something_proves_nothing():
    lost = ClusterRun().add(ObservationLost, what="cluster", count=1, detail="pods could not be listed")
    assert isinstance(lost, ClusterRun)
    assert judge(lost.fork().left().close()).outcome is Outcome.UNKNOWN
    assert judge(lost.left("pod", "p").close()).outcome is Outcome.INVALID
