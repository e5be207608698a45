"""A state that was tried again is as before only where the same is said of it, as surely."""

from pathlib import Path

import pytest

from harness.errors import InvalidDocumentError
from harness.explore.judgement import Broken, Judgement, Recovery
from harness.explore.recipe import Recipe
from harness.explore.rehearsal import read_rehearsed_log
from harness.explore.replaying import Again
from harness.explore.result import Moment, StateResult
from harness.explore.states import Cause, KillPoint
from harness.verdict import Outcome
from tests.unit.explore.recordings import Recording

NAME = "ab" * 32
POINT = KillPoint(marker="start", marker_nth=0, operation="", path_class="", nth=0)
FAILS = Broken(promise="recovers", says="recovery failed with exit code 1")
FAILS_OTHERWISE = Broken(promise="recovers", says="recovery failed with exit code 3")
NOT_KNOWN = Broken(promise="recovers", says="the worker was lost", outcome=Outcome.UNKNOWN)
LOSES = Broken(promise="keeps-what-was-acknowledged", says="it went on from scratch")


@pytest.mark.parametrize(
    ("before", "now", "is_the_same"),
    [
        ((), (), True),
        ((FAILS,), (FAILS_OTHERWISE,), True),
        ((FAILS,), (NOT_KNOWN,), False),
        ((NOT_KNOWN,), (FAILS,), False),
        ((FAILS,), (LOSES,), False),
        ((FAILS,), (), False),
    ],
)
def test_it_is_as_before_where_the_same_promises_are_broken_as_surely(
    before: tuple[Broken, ...], now: tuple[Broken, ...], is_the_same: bool
):
    again = Again(
        surface="posix × process",
        before=StateResult(state=NAME, moments=(Moment(at=0, point=POINT, cause=Cause()),), outcome=Outcome.INVALID, broken=before),
        now=Judgement(state=NAME, recovery=Recovery(), broken=now),
    )
    assert again.is_the_same is is_the_same


def test_a_log_that_was_cut_off_is_no_recording_to_judge_by(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.save_file("a", b"content")
    recording.end()
    recording.log()
    read_rehearsed_log(tmp_path, Recipe(command=("true",)))
    log = tmp_path / "operations.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))

    with pytest.raises(InvalidDocumentError, match="it ends before the run did"):
        read_rehearsed_log(tmp_path, Recipe(command=("true",)))


def test_a_state_that_nothing_leads_to_is_no_state():
    with pytest.raises(ValueError, match="has no moment that leads to it"):
        StateResult(state=NAME, moments=())
