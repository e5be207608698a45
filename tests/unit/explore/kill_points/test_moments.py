"""The kill points of a recording, and the phase of the job's life that each lies in."""

import pytest

from harness.errors import UsageError
from harness.explore.data_file import DataFile
from harness.explore.frontier import Frontier
from harness.explore.judgement import Recovery
from harness.explore.judging.expected import Expected
from harness.explore.kill_points import moments as module
from harness.explore.kill_points.moments import dues_by_place, look_at_all, moments_of, phases_of
from harness.explore.replay import Replay
from tests.unit.explore.recordings import Recording


@pytest.fixture
def replayed(tmp_path) -> Replay:
    recording = Recording(tmp_path / "log")
    recording.say("start")
    recording.say("step", step=1)
    recording.say("save.begin", step=1)
    recording.create("new")
    recording.write("new", b"1")
    recording.rename("new", "checkpoint")
    recording.say("save.end", step=1)
    recording.unlink("checkpoint")
    return recording.replay()


@pytest.fixture
def frontier(replayed):
    with DataFile(replayed.log.data_path) as data:
        yield Frontier(replayed, data, Expected(golden=Recovery(exit_code=0)), [("posix", "process"), ("posix-weak", "node")])


def test_each_kill_point_is_there_once_on_each_surface(replayed, frontier) -> None:
    look_at_all(frontier)

    found = moments_of(frontier, replayed)

    assert len(set(found)) == len(found)
    plain = [each for each in found if each.model == "posix"]
    assert [each.point.operation or each.point.marker for each in plain] == ["start", "create", "write", "rename", "save.end", "unlink"]
    assert [each.model for each in found] == sorted(each.model for each in found)


def test_the_phase_is_told_by_the_last_word_and_the_operation(replayed, frontier) -> None:
    look_at_all(frontier)

    phases = {each.point.operation or each.point.marker: each.phase for each in moments_of(frontier, replayed) if each.model == "posix"}

    assert phases == {
        "start": "init",
        "create": "save",
        "write": "save",
        "rename": "commit",
        "save.end": "step",
        "unlink": "garbage-collection",
    }
    assert phases_of(replayed)[0] == "init"


def test_a_job_that_says_nothing_saves_from_the_beginning(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.create("checkpoint")
    recording.write("checkpoint", b"1")
    recording.unlink("checkpoint")

    assert phases_of(recording.replay()) == {0: "init", 1: "save", 2: "save", 3: "garbage-collection"}


def test_of_a_job_that_only_tells_that_it_has_saved_a_save_is_over_then(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.create("checkpoint")
    recording.say("saved")
    recording.write("checkpoint", b"1")

    assert phases_of(recording.replay()) == {0: "init", 1: "save", 2: "step", 3: "save"}


def test_a_first_attempt_that_makes_its_lock_restores_nothing(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.say("boot")
    recording.create("lock")
    recording.say("start")
    recording.create("checkpoint")

    assert [phase for _, phase in sorted(phases_of(recording.replay()).items())] == ["init", "init", "init", "step", "save"]


def test_a_kill_point_leaves_every_state_that_lacks_something_then(replayed, frontier) -> None:
    look_at_all(frontier)

    left = dues_by_place(frontier)

    after_rename = {place: dues for place, dues in left.items() if place[2].operation == "rename"}
    assert {place[0]: len(dues) for place, dues in after_rename.items()}["posix"] == 1
    assert {place[0]: len(dues) for place, dues in after_rename.items()}["posix-weak"] > 1
    assert set(left) == {(each.model, each.scope, each.point) for each in moments_of(frontier, replayed)}


def test_too_many_states_are_refused_with_advice(frontier, monkeypatch) -> None:
    monkeypatch.setattr(module, "STATES_MAX", 3)

    with pytest.raises(UsageError, match="3 states or more, too many to be tests; name fewer of --storage"):
        look_at_all(frontier)
