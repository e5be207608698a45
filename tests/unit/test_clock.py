"""Time is injected: a clock that a test moves, and the machine's."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import Clock, ManualClock, SystemClock


def test_a_manual_clock_stands_still_until_it_is_moved():
    clock = ManualClock(monotonic_s=5.0, utc=datetime(2030, 1, 1, tzinfo=UTC))
    assert (clock.monotonic_s(), clock.monotonic_s()) == (5.0, 5.0)
    clock.advance(1.5)
    clock.sleep(0.5)
    assert clock.monotonic_s() == 7.0
    assert clock.utc() == datetime(2030, 1, 1, 0, 0, 2, tzinfo=UTC)


@given(st.lists(st.floats(0, 1e6), max_size=10))
def test_both_clocks_move_together(naps: list[float]):
    clock = ManualClock()
    began = clock.utc()
    for nap in naps:
        clock.sleep(nap)
    assert clock.monotonic_s() == pytest.approx(sum(naps))
    assert clock.utc() - began == pytest.approx(timedelta(seconds=sum(naps)), abs=timedelta(milliseconds=1))


def test_a_clock_does_not_go_back():
    with pytest.raises(ValueError, match=r"-1\.0 s"):
        ManualClock().advance(-1.0)


def test_the_machine_s_clock_is_monotonic_and_in_utc():
    clock: Clock = SystemClock()
    before = clock.monotonic_s()
    clock.sleep(0.0)
    assert clock.monotonic_s() >= before
    assert clock.utc().tzinfo is UTC
