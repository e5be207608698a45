"""Fewer marks where there are more than a screen has room for; what is left looks the same."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.report.timeline.rows import pack
from harness.report.timeline.sampling import merge, simplify, thin

PLACES = st.lists(st.floats(0, 900), max_size=200)
SPANS = st.lists(st.tuples(st.floats(0, 900), st.floats(0, 50)).map(lambda span: (span[0], span[0] + span[1])), max_size=60)


def test_ticks_that_lie_apart_all_stay():
    assert thin([5.0, 1.0, 3.0]) == [1.0, 3.0, 5.0]


def test_of_ticks_that_touch_the_first_stays():
    assert thin([1.0, 1.2, 2.4, 2.6]) == [1.0, 2.6]


@given(PLACES)
def test_thinned_ticks_are_ticks_and_lie_apart(places):
    kept = thin(places)

    assert set(kept) <= set(places)
    assert all(later - earlier >= 1.5 for earlier, later in pairwise(kept))
    assert all(any(0 <= place - tick < 1.5 for tick in kept) for place in places)


def test_a_line_keeps_first_lowest_highest_and_last_of_a_column():
    points = [(0.0, 5.0), (0.1, 9.0), (0.2, 6.0), (0.3, 1.0), (0.4, 4.0), (10.0, 2.0)]

    assert simplify(points) == [(0.0, 5.0), (0.1, 9.0), (0.3, 1.0), (0.4, 4.0), (10.0, 2.0)]


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0, 100)), max_size=300))
def test_a_simplified_line_has_the_same_ends_and_reach(points):
    points.sort()
    kept = simplify(points)

    assert len(kept) <= 4 * (900 / 1.5 + 1)
    assert [point for point in points if point in kept] == kept or len(set(points)) < len(points)
    if points:
        assert (kept[0], kept[-1]) == (points[0], points[-1])
        assert {min(y for _, y in kept), max(y for _, y in kept)} == {min(y for _, y in points), max(y for _, y in points)}


def test_spans_that_a_hair_parts_are_one():
    assert merge([(0.0, 1.0), (2.0, 3.0), (10.0, 11.0)]) == [(0.0, 3.0, 2), (10.0, 11.0, 1)]


@given(SPANS)
def test_merged_spans_hold_all_spans_and_lie_apart(spans):
    merged = merge(spans)

    assert sum(together for _, _, together in merged) == len(spans)
    assert all(any(begin <= span[0] and span[1] <= end for begin, end, _ in merged) for span in spans)
    assert all(later[0] - earlier[1] >= 1.5 for earlier, later in pairwise(merged))


@given(SPANS)
def test_no_two_spans_of_a_row_overlap(spans):
    rows = pack(spans)

    assert len(rows) == len(spans)
    for row in set(rows):
        mine = sorted(span for span, at in zip(spans, rows, strict=True) if at == row)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(mine))


def test_the_first_row_that_is_free_is_taken():
    assert pack([(0, 5), (1, 2), (3, 4), (6, 7)]) == [0, 1, 1, 0]
