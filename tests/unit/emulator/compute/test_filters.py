"""Filters of lists: what is read, and what is refused rather than taken for something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.compute.filters import read_filter
from harness.emulator.failures import ApiError

DOCUMENT = {"name": "one", "status": "RUNNING", "labels": {"harness-run": "r1"}, "deletionProtection": False}


def holds(text):
    return all(condition.holds(DOCUMENT) for condition in read_filter(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("name = one", True),
        ('name="one"', True),
        ("name eq two", False),
        ("name != one", False),
        ("name ne two", True),
        ("labels.harness-run=r1", True),
        ("labels.harness-run:*", True),
        ("labels.other:*", False),
        ("labels.other != x", True),
        ("name:on", True),
        ("(name = one) (status = RUNNING)", True),
        ("(name = one) AND (status = STOPPING)", False),
        ("deletionProtection = false", True),
    ],
)
def test_a_filter_is_read(text, expected):
    assert holds(text) is expected


@pytest.mark.parametrize(
    "text", ["name", "name = one OR name = two", "NOT name = one", "size > 5", "name = one AND", "(name = one", "name = (a b)"]
)
def test_what_is_not_covered_is_refused(text):
    with pytest.raises(ApiError, match="filter"):
        read_filter(text)


@given(st.text(alphabet='name=! ():"*ANDORabc.-<>\\', max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        conditions = read_filter(text)
    except ApiError as error:
        is_sound = error.http_status == 400
    else:
        is_sound = bool(conditions) == bool(text)
    assert is_sound
