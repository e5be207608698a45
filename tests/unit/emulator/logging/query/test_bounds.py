"""Which moments a filter can match at all."""

from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.logging.query import TimeBounds, find_time_bounds, matches, parse_filter
from harness.emulator.logging.query.values import format_moment

COMPARISONS = st.tuples(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", ":"]), st.integers(0, 5)).map(
    lambda drawn: f'timestamp{drawn[0]}"{format_moment(drawn[1])}"'
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from([f"({' OR '.join(parts)})", f"({' AND '.join(parts)})", f"(NOT {parts[0]})"])
    ),
    max_leaves=6,
)


@given(FILTERS, st.integers(-1, 6))
def test_no_match_lies_outside_of_the_bounds(text, moment_ns):
    tree = parse_filter(text)
    bounds = find_time_bounds(tree)
    if matches(tree, {"timestamp": format_moment(moment_ns)}):
        assert bounds.first_ns is None or bounds.first_ns <= moment_ns
        assert bounds.last_ns is None or bounds.last_ns >= moment_ns


def test_bounds_are_found_among_other_comparisons():
    text = f'severity=ERROR AND timestamp>="{format_moment(3)}" (timestamp<"{format_moment(9)}" AND timestamp>"{format_moment(1)}")'
    assert find_time_bounds(parse_filter(text)) == TimeBounds(3, 9)


def test_an_alternative_bounds_nothing():
    assert find_time_bounds(parse_filter(f'timestamp>"{format_moment(3)}" OR severity=ERROR')) == TimeBounds()
