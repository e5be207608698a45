"""Time to pixels."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.report.timeline.scale import TICK_GAP_PX, Scale, round_step

SECONDS = st.floats(-1e9, 1e9)


def scale(begin_s: float, end_s: float, zero_s: float | None = None) -> Scale:
    return Scale(begin_s=begin_s, end_s=end_s, left=100.0, width=900.0, zero_s=zero_s)


def test_time_is_straight():
    assert [scale(0.0, 9.0).x(t_s) for t_s in (0.0, 3.0, 9.0)] == [100.0, 400.0, 1000.0]


def test_a_moment_outside_lies_on_the_nearer_border():
    assert (scale(1.0, 2.0).x(0.0), scale(1.0, 2.0).x(3.0)) == (100.0, 1000.0)


def test_a_run_of_one_moment_can_be_drawn():
    assert scale(1.0, 1.0).x(1.0) == 100.0
    assert scale(1.0, 1.0).ticks()


@pytest.mark.parametrize(
    ("begin_s", "end_s", "labels"),
    [
        (0.0, 0.9, ["0", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s", "0.6 s", "0.7 s", "0.8 s", "0.9 s"]),
        (0.0, 17.0, ["0", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s", "14 s", "16 s"]),
        (0.0, 720.0, ["0", "2 min", "4 min", "6 min", "8 min", "10 min", "12 min"]),
        (0.0, 14400.0, ["0", "30 min", "1 h", "1 h 30 min", "2 h", "2 h 30 min", "3 h", "3 h 30 min", "4 h"]),
    ],
)
def test_ticks_are_round(begin_s, end_s, labels):
    assert [tick.label for tick in scale(begin_s, end_s).ticks()] == labels


def test_a_close_up_counts_from_its_fault():
    labels = [tick.label for tick in scale(7.990, 8.020, zero_s=8.0).ticks()]

    assert labels == ["−10 ms", "−5 ms", "0", "+5 ms", "+10 ms", "+15 ms", "+20 ms"]


@example(5.960464477539063e-08, 5.960464477539063e-08, 900719926.1796875)
@given(SECONDS, SECONDS, st.one_of(st.none(), SECONDS))
def test_ticks_lie_inside_in_order_and_never_touch(one_s, other_s, zero_s):
    begin_s, end_s = sorted((one_s, other_s))
    ticks = scale(begin_s, end_s, zero_s).ticks()

    assert len(ticks) <= 900 / TICK_GAP_PX + 2
    assert all(100.0 <= tick.x <= 1000.0 for tick in ticks)
    assert [tick.x for tick in ticks] == sorted(tick.x for tick in ticks)


@given(SECONDS, SECONDS, SECONDS, SECONDS)
def test_later_never_lies_left_of_earlier(one_s, other_s, first_s, second_s):
    begin_s, end_s = sorted((one_s, other_s))
    axis = scale(begin_s, end_s)

    assert axis.x(min(first_s, second_s)) <= axis.x(max(first_s, second_s))


@given(st.floats(1e-9, 1e8))
def test_a_round_step_is_no_smaller_than_asked_and_not_much_larger(least_s):
    step_s = round_step(least_s)

    assert least_s * (1 - 1e-6) <= step_s <= max(least_s * 4.1, 2 * 86400.0)


def test_a_span_is_held_when_any_of_it_lies_inside():
    axis = scale(1.0, 2.0)

    assert axis.holds(0.0, 1.0)
    assert axis.holds(1.5, 9.0)
    assert not axis.holds(2.1, 3.0)
    assert not axis.holds(0.0, 0.9)
