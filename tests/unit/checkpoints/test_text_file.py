"""The text file of the Cloud Run guide."""

from pathlib import Path

import pytest

from harness.checkpoints import newest_committed, paths_of, step_path, survey, temporary_path
from harness.history import CheckpointSeen
from harness.scenario.faults import PathClass


def look(directory: Path, task: int = 0, job: str = "job") -> tuple[CheckpointSeen, ...]:
    seen = survey(directory, "text-file", task=task, job=job)

    assert seen.lost == ()
    return seen.checkpoints


def write(directory: Path, content: bytes, name: str = "job-task-0-checkpoint.txt") -> Path:
    path = directory / name
    path.write_bytes(content)
    return path


def test_the_file_holds_the_step(tmp_path: Path) -> None:
    write(tmp_path, b"15\n")

    (seen,) = look(tmp_path)

    assert (seen.step, seen.path, seen.state, seen.is_latest) == (15, "job-task-0-checkpoint.txt", "committed", True)
    assert (seen.files, seen.size_bytes) == (1, 3)


@pytest.mark.parametrize("content", [b"", b"  \n", b"1x", b"-1", "١٥".encode(), b"\xff", b"9" * 19, b" " * 5000 + b"1"])
def test_a_file_without_a_step_is_incomplete_and_still_what_is_restored(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, content)

    (seen,) = look(tmp_path)

    assert (seen.step, seen.state, seen.is_latest) == (-1, "incomplete", True)
    assert newest_committed(tmp_path, "text-file", job="job") is None


def test_the_file_under_its_temporary_name_is_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, b"5")
    write(tmp_path, b"10", "job-task-0-checkpoint.txt.tmp")

    assert [(seen.step, seen.state, seen.is_latest) for seen in look(tmp_path)] == [(5, "committed", True), (10, "temporary", False)]


def test_each_task_has_its_own_file(tmp_path: Path) -> None:
    write(tmp_path, b"5", "job-task-1-checkpoint.txt")
    write(tmp_path, b"6", "job-task-11-checkpoint.txt")
    write(tmp_path, b"7", "other-task-1-checkpoint.txt")

    assert [seen.step for seen in look(tmp_path, task=1)] == [5]
    assert look(tmp_path, task=0) == ()


def test_without_a_name_any_job_is_meant(tmp_path: Path) -> None:
    write(tmp_path, b"5", "whatever-task-0-checkpoint.txt")

    assert [seen.step for seen in look(tmp_path, job="")] == [5]


def test_a_step_can_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path, b"5")

    assert survey(tmp_path, "text-file", job="job", only_step=10).checkpoints == ()
    assert [seen.step for seen in survey(tmp_path, "text-file", job="job", only_step=5).checkpoints] == [5]


@pytest.mark.parametrize("path_class", ["data", "step"])
def test_the_file_is_data_and_the_checkpoint_itself(tmp_path: Path, path_class: PathClass) -> None:
    path = write(tmp_path, b"5")

    assert paths_of(tmp_path, "text-file", path_class, job="job") == (path,)


@pytest.mark.parametrize("path_class", ["metadata", "commit-marker", "pointer", "snapshot"])
def test_it_has_nothing_else(tmp_path: Path, path_class: PathClass) -> None:
    write(tmp_path, b"5")

    assert paths_of(tmp_path, "text-file", path_class, job="job") == ()


def test_every_step_has_the_same_path(tmp_path: Path) -> None:
    assert step_path(tmp_path, "text-file", 5, task=2, job="job") == tmp_path / "job-task-2-checkpoint.txt"
    assert temporary_path(tmp_path, "text-file", 5, task=2, job="job") == tmp_path / "job-task-2-checkpoint.txt.tmp"
    assert step_path(tmp_path, "text-file", 5) == tmp_path / "local-job-task-0-checkpoint.txt"
