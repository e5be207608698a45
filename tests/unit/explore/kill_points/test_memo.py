"""What was tried stays on disk, for whoever comes next."""

import pytest

from harness.errors import StoreError
from harness.explore.judgement import Recovery
from harness.explore.kill_points.memo import Memo
from harness.explore.recipe import Piece, StateTask, Tried
from harness.explore.trials_file import Trial


def trial(state: str, path: str = "checkpoint") -> Trial:
    task = StateTask(state=state, pieces=(Piece(path=path, kind="directory"),))
    return Trial(task=task, tried=Tried(state=state, first=Recovery(exit_code=0, digests={2: {"total": "5"}})))


A, B = "a" * 64, "b" * 64


def test_what_one_has_tried_another_finds(tmp_path) -> None:
    Memo(tmp_path / "trials").keep(trial(A))

    other = Memo(tmp_path / "trials")

    assert other.find(A) == trial(A)
    assert other.find(B) is None
    assert other.states() == [A]


def test_a_name_that_is_no_text_is_kept(tmp_path) -> None:
    memo = Memo(tmp_path)
    memo.keep(trial(A, path="\udcff"))

    assert memo.find(A) == trial(A, path="\udcff")


def test_turns_leave_nothing_that_looks_like_a_trial(tmp_path) -> None:
    memo = Memo(tmp_path)
    with memo.turn(A):
        memo.keep(trial(A))
    with memo.turn(B):
        pass

    assert memo.states() == [A]


def test_a_torn_trial_is_no_answer(tmp_path) -> None:
    (tmp_path / f"{A}.json").write_text('{"task"')

    with pytest.raises(StoreError):
        Memo(tmp_path).find(A)
