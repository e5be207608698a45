"""Other runs beside the job's own are told by checkpoints in them, not by their names."""

from pathlib import Path

import pytest

from harness.checkpoints import runs_beside
from harness.scenario import Layout


def step(directory: Path, number: int = 5) -> None:
    (directory / f"step_{number:08d}").mkdir(parents=True)


def test_a_directory_with_checkpoints_of_the_layout_is_another_run(tmp_path: Path):
    step(tmp_path / "run")
    step(tmp_path / "run-0912")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "step.txt").write_text("5")
    assert runs_beside(tmp_path / "run", "step-directories", mounted=tmp_path) == ("run-0912",)


def test_checkpoints_in_the_mounted_directory_itself_are_no_runs(tmp_path: Path):
    step(tmp_path, 5)
    step(tmp_path, 10)
    assert runs_beside(tmp_path, "step-directories", mounted=tmp_path) == ()
    step(tmp_path / "second")
    assert runs_beside(tmp_path, "step-directories", mounted=tmp_path) == ("second",)


def test_a_run_is_found_where_the_job_has_never_made_its_own(tmp_path: Path):
    step(tmp_path / "run-0912")
    assert runs_beside(tmp_path / "run", "step-directories", mounted=tmp_path) == ("run-0912",)


@pytest.mark.parametrize("layout", ["files", "step-directories"])
def test_unknown_files_and_what_is_not_there_show_nothing(tmp_path: Path, layout: Layout):
    if layout == "files":
        step(tmp_path / "other")
    assert runs_beside(tmp_path / "run" if layout == "files" else tmp_path / "gone" / "run", layout, mounted=tmp_path) == ()
