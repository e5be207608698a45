"""What stays of a state that was tried again: its directories, and which of their files ought to be alike."""

import hashlib
from pathlib import Path

import pytest

from harness.explore.judgement import Recovery
from harness.explore.kept_state import KeptState, differing_results, keep_state
from harness.explore.recipe import Piece, StateTask, Tried
from harness.store import RunDirectory

SHA = hashlib.sha256(b"half").hexdigest()
TASK = StateTask(state="ab" * 32, pieces=(Piece(path="a", kind="directory"), Piece(path="a/b", kind="file", content=SHA)), again=True)
KEPT = KeptState(Path("kept"))
RESULT = "{checkpoint_dir}/out/final"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.blobs.mkdir()
    (directory.blobs / SHA).write_bytes(b"half")
    return directory


def test_a_state_is_as_the_crash_left_it_and_an_earlier_one_goes_away(run: RunDirectory) -> None:
    for _ in range(2):
        kept = keep_state(run, TASK)
        assert (kept.state / "a" / "b").read_bytes() == b"half"
        assert not kept.recovered.exists()
        kept.recovered.mkdir()


def test_recoveries_are_to_leave_theirs_beside_it(run: RunDirectory) -> None:
    kept = keep_state(run, TASK)

    assert kept.task(TASK).keeps == (str(kept.recovered), str(kept.recovered_again))
    assert kept.uninterrupted_task(TASK).keeps == (str(kept.uninterrupted),)
    assert kept.path.parent == run.kept


def tried(*results: str) -> Tried:
    first, second = (Recovery(exit_code=0, result=result) for result in results)
    return Tried(state="s", first=first, second=second)


@pytest.mark.parametrize(
    ("results", "differing"),
    [
        (("good", "good"), ()),
        (("bad", "good"), ("kept/recovered/out/final", "kept/uninterrupted/out/final")),
        (("good", "bad"), ("kept/recovered-again/out/final", "kept/uninterrupted/out/final")),
        (("", "bad"), ("kept/recovered-again/out/final", "kept/uninterrupted/out/final")),
        (("", ""), ()),
    ],
)
def test_results_that_differ_are_named_and_the_uninterrupted_one_last(results: tuple[str, str], differing: tuple[str, ...]) -> None:
    assert tuple(map(str, differing_results(KEPT, tried(*results), tried("good", "good"), RESULT))) == differing
    assert differing_results(KEPT, tried(*results), tried("good", "good"), "") == ()
