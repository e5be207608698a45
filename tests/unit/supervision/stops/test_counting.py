"""Counting to the operation that was asked for."""

import pytest

from harness.supervision.stops.counting import Stop, Stops


def met(stops: Stops, *paths: str, operation: str = "rename", rank: int = 0) -> list[int]:
    """Do operations one after the other; the numbers of those that were met, by the index of the stop."""
    found = []
    for path in paths:
        found += [stop.index for stop in stops.before(operation, path, rank)]
        found += [stop.index for stop in stops.after(operation, path, rank)]
    return found


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_nth_of_a_class_of_paths_is_met_once(when):
    stops = Stops([Stop(7, operation="rename", path="step_*", nth=2, when=when)])

    assert met(stops, "step_1") == []
    assert met(stops, "other") == []
    assert met(stops, "step_2") == [7]
    assert met(stops, "step_3", "step_4") == []


def test_another_kind_or_another_rank_does_not_count():
    stops = Stops([Stop(0, operation="rename", path="step_*", rank=1)])

    assert met(stops, "step_1", operation="unlink", rank=1) == []
    assert met(stops, "step_1", rank=0) == []
    assert met(stops, "step_1", rank=1) == [0]


def test_counting_begins_at_the_marker_of_that_rank_and_goes_on_at_the_next_one():
    stops = Stops([Stop(0, operation="rename", path="step_*", nth=2, after="save.begin", after_nth=2, rank=1)])

    stops.hear("save.begin", 1)
    stops.hear("save.begin", 0)
    stops.hear("save.end", 1)
    assert met(stops, "step_1", "step_2", rank=1) == []
    stops.hear("save.begin", 1)
    assert met(stops, "step_3", rank=1) == []
    stops.hear("save.begin", 1)
    assert met(stops, "step_4", rank=1) == [0]


def test_one_that_fails_is_not_counted():
    stops = Stops([Stop(0, operation="rename", path="step_*", nth=2)])

    stops.before("rename", "step_1", 0)
    assert stops.after("rename", "step_1", 0) == []
    assert [stop.index for stop in stops.after("rename", "step_2", 0)] == [0]


def test_who_is_held_before_an_operation_is_not_held_there_again():
    stops = Stops([Stop(0, operation="rename", path="step_*", when="before")])

    assert [stop.index for stop in stops.before("rename", "step_1", 0)] == [0]
    assert stops.before("rename", "step_1", 0) == []


def test_two_addresses_of_one_operation_are_both_met():
    stops = Stops([Stop(0, operation="rename", path="step_*"), Stop(1, operation="rename", path="step_*", after="save.begin")])
    stops.hear("save.begin", 0)

    assert met(stops, "step_1") == [0, 1]


def test_what_nobody_counts_now_need_not_be_looked_at():
    stops = Stops([Stop(0, operation="rename", path="a"), Stop(1, operation="unlink", path="b", after="gc.begin")])

    assert [stops.counts(kind) for kind in ("rename", "unlink", "write")] == [True, False, False]
    stops.hear("gc.begin", 0)
    met(stops, "a")
    assert [stops.counts(kind) for kind in ("rename", "unlink")] == [False, True]
    assert not stops.are_spent
    met(stops, "b", operation="unlink")
    assert stops.are_spent


def test_what_is_forgotten_holds_nobody():
    stops = Stops([Stop(0, operation="rename", path="step_*")])
    stops.forget()
    assert met(stops, "step_1") == []
