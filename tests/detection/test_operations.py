"""Jobs that are wrong between two operations of their storage: killed exactly there they are caught, and the right job is not."""

import pytest

from harness.scenario import Injection, Scenario
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtOperation
from harness.verdict import Outcome
from tests.detection.conftest import Play
from tests.detection.trials import KILLED_ONCE, RIGHT, Trial, wrong_job
from workloads.broken import BROKEN

IN_PLACE = AtOperation(operation="write", path="checkpoint.json", after="save.begin", after_nth=2)
NOTHING_LEFT = AtOperation(operation="unlink", path="step_*/manifest.json")
POINTED = AtOperation(operation="rename", path="latest.tmp-*", nth=3)

WRONG = {
    "saves_in_place": (IN_PLACE, ("log-order", "resumes-from-newest-durable", "same-run")),
    "deletes_old_before_new": (NOTHING_LEFT, ("log-order", "resumes-from-newest-durable")),
    "latest_before_data": (POINTED, ("log-order", "same-run")),
}
"""Each with the one operation after which it is killed, and the checkers that may accuse it beside its own."""

COMMIT = {"path": "step_*.tmp-*", "operation": "rename", "after": "save.begin", "after_nth": 2}

RIGHT_MOMENTS = (
    AtOperation(operation="write", path="step_*.tmp-*/state.json", after="save.begin", after_nth=2),
    AtOperation(**COMMIT, when="before"),
    AtOperation(**COMMIT),
    AtOperation(operation="rename", path="latest.tmp-*", nth=2),
)
"""The same moments of a job that saves as one should."""


def killed_at(at: AtOperation, name: str) -> Scenario:
    injections = (Injection(fault=Kill(), at=at),)
    trial = Trial(name="when-killed-at-an-operation", wrong={}, right=(), expects=KILLED_ONCE, injections=injections)
    return trial.scenario(RIGHT["linear"] if name == "linear" else wrong_job(name))


@pytest.mark.parametrize("name", WRONG)
def test_a_job_that_is_wrong_between_two_operations_is_caught_when_it_is_killed_there(play: Play, name: str) -> None:
    at, others = WRONG[name]
    run = play(killed_at(at, name))

    accusers = {finding.checker for finding in run.verdict.findings if finding.outcome is Outcome.INVALID}
    assert BROKEN[name].promise in accusers, run.explain()
    assert accusers <= {BROKEN[name].promise, *others}, run.explain()
    landed = next(finding for finding in run.verdict.findings if finding.checker == "landed")
    assert landed.outcome is Outcome.VALID, run.explain()


@pytest.mark.parametrize("at", RIGHT_MOMENTS, ids=lambda at: f"{at.when}-{at.operation}-{at.path}")
def test_the_right_job_is_not_accused_at_the_same_moments(play: Play, at: AtOperation) -> None:
    run = play(killed_at(at, "linear"))
    assert run.verdict.is_valid, run.explain()


def test_a_moment_that_never_comes_proves_nothing(play: Play) -> None:
    run = play(killed_at(AtOperation(operation="rename", path="checkpoint"), "linear"))
    assert run.verdict.outcome is Outcome.UNKNOWN
