"""What a moment is called, what is in flight at it, and the strip of all of them."""

import pytest

from harness.explore.moments import timeline
from harness.explore.recipe import Recipe
from harness.explore.rehearsal import acknowledges_of
from harness.explore.replay import replay
from harness.explore.result import Strip
from tests.unit.explore.recordings import Recording


@pytest.fixture
def recording(tmp_path) -> Recording:
    return Recording(tmp_path / "log")


def test_a_file_is_in_flight_while_it_is_open_or_not_synced(recording) -> None:
    recording.create("a")
    recording.write("a", b"1")
    recording.close("a")
    recording.create("step_7")
    recording.close("step_7")
    recording.sync("a")

    in_flight = {at: set(instant.in_flight) for at, instant in timeline(recording.replay()).instants.items()}

    assert in_flight == {0: set(), 1: {"a"}, 2: {"a"}, 3: {"a"}, 4: {"a", "step_*"}, 5: {"a"}, 6: set()}


def test_the_strip_holds_operations_and_words_in_order(recording) -> None:
    recording.mkdir("step_1")
    recording.say("save.begin", step=1)
    recording.create("step_1/a")
    recording.say("save.begin", step=2)
    recording.rename("step_1", "step_2")

    assert timeline(recording.replay()).strip == (
        Strip(index=1, kind="mkdir", path_class="step_*", marker="start"),
        Strip(index=2, kind="event", path_class="save.begin", marker="start"),
        Strip(index=3, kind="create", path_class="step_*/a", marker="save.begin", marker_nth=1),
        Strip(index=4, kind="event", path_class="save.begin", marker="save.begin", marker_nth=1),
        Strip(index=5, kind="rename", path_class="step_*", marker="save.begin", marker_nth=2),
    )


def test_a_last_line_without_its_end_is_a_word_when_the_job_has_ended(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.save_file("a", b"1")
    recording.print("saved 5")
    recording.end()
    recipe = Recipe(command=("job",), speaks_protocol=False, patterns={"saved": r"saved (?P<step>\d+)"})

    strip = timeline(replay(recording.log(), acknowledges_of(recipe))).strip

    assert strip[-1] == Strip(index=5, kind="event", path_class="saved", marker="start")


def test_an_operation_on_a_file_that_lost_its_name_is_called_by_its_last_one(recording) -> None:
    recording.create("a1")
    recording.rename("a1", "b1")
    recording.unlink("b1")
    recording.handles = {"b1": 1}
    recording.write("b1", b"1")

    point = timeline(recording.replay()).instants[4].point

    assert (point.operation, point.path_class) == ("write", "b*")
