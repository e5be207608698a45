"""What a literal means as each type."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.logging.query.values import (
    format_moment,
    parse_duration_s,
    parse_moment,
    parse_number,
    parse_severity,
    to_nanoseconds,
)


@given(st.integers(min_value=-62_135_596_800 * 10**9, max_value=253_402_300_799 * 10**9))
def test_a_moment_survives_writing_and_reading(moment_ns):
    assert parse_moment(format_moment(moment_ns)) == moment_ns


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_is_the_one_python_means(moment):
    assert parse_moment(moment.isoformat()) == to_nanoseconds(moment)
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=to_nanoseconds(moment) // 1000) == moment


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13-01", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00.0000000001Z", "0001-01-01T00:00:00+23:59", "now"]
)
def test_what_is_no_moment_is_none(text):
    assert parse_moment(text) is None


def test_durations_have_units():
    assert parse_duration_s("3.5s") == 3.5
    assert parse_duration_s("2m") == 120
    assert parse_duration_s("250ms") == 0.25
    assert parse_duration_s("3") is None


def test_numbers_are_written_as_in_json():
    assert parse_number("-1e3") == -1000
    assert parse_number("1_000") is None
    assert parse_number("٣") is None
    assert parse_number("x") is None


def test_a_severity_is_a_name_in_any_case_or_its_number():
    assert parse_severity("warning") == parse_severity(400) == parse_severity("400") == 400
    assert parse_severity("LOUD") is None
    assert parse_severity(True) is None
    assert parse_severity(None) is None
