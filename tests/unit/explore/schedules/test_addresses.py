"""Kill points of a recording as triggers."""

import pytest

from harness.errors import InvalidDocumentError
from harness.explore.moments import timeline
from harness.explore.schedules.addresses import markers_of, operations_of, operations_since, read_recording
from harness.scenario.triggers import AtOperation
from tests.unit.explore.recordings import Recording


@pytest.fixture
def recording(tmp_path) -> Recording:
    made = Recording(tmp_path / "log")
    made.create("owner")
    made.say("save.begin", step=1)
    made.mkdir("tmp-1")
    made.create("tmp-1/a")
    made.write("tmp-1/a", b"1")
    made.write("tmp-1/a", b"2")
    made.say("save.commit", step=1)
    made.close("tmp-1/a")
    made.rename("tmp-1", "step_1")
    made.say("save.begin", step=2)
    made.mkdir("tmp-2")
    return made


def log_of(recording: Recording):
    return recording.replay().log


def test_each_operation_is_addressed_from_the_last_word_before_it(recording) -> None:
    assert operations_of(log_of(recording)) == (
        AtOperation(operation="create", path="owner"),
        AtOperation(operation="mkdir", path="tmp-*", after="save.begin"),
        AtOperation(operation="create", path="tmp-*/a", after="save.begin"),
        AtOperation(operation="write", path="tmp-*/a", after="save.begin"),
        AtOperation(operation="write", path="tmp-*/a", nth=2, after="save.begin"),
        AtOperation(operation="rename", path="tmp-*", after="save.commit"),
        AtOperation(operation="mkdir", path="tmp-*", after="save.begin", after_nth=2),
    )


def test_a_close_is_no_address_since_nobody_can_be_held_there(recording) -> None:
    assert "close" not in {at.operation for at in operations_of(log_of(recording))}


def test_before_and_after_are_two_addresses_in_this_order(recording) -> None:
    found = operations_of(log_of(recording), whens=("after", "before"))
    assert [(at.operation, at.when) for at in found[:4]] == [
        ("create", "before"),
        ("create", "after"),
        ("mkdir", "before"),
        ("mkdir", "after"),
    ]


def test_all_that_follows_a_word_is_counted_from_it(recording) -> None:
    assert operations_since(log_of(recording), "save.begin") == (
        AtOperation(operation="mkdir", path="tmp-*", after="save.begin"),
        AtOperation(operation="create", path="tmp-*/a", after="save.begin"),
        AtOperation(operation="write", path="tmp-*/a", after="save.begin"),
        AtOperation(operation="write", path="tmp-*/a", nth=2, after="save.begin"),
        AtOperation(operation="rename", path="tmp-*", after="save.begin"),
        AtOperation(operation="mkdir", path="tmp-*", nth=2, after="save.begin"),
    )
    assert [at.operation for at in operations_since(log_of(recording), "save.begin", nth=2)] == ["mkdir"]
    assert operations_since(log_of(recording), "sigterm") == ()


def test_each_is_the_kill_point_of_the_recording_under_the_same_address(recording) -> None:
    """What an exploration has found there is confirmed live."""
    points = [instant.point for _, instant in sorted(timeline(recording.replay()).instants.items())]
    operations = [point for point in points if point.operation not in ("", "close")]

    found = operations_of(log_of(recording))

    assert [(at.operation, at.path, at.nth) for at in found] == [(point.operation, point.path_class, point.nth) for point in operations]
    assert [at.after or "start" for at in found] == [point.marker for point in operations]


def test_a_word_that_no_trigger_can_name_is_passed_over(recording) -> None:
    recording.say("Saved!")
    recording.rename("tmp-2", "step_2")
    assert operations_of(log_of(recording))[-1] == AtOperation(operation="rename", path="tmp-*", after="save.begin", after_nth=2)


def test_words_are_told_once_in_their_order(recording) -> None:
    assert markers_of(log_of(recording)) == ("save.begin", "save.commit")


def test_the_recording_of_a_job_is_the_newest_that_was_kept(tmp_path) -> None:
    for name in ("20260101T000000.000Z-0", "20260102T000000.000Z-0"):
        (tmp_path / name).mkdir()
        made = Recording(tmp_path / name / "log")
        made.create("checkpoint")
        made.replay()
    (tmp_path / "20260103T000000.000Z-0").mkdir()  # was all right, and was not kept

    assert read_recording(tmp_path).directory == tmp_path / "20260102T000000.000Z-0" / "log"
    assert read_recording(tmp_path / "20260101T000000.000Z-0").directory.parent.name == "20260101T000000.000Z-0"


def test_where_no_recording_was_kept_it_is_refused(tmp_path) -> None:
    with pytest.raises(InvalidDocumentError, match="harness explore"):
        read_recording(tmp_path)
