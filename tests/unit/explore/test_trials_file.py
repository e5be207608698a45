"""What was tried, on disk."""

from pathlib import Path

import pytest

from harness.errors import InvalidDocumentError
from harness.explore.judgement import Recovery
from harness.explore.recipe import Piece, StateTask, Tried
from harness.explore.trials_file import Trial, TrialsFile, read_trials


def trial(state: str, path: str = "x", detail: str = "") -> Trial:
    task = StateTask(state=state, pieces=(Piece(path=path, kind="directory"),))
    return Trial(task=task, tried=Tried(state=state, first=Recovery(exit_code=0, detail=detail, digests={3: {"w": "1"}})))


def test_a_trial_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    with TrialsFile(tmp_path / "tried") as file:
        kept = [trial("a"), trial("b", "\udcff\n", "line\nline"), trial("c")]
        for each in kept:
            file.keep(each)

        assert [file.read(state) for state in "bac"] == [kept[1], kept[0], kept[2]]
        assert ("b" in file, "z" in file, len(file)) == (True, False, 3)
    assert list(read_trials(tmp_path / "tried")) == kept


def test_what_was_read_in_between_does_not_harm_what_is_kept_next(tmp_path: Path) -> None:
    with TrialsFile(tmp_path / "tried") as file:
        file.keep(trial("a"))
        file.read("a")
        file.keep(trial("b"))

    assert [each.task.state for each in read_trials(tmp_path / "tried")] == ["a", "b"]


def test_a_line_that_was_torn_is_none(tmp_path: Path) -> None:
    with TrialsFile(tmp_path / "tried") as file:
        file.keep(trial("a"))
    with (tmp_path / "tried").open("ab") as file:
        file.write(b'{"task": {"sta')

    assert [each.task.state for each in read_trials(tmp_path / "tried")] == ["a"]


def test_a_line_that_was_edited_is_named(tmp_path: Path) -> None:
    (tmp_path / "tried").write_bytes(b"moon\n")

    with pytest.raises(InvalidDocumentError, match="line 1"):
        list(read_trials(tmp_path / "tried"))
    with pytest.raises(InvalidDocumentError, match="explore again, with --keep"):
        list(read_trials(tmp_path / "missing"))
