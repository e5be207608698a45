"""Lines of the protocol."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.history import BarrierReached, JobEvent, Marked, SaveBegun, Started, StepDone
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.job_lines import JobLineReader

ON_A_LOADED_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
READER = JobLineReader(AttemptKey(2, 1), 100.0)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "ab", "\x00", "\ud800", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=3),
)


def read(line: dict[str, object], now_s: float = 200.0) -> JobEvent:
    return READER.read_event(json.dumps(line).encode(), now_s)


def test_a_step_is_read_with_all_it_says():
    line = {
        "event": "step",
        "t": 150.5,
        "pid": 7,
        "rank": 3,
        "task": 0,
        "attempt": 0,
        "step": 4,
        "batch_ids": [1, 2],
        "digests": {"params": "ab"},
    }

    assert read(line) == StepDone(t_s=50.5, task=2, attempt=1, rank=3, pid=7, step=4, batch_ids=(1, 2), digests={"params": "ab"})


def test_an_unknown_name_is_a_marker_of_the_job():
    assert read({"event": "attempt.exited", "t": 101}) == Marked(t_s=1.0, task=2, attempt=1, name="attempt.exited")


def test_a_marker_may_carry_what_it_likes():
    assert read({"event": "gc", "t": 101, "digests": 5, "steps": "many", "step": 3}) == Marked(
        t_s=1.0, task=2, attempt=1, name="gc", step=3
    )


@pytest.mark.parametrize(
    ("t", "t_s"), [(150, 50.0), (200.9, 100.0), (201.1, 100.0), (-1, 100.0), ("x", 100.0), (None, 100.0), ([], 100.0), (True, 100.0)]
)
def test_only_a_stamp_that_can_be_true_is_used(t, t_s):
    assert read({"event": "boot", "t": t}).t_s == t_s


def test_a_missing_stamp_is_the_time_of_reading():
    assert read({"event": "boot"}).t_s == 100.0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_do_not_hide_their_line(number):
    line = f'{{"event":"step","step":3,"t":150,"loss":{number}}}'.encode()

    assert READER.read_event(line, 200.0) == StepDone(t_s=50.0, task=2, attempt=1, step=3)


@pytest.mark.parametrize(
    "line",
    [
        {"event": "step"},
        {"event": "step", "step": "1"},
        {"event": "step", "step": -1},
        {"event": "step", "step": 1.5},
        {"event": "step", "step": 1, "batch_ids": [10**30]},
        {"event": "step", "step": 1, "digests": {"params": 3}},
        {"event": "start"},
        {"event": "boot", "rank": -1},
        {"event": "boot", "pid": -1},
        {"event": 3},
        {"event": ""},
        {},
        [],
    ],
)
def test_a_line_with_a_wrong_field_is_no_event(line):
    with pytest.raises(ValueError, match=r"."):
        READER.read_event(json.dumps(line).encode(), 200.0)


@ON_A_LOADED_MACHINE
@given(
    st.dictionaries(st.sampled_from(["event", "t", "step", "rank", "pid", "digests", "batch_ids", "restored_step", "steps", "x"]), ANYTHING)
)
def test_whatever_stands_in_a_line_it_is_an_event_that_can_be_written_or_a_value_error(line):
    line = line | {"event": line.get("event", "step")}
    try:
        event = read(line)
    except ValueError:
        return
    assert (event.task, event.attempt) == (2, 1)
    assert 0 <= event.t_s + 100.0 <= 200.0
    msgspec.json.encode(event)


@ON_A_LOADED_MACHINE
@given(st.binary(max_size=200))
def test_garbage_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        READER.read_event(b"\xff" + data, 200.0)


def test_a_request_at_the_barrier_has_the_time_of_its_arrival():
    line = b'{"event":"save.begin","when":"before","t":150,"step":4,"rank":1,"pid":9,"digests":{}}'

    assert READER.read_barrier(line, 200.0) == BarrierReached(
        t_s=100.0, task=2, attempt=1, rank=1, pid=9, event="save.begin", when="before", step=4
    )


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"event":"step"}', b'{"event":"step","when":"now"}', b'{"event":"step","when":"after","x":' + b"[" * 100_000]
)
def test_another_request_is_a_value_error(line):
    with pytest.raises(ValueError, match="not a request at the barrier"):
        READER.read_barrier(line, 200.0)


def test_start_and_save_are_told_apart_from_markers():
    assert read({"event": "start", "restored_step": 0, "steps": 9, "t": 100}) == Started(
        t_s=0.0, task=2, attempt=1, restored_step=0, steps=9
    )
    assert read({"event": "save.begin", "step": 1, "t": 100}) == SaveBegun(t_s=0.0, task=2, attempt=1, step=1)


@pytest.mark.parametrize("stamp", [0.5, 99.9, -1.0, 202.0])
def test_a_stamp_from_before_the_run_or_from_the_future_is_not_believed(stamp):
    assert read({"event": "boot", "t": stamp}).t_s == 100.0
