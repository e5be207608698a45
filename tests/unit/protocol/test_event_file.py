"""Following the event file."""

import pytest

from harness.errors import StoreError
from harness.history import Marked, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.event_file import EventFile, EventLimits
from harness.protocol.job_lines import JobLineReader

KEY = AttemptKey(0, 0)
LINE = b'{"event":"x","t":1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def open_file(path, **limits):
    return EventFile(path, reader=JobLineReader(KEY, 0.0), limits=EventLimits(**limits))


def test_a_line_is_read_once_and_only_when_it_is_whole(path):
    events = open_file(path)
    append(path, LINE + LINE[:5])
    assert len(events.read(2.0, 1 << 20)) == 1

    append(path, LINE[5:])

    assert events.read(2.0, 1 << 20) == [Marked(t_s=1.0, name="x")]
    assert events.read(2.0, 1 << 20) == []
    assert events.finish(2.0) == []


def test_a_small_budget_reads_all_in_several_turns(path):
    events = open_file(path)
    append(path, LINE * 5000)

    counts = []
    while not counts or not events.is_caught_up:
        counts.append(len(events.read(2.0, 1)))

    assert sum(counts) == 5000
    assert len(counts) > 1


@pytest.mark.parametrize("limits", [{"events": 10}, {"bytes": len(LINE) * 10}])
def test_what_is_over_a_limit_is_counted_and_not_kept(path, limits):
    events = open_file(path, **limits)
    append(path, LINE * 10)
    kept = len(events.read(2.0, 1 << 20))
    append(path, LINE * 90 + LINE[:3])
    kept += len(events.read(2.0, 1 << 20))

    (lost,) = events.finish(2.0)

    assert (kept, lost.count) == (10, 90)
    assert "90 over the limit" in lost.detail


def test_a_line_that_straddles_the_limit_is_counted_once(path):
    events = open_file(path, bytes=20)
    append(path, LINE + LINE[:7])
    assert len(events.read(2.0, 1 << 20)) == 1
    append(path, LINE[7:] + LINE)
    events.read(2.0, 1 << 20)

    assert [lost.count for lost in events.finish(2.0)] == [2]


def test_garbage_a_torn_end_and_a_long_line_are_named(path):
    events = open_file(path)
    append(path, b"garbage\n" + b'"' * (2 << 20) + b"\n" + b"torn")
    while not events.read(2.0, 8 << 20) and not events.is_caught_up:
        pass

    (lost,) = events.finish(2.0)

    assert isinstance(lost, ObservationLost)
    assert (lost.what, lost.count) == ("events", 3)
    assert lost.detail.startswith("events.jsonl: 1 longer than 1048576 bytes, 1 not an event, 1 torn last line")


def test_what_was_not_reached_in_time_is_named(path):
    events = open_file(path)
    append(path, LINE)

    assert [lost.detail.split(" (")[0] for lost in events.finish(2.0)] == ["events.jsonl: 1 unread rest of the file"]


def test_a_replaced_file_is_named(path):
    events = open_file(path)
    path.unlink()
    append(path, LINE)

    assert ["replaced or removed" in lost.detail for lost in events.finish(2.0)] == [True]


def test_a_directory_that_is_not_there_is_the_store_s_error(tmp_path):
    with pytest.raises(StoreError):
        open_file(tmp_path / "no" / "events")
