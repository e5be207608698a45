import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.incidents.timestamps import FIRST_YEAR, LAST_YEAR, read_timestamp, write_timestamp

NOON_NS = 1_772_366_400_000_000_000
FIRST_NS, LAST_NS = (read_timestamp(f"{year}-06-01T00:00:00Z") for year in (FIRST_YEAR, LAST_YEAR))


@pytest.mark.parametrize(
    ("text", "t_ns"),
    [
        ("2026-03-01T12:00:00Z", NOON_NS),
        ("2026-03-01T12:00:00.000000001Z", NOON_NS + 1),
        ("2026-03-01T13:30:00.5+01:30", NOON_NS + 500_000_000),
        ("2026-03-01T08:00:00-0400", NOON_NS),
        ("2026-03-01 12:00:00", NOON_NS),
        ("2026-03-01t11:59:60z", NOON_NS - 1_000_000_000),
    ],
)
def test_a_moment_is_read_as_it_may_be_written(text, t_ns):
    assert read_timestamp(text) == t_ns


@pytest.mark.parametrize(
    "text",
    ["", "now", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z", "1772366400", "2026-03-01"],
)
def test_what_is_no_moment_of_cloud_logging_is_refused(text):
    with pytest.raises(ValueError, match=r"timestamp|year"):
        read_timestamp(text)


@given(st.integers(FIRST_NS, LAST_NS))
def test_what_was_written_is_read_again_to_the_microsecond(t_ns):
    text = write_timestamp(t_ns)

    assert write_timestamp(read_timestamp(text)) == text
    assert read_timestamp(text) // 1000 == t_ns // 1000
