"""The harness on trial: it must catch every wrong job by the checker that is meant to, and accuse no right one of anything."""

from collections.abc import Callable

import pytest

from harness.checkers import ALWAYS, CHECKERS
from harness.runner import Run
from harness.scenario import Expectation, Scenario
from harness.verdict import Outcome
from tests.detection.cluster_trials import CLUSTER_TRIALS, UNTRIED
from tests.detection.matrix import Row
from tests.detection.trials import DOES_NOT_APPLY, NEEDS_NODE_LOSS, RIGHT, Trial, right_trials, wrong_job, wrong_trials
from workloads.broken import BROKEN

Play = Callable[[Scenario], Run]
Report = Callable[[Row], None]

WRONG = [pytest.param(name, trial, id=f"{name}-{trial.name}") for name, trial in wrong_trials() if name not in NEEDS_NODE_LOSS]
HIDDEN = [pytest.param(name, trial, id=f"{name}-{trial.name}") for name, trial in wrong_trials() if name in NEEDS_NODE_LOSS]
CONTROL = [pytest.param(name, trial, id=f"{name}-{trial.name}") for name, trial in right_trials()]


def checkers_that_said(outcome: Outcome, run: Run) -> set[str]:
    return {finding.checker for finding in run.verdict.findings if finding.outcome is outcome}


@pytest.mark.parametrize(("name", "trial"), WRONG)
def test_a_wrong_job_is_caught_by_the_checker_that_is_meant_to(play: Play, report: Report, name: str, trial: Trial) -> None:
    """Others may say so too, of what follows from the same mistake; and the fault has landed, so it is not luck."""
    run = play(trial.scenario(wrong_job(name)))
    report(Row.of(name, run.verdict, promise=BROKEN[name].promise))

    accusers = checkers_that_said(Outcome.INVALID, run)

    assert BROKEN[name].promise in accusers, run.explain()
    assert accusers <= {BROKEN[name].promise, *trial.wrong[name]}, run.explain()
    assert ALWAYS.keys() <= checkers_that_said(Outcome.VALID, run), run.explain()


@pytest.mark.parametrize(("name", "trial"), CONTROL)
def test_a_right_job_is_valid_by_every_checker(play: Play, report: Report, name: str, trial: Trial) -> None:
    run = play(trial.scenario(RIGHT[name]))
    report(Row.of(name, run.verdict))

    assert run.verdict.is_valid, run.explain()


@pytest.mark.parametrize(("name", "trial"), HIDDEN)
def test_what_only_the_loss_of_a_node_reveals_is_not_seen_in_the_death_of_a_process(
    play: Play, report: Report, name: str, trial: Trial
) -> None:
    """The limit of these trials, kept as a test: a run that kills processes proves nothing of power loss."""
    run = play(trial.scenario(wrong_job(name)))
    report(Row.of(name, run.verdict, promise=BROKEN[name].promise, note=NEEDS_NODE_LOSS[name]))

    assert run.verdict.is_valid, run.explain()


def test_every_wrong_job_has_one_trial() -> None:
    assert sorted(name for name, _ in wrong_trials()) == sorted(BROKEN)


def test_a_wrong_job_is_run_with_the_right_one_beside_it() -> None:
    """Without a control a checker that always accuses would pass."""
    for name, trial in wrong_trials():
        assert trial.right, name
        promises = {kind.__struct_config__.tag for kind in map(type, trial.expects)}
        assert BROKEN[name].promise in promises, name


@pytest.mark.parametrize("kind", CHECKERS, ids=lambda kind: str(kind.__struct_config__.tag))
def test_every_checker_has_a_wrong_job_that_it_must_catch(kind: type[Expectation]) -> None:
    promise = str(kind.__struct_config__.tag)
    caught = [name for name, job in BROKEN.items() if job.promise == promise and name not in NEEDS_NODE_LOSS]
    caught += [trial.scenario.name for trial in CLUSTER_TRIALS if trial.promise == promise]

    assert bool(caught) != (promise in UNTRIED)


@pytest.mark.parametrize("name", RIGHT)
def test_every_checker_that_applies_judges_every_right_job(name: str) -> None:
    asked = {type(promise) for job, trial in right_trials() if job == name for promise in trial.scenario(RIGHT[job]).expects}

    assert asked == CHECKERS.keys() - DOES_NOT_APPLY[name]
