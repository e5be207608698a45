"""Jobs that are followed by their log alone, as ``harness init`` writes it: no result, no inspection, and no uninterrupted run."""

import pytest

from harness.scenario import Injection, LogPatterns, Outside, Scenario, Workload
from harness.scenario.expectations import Completes, MakesProgress, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.verdict import Outcome
from tests.detection.conftest import Play
from tests.detection.jobs.wrong_by_its_log import SAVE_EVERY, STEPS

LOGS = LogPatterns(
    step=r"^step (?P<step>\d+)",
    saved=r"saved checkpoint at step (?P<step>\d+)",
    resumed=r"resumed from step (?P<step>\d+)",
    done="training complete",
)


def killed(way: str) -> Scenario:
    """It is killed between two saves."""
    workload = Workload(
        name="followed",
        command=("{python}", "-m", "tests.detection.jobs.wrong_by_its_log", "{checkpoint_dir}", way),
        steps=STEPS,
        save_every=SAVE_EVERY,
        layout="files",
        speaks_protocol=False,
        outside=Outside(logs=LOGS),
    )
    return Scenario(
        name="a-followed-job-killed-without-notice-resumes",
        why="its log is all that is known of it",
        workload=workload,
        injections=(Injection(fault=Kill(), at=AtStep(step=14)),),
        expects=(
            Completes(),
            WithinRetries(attempts_max=2),
            ResumesFromNewestDurable(lost_steps_max=SAVE_EVERY),
            MakesProgress(),
        ),
    )


def test_a_right_job_is_valid(play: Play) -> None:
    run = play(killed("right"))
    assert run.verdict.outcome is Outcome.VALID, run.explain()


@pytest.mark.parametrize(
    ("way", "checker", "why"),
    [
        pytest.param("skips", "resumes-from-newest-durable", "skips steps 11 to 24", id="steps-that-nobody-does"),
        pytest.param("claims", "resumes-from-newest-durable", "nobody had saved and nobody had executed", id="a-step-that-nobody-saved"),
        pytest.param("stops", "completes", "the last step that it said is 25 of 60", id="work-that-is-left"),
    ],
)
def test_a_wrong_one_is_invalid(play: Play, way: str, checker: str, why: str) -> None:
    run = play(killed(way))
    assert run.verdict.outcome is Outcome.INVALID, run.explain()
    assert {finding.checker: finding.reason for finding in run.verdict.worst()}.keys() == {checker}
    assert why in run.explain()
