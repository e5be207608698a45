"""Exploring finds every job that is wrong in how it saves or recovers, without a hint, and passes the right one."""

from pathlib import Path

import pytest

from harness.verdict import Outcome
from tests.detection.kill_points import NODE, PROCESS, RIGHT, SAVES_NOTHING, WRONG, explore, found_on


@pytest.mark.parametrize("job", WRONG)
def test_a_job_that_is_wrong_is_found_where_its_fault_shows(job: str, tmp_path: Path) -> None:
    surface, promise = WRONG[job]

    exploration = explore(job, tmp_path)

    assert exploration.outcome is Outcome.INVALID
    assert promise in found_on(exploration, surface).promises
    assert exploration.reasons


def test_a_missing_fsync_shows_only_where_the_node_dies(tmp_path: Path) -> None:
    exploration = explore("renames_without_fsync", tmp_path)

    assert found_on(exploration, PROCESS).invalid == 0
    assert found_on(exploration, NODE).invalid > 0


def test_the_right_job_is_valid_in_every_state(tmp_path: Path) -> None:
    exploration = explore(RIGHT, tmp_path, seconds=60.0)

    assert exploration.outcome is Outcome.VALID, exploration.reasons
    for surface in (PROCESS, NODE):
        found = found_on(exploration, surface)
        assert (found.invalid, found.judged > 20) == (0, True)


def test_of_a_job_that_saves_nothing_nothing_is_claimed(tmp_path: Path) -> None:
    exploration = explore(SAVES_NOTHING, tmp_path)

    assert exploration.outcome is Outcome.UNKNOWN
    assert "acknowledged no save" in exploration.reasons[0]
