"""Looking at checkpoints where the job says that they lie."""

import hashlib
import os
import shutil

import msgspec
import pytest

from harness.history import CheckpointsSeen, ObservationLost, ResultSeen
from harness.runner.observer import Observer
from harness.scenario import Outside, Scenario, Workload
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


def test_a_result_that_is_no_regular_file_is_not_there_and_holds_nobody_up(observer):
    workload = msgspec.structs.replace(observer.scenario.workload, outside=Outside(result="{checkpoint_dir}/final.json"))
    observer.scenario = msgspec.structs.replace(observer.scenario, workload=workload)
    path = observer.directory.checkpoints / "final.json"
    os.mkfifo(path)
    assert [event for event in observer.close(1.0) if isinstance(event, ResultSeen)] == [ResultSeen(t_s=1.0, path="final.json")]

    path.unlink()
    path.write_text("1.5")
    (seen,) = [event for event in observer.close(2.0) if isinstance(event, ResultSeen)]
    assert (seen.sha256, seen.size_bytes) == (hashlib.sha256(b"1.5").hexdigest(), 3)
