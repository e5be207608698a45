"""The job goes on in the run that it began."""

import msgspec
import pytest

from harness.checkers.continuation import check
from harness.history import CheckpointSeen, CheckpointsSeen, ObservationLost
from harness.scenario import Platform
from harness.scenario.expectations import SameRun
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted

NAMED = msgspec.structs.replace(JOB, checkpoints="run")
RAY = msgspec.structs.replace(JOB, layout="ray-train")


def judge(run: Run) -> Finding:
    return check(SameRun(), run.evidence())


def looked(run: Run, *paths: str, elsewhere: tuple[str, ...] = ()) -> Run:
    """Storage is looked at; the checkpoints lie at these paths."""
    found = tuple(CheckpointSeen(step=5 * number, path=path, state="committed", digest=path) for number, path in enumerate(paths, start=1))
    return run.here(CheckpointsSeen, occasion="attempt-end", checkpoints=found, elsewhere=elsewhere)


def test_a_job_that_goes_on_where_it_was_is_right():
    finding = judge(resumed())
    assert (finding.outcome, finding.measures) == (Outcome.VALID, {"continued": 1.0})


def test_a_job_that_begins_anew_beside_something_durable_is_broken():
    finding = judge(Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin().steps(1, 20).complete())
    assert finding.outcome is Outcome.INVALID
    assert "began another run" in finding.reason
    assert "step 5 was durable" in finding.reason


def test_a_durable_step_that_falls_is_broken():
    run = Run().attempt(0).begin().steps(1, 12).killed().attempt(1).begin(10).lose(10).exit(1).attempt(2).begin(5).steps(6, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "the durable step fell from 10" in finding.reason


def test_damage_is_no_fall():
    run = Run().attempt(0).begin().steps(1, 12).killed().lose(10).damaged(fault="delete-path")
    assert judge(run.attempt(1).begin(5).steps(6, 20).complete()).outcome is Outcome.VALID


def test_a_second_run_directory_is_broken():
    run = Run(NAMED, is_surveyed=False).attempt(0).begin().steps(1, 7).killed()
    looked(run, "step_5", elsewhere=("run-1700000000",))
    finding = judge(run.attempt(1).begin(5).steps(6, 20).complete())
    assert finding.outcome is Outcome.INVALID
    assert "2 run directories hold checkpoints" in finding.reason
    assert "run, run-1700000000" in finding.reason


def test_runs_of_ray_train_are_told_by_where_their_checkpoints_lie():
    run = Run(RAY, is_surveyed=False).attempt(0).begin().steps(1, 7)
    looked(run.killed(), "run/checkpoint_1")
    looked(run.attempt(1).begin(5).steps(6, 20), "run/checkpoint_1", "run/checkpoint_2", elsewhere=("run",))
    assert judge(run.fork().complete()).outcome is Outcome.VALID
    looked(run, "run-1/checkpoint_1", "run-2/checkpoint_1")
    assert judge(run.complete()).outcome is Outcome.INVALID


def test_each_task_may_have_a_directory_of_its_own():
    run = Run(NAMED, Platform(tasks=2)).attempt(0).begin().steps(1, 7).killed()
    looked(run, "step_5", elsewhere=("run-of-task-1",))
    assert "run directories" not in judge(run.attempt(1).begin(5).steps(6, 20).complete()).reason


def test_checkpoints_where_the_scenario_does_not_look_prove_nothing():
    run = Run(NAMED, is_surveyed=False).attempt(0).begin().steps(1, 7).killed()
    looked(run, elsewhere=("run-1700000000",))
    finding = judge(run.attempt(1).begin(5).steps(6, 20).complete())
    assert finding.outcome is Outcome.UNKNOWN
    assert "the scenario looks in run" in finding.reason


@pytest.mark.parametrize(
    "run",
    [
        uninterrupted(),
        Run().attempt(0).begin().steps(1, 3).killed().attempt(1).begin().steps(1, 20).complete(),
        Run(SILENT, is_surveyed=False).attempt(0).exit(1).attempt(1).step(1).complete(),
    ],
)
def test_where_nothing_durable_was_found_nothing_is_proved(run: Run):
    assert judge(run).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("what", ["checkpoints", "events"])
def test_what_was_not_recorded_keeps_it_from_being_proved(what: str):
    assert judge(resumed().add(ObservationLost, what=what, count=1, detail="x")).outcome is Outcome.UNKNOWN
