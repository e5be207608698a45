"""How much judging is granted."""

import pytest

from harness.errors import UsageError
from harness.explore.budget import DEFAULT, Budget, read_budget


@pytest.mark.parametrize(
    ("text", "granted"),
    [
        ("60s", Budget(seconds=60.0)),
        ("1.5s", Budget(seconds=1.5)),
        ("5m", Budget(seconds=300.0)),
        ("1h", Budget(seconds=3600.0)),
        ("200", Budget(seconds=None, states=200)),
        ("all", Budget(seconds=None)),
    ],
)
def test_a_budget_is_seconds_or_states(text: str, granted: Budget) -> None:
    assert read_budget(text) == granted


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "soon", "1.5", "3 s", "s", "1d", "9" * 5000])
def test_anything_else_is_refused_with_what_was_given(text: str) -> None:
    with pytest.raises(UsageError, match="is no budget") as refused:
        read_budget(text)
    assert repr(text) in str(refused.value)


def test_by_default_the_most_telling_states_are_judged_even_if_that_takes_longer() -> None:
    assert DEFAULT.seconds_for(0) > DEFAULT.seconds_for(1) == 60.0


def test_what_was_asked_for_is_kept_for_all_states() -> None:
    asked = read_budget("5s")

    assert asked.seconds_for(0) == asked.seconds_for(2) == 5.0
    assert read_budget("7").seconds_for(0) == float("inf")


def test_a_budget_in_words_is_what_is_granted() -> None:
    assert [str(read_budget(text)) for text in ("60s", "1200", "all")] == ["60 s", "1,200 states", ""]
