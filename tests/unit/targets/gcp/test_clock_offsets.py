"""Moments of other clocks on ours."""

import math
import random

import pytest

from harness.targets.gcp.clock_offsets import DRIFT, ClockOffset, SourceTimes


def test_what_was_seen_bounds_from_one_side_only():
    offset = ClockOffset()
    offset.seen(10.0, 110.0)

    assert math.isinf(offset.uncertainty_s)
    assert offset.to_ours(10.0) == 110.0


def test_an_exchange_bounds_from_both_sides():
    offset = ClockOffset()
    offset.seen(10.0, 110.4)
    offset.answered(111.0, 11.2, 111.4)

    assert offset.uncertainty_s <= 0.3
    assert offset.to_ours(11.2) == pytest.approx(111.2, abs=0.3)


def test_the_truth_lies_within_the_uncertainty_however_answers_are_delayed():
    chance = random.Random(1)
    for _ in range(50):
        true_offset_s, offset, now_s = chance.uniform(-1e5, 1e5), ClockOffset(), 1000.0
        for _ in range(20):
            asked_s = now_s = now_s + chance.uniform(0.0, 3.0)
            acted_s = asked_s + chance.uniform(0.0, 2.0)
            now_s = acted_s + chance.uniform(0.0, 2.0)
            offset.answered(asked_s, acted_s - true_offset_s, now_s)

        assert abs(offset.to_ours(0.0) - true_offset_s) <= 2 * offset.uncertainty_s
        assert offset.jumps == 0


@pytest.mark.parametrize("rate", [1 - DRIFT / 2, 1 + DRIFT / 2], ids=["slow", "fast"])
def test_bounds_grow_old_so_a_clock_that_drifts_is_followed(rate: float):
    offset = ClockOffset()
    offset.answered(100.0, 0.0, 100.01)
    hours_later_s = 4 * 3600.0
    theirs_s = hours_later_s * rate
    offset.answered(100.0 + hours_later_s, theirs_s, 100.01 + hours_later_s)

    assert offset.jumps == 0
    assert offset.to_ours(theirs_s) == pytest.approx(100.0 + hours_later_s, abs=0.02)


def test_a_clock_that_was_set_is_believed_anew():
    offset = ClockOffset()
    offset.answered(100.0, 50.0, 100.2)
    offset.answered(101.0, 5051.0, 101.2)

    assert offset.jumps == 1
    assert offset.to_ours(5051.0) == pytest.approx(101.1, abs=0.11)


def test_one_source_keeps_its_order_and_its_moments_are_neither_negative_nor_to_come():
    times = SourceTimes(epoch_s=100.0)
    times.offset.answered(99.0, 9.0, 99.5)

    placed = [times.place(theirs_s, 105.0) for theirs_s in (8.0, 12.0, 11.0, 500.0, math.nan, 13.0)]

    assert placed == sorted(placed)
    assert placed[0] == 0.0
    assert max(placed) == 5.0
