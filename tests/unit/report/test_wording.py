"""Figures read alike wherever they stand."""

import pytest

from harness.report.wording import count, duration, limit, moment, ordinal, sentence, share, size


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "–"),
        (0.0, "0 s"),
        (-0.00001, "0 s"),
        (0.00042, "0.4 ms"),
        (0.0352, "35 ms"),
        (0.0999, "0.10 s"),
        (1.349, "1.35 s"),
        (9.99, "9.99 s"),
        (9.999, "10.0 s"),
        (73.04, "73.0 s"),
        (119.99, "2 min 00 s"),
        (725.2, "12 min 05 s"),
        (12_000, "3 h 20 min"),
        (-0.029, "−29 ms"),
    ],
)
def test_a_duration_has_the_digits_that_a_reader_can_use(seconds, told):
    assert duration(seconds) == told


@pytest.mark.parametrize(("seconds", "told"), [(10.0, "10 s"), (0.5, "0.5 s"), (3600.0, "1 h"), (86400.0, "24 h"), (5400.0, "5400 s")])
def test_a_limit_has_no_digit_that_nobody_wrote(seconds, told):
    assert limit(seconds) == told


@pytest.mark.parametrize(
    ("part", "whole", "told"), [(1, 2, "50%"), (0, 2, "0%"), (2, 2, "100%"), (0.069, 1, "6.9%"), (0.999, 1, "99.9%"), (1, 0, "–")]
)
def test_a_share_is_never_rounded_to_all_or_nothing(part, whole, told):
    assert share(part, whole) == told


@pytest.mark.parametrize(("number", "told"), [(512, "512 B"), (7_924, "7.9 kB"), (48_052, "48.1 kB"), (999_999_999_999_999, "1000 TB")])
def test_sizes_are_decimal(number, told):
    assert size(number) == told


def test_names_become_sentences():
    assert sentence("jax-sigkill-costs-an-io-error") == "JAX SIGKILL costs an I/O error"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("the-guides-two-rayjobs-run-on-demand-and-on-dws", "The guide's two RayJobs run on-demand and on DWS"),
        ("the-deletion-of-the-coordinators-pod-ends-it", "The deletion of the coordinator's pod ends it"),
        ("a-restart-of-kuberay-and-the-api-server", "A restart of KubeRay and the API server"),
        ("guides-and-jobs-stay", "Guides and jobs stay"),
    ],
)
def test_a_title_has_the_hyphens_and_apostrophes_that_a_name_cannot_hold(name, told):
    assert sentence(name) == told


def test_numbers_agree_with_their_nouns():
    assert [count(1, "step"), count(0, "step"), count(1200, "step")] == ["1 step", "0 steps", "1,200 steps"]
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "13th",
        "21st",
        "102nd",
    ]


def test_a_moment_is_told_to_the_millisecond():
    assert moment(1234.5678) == "1,234.568"
