"""What a replay finds otherwise than it was."""

from harness.explore.surroundings import differing, digests_of


def test_no_value_is_kept() -> None:
    kept = digests_of({"TOKEN": "very-secret", "STEPS": "12"})

    assert list(kept) == ["STEPS", "TOKEN"]
    assert "very-secret" not in "".join(kept.values())


def test_a_name_that_is_no_text_can_be_written_down() -> None:
    (name,) = digests_of({"A\udce9": "1"})
    assert name == "A\\xe9"


def test_what_says_nothing_of_the_job_is_not_compared() -> None:
    assert digests_of({"PWD": "/", "PYTEST_X": "1", "HARNESS_Y": "2", "CLOUD_RUN_Z": "3"}) == {}


def test_what_is_changed_gone_or_new_is_named() -> None:
    before = digests_of({"SAME": "1", "CHANGED": "1", "GONE": "1"})
    now = digests_of({"SAME": "1", "CHANGED": "2", "NEW": "1"})

    assert differing(before, now) == ("CHANGED", "GONE", "NEW")
    assert differing(before, before) == ()
