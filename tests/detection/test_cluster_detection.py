"""What is wrong on a cluster is caught there, by the checker that is meant to; run where the cluster is, with ``-m slow``."""

from collections.abc import Callable

import pytest

from harness.checkers import ALWAYS, CHECKERS
from harness.kind.lock import TURN_S_MAX
from harness.runner import Run
from harness.targets import availability
from harness.targets.kubernetes.target import KubernetesTarget
from harness.verdict import Outcome
from tests.detection.cluster_trials import CLUSTER_TRIALS, UNTRIED, ClusterTrial, control_of, mistaken
from tests.detection.conftest import Play
from tests.detection.matrix import Row

Report = Callable[[Row], None]

TRIAL_S_MAX = TURN_S_MAX + 2400.0
"""It waits for its turn, is set up, runs to its deadline and is taken away; each of these has a limit of its own."""


@pytest.fixture
def _cluster(request: pytest.FixtureRequest) -> None:
    """Without a cluster a trial is skipped, or, with ``--require kind``, an error."""
    found = availability("kind")
    if not found.is_available and "kind" in str(request.config.getoption("--require")).split(","):
        pytest.fail(f"{found.reason}; {found.advice} (and --require names kind)", pytrace=False)
    if not found.is_available:
        pytest.skip(f"{found.reason}; {found.advice}")


@pytest.mark.slow
@pytest.mark.timeout(TRIAL_S_MAX)
@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize("trial", CLUSTER_TRIALS, ids=lambda trial: trial.scenario.name)
def test_what_is_wrong_on_a_cluster_is_caught_by_the_checker_that_is_meant_to(play: Play, report: Report, trial: ClusterTrial) -> None:
    run: Run = play(trial.scenario, target=KubernetesTarget)
    if trial.outcome is Outcome.INVALID:  # the matrix counts what is caught, and what proves nothing is not
        report(Row.of(trial.scenario.name, run.verdict, promise=trial.promise))

    assert not mistaken(trial, run.verdict), f"{mistaken(trial, run.verdict)}\n{run.explain()}"


@pytest.mark.parametrize("trial", CLUSTER_TRIALS, ids=lambda trial: trial.scenario.name)
def test_what_is_wrong_has_a_right_counterpart_that_makes_the_same_promise(trial: ClusterTrial) -> None:
    """Without a control a checker that always accuses would pass."""
    for scenario in (trial.scenario, control_of(trial)):
        assert trial.promise in {kind.__struct_config__.tag for kind in map(type, scenario.expects)} | ALWAYS.keys()
        assert "cluster" in scenario.tags


def test_what_is_not_tried_is_the_promise_of_a_checker() -> None:
    assert UNTRIED.keys() <= {kind.__struct_config__.tag for kind in CHECKERS}
