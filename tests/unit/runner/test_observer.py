"""Looking at checkpoints where the job says that they lie."""

import shutil

import pytest

from harness.history import CheckpointsSeen, ObservationLost
from harness.runner.observer import Observer
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes
from harness.store import RunDirectory


@pytest.fixture
def observer(tmp_path):
    workload = Workload(name="job", command=("job",), layout="orbax", checkpoints="tiny/checkpoints")
    directory = RunDirectory(tmp_path)
    directory.checkpoints.mkdir()
    return Observer(scenario=Scenario(name="a-job-is-seen", why="a test", workload=workload, expects=(Completes(),)), directory=directory)


def test_a_directory_that_the_job_has_not_made_yet_holds_nothing(observer):
    assert observer.look("attempt-end", 1.0, task=0, attempt=0) == [CheckpointsSeen(t_s=1.0, occasion="attempt-end", checkpoints=())]


def test_checkpoints_are_looked_for_where_they_lie(observer):
    (observer.directory.checkpoints / "7").mkdir()
    (observer.directory.checkpoints / "tiny" / "checkpoints" / "30").mkdir(parents=True)

    (seen,) = observer.look("attempt-end", 1.0, task=0, attempt=0)

    assert [(found.step, found.path) for found in seen.checkpoints] == [(30, "30")]


def test_a_mounted_directory_that_is_gone_is_a_loss_and_not_an_empty_one(observer):
    shutil.rmtree(observer.directory.checkpoints)

    lost = [event for event in observer.look("end", 1.0, task=0, attempt=0) if isinstance(event, ObservationLost)]

    assert [event.what for event in lost] == ["checkpoints"]
