"""Skipped steps of a job that is followed by its log, with no uninterrupted run to compare with."""

import pytest
from msgspec.structs import replace

from harness.checkers.resume import check
from harness.history import LogLine, ObservationLost, SaveEnded
from harness.scenario.expectations import ResumesFromNewestDurable
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run
from tests.unit.checkers.followed import JOB, killed, resumed, said


def judge(run: Run, golden: Run | None = None) -> Finding:
    promise = ResumesFromNewestDurable(lost_steps_max=20)
    return check(promise, run.evidence(promise, golden=golden))


def test_steps_that_nobody_said_after_a_resume_were_skipped():
    run = said(resumed(killed(*range(1, 25)), 20), *range(35, 61)).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "attempt 1 skips steps 21 to 34" in finding.reason
    right = judge(said(resumed(killed(*range(1, 25)), 20), *range(21, 61)).complete())
    assert right.outcome is Outcome.VALID
    assert "none was skipped" in right.reason


@pytest.mark.parametrize(
    ("first", "outcome"), [(30, Outcome.VALID), (25, Outcome.VALID), (20, Outcome.VALID), (40, Outcome.INVALID), (31, Outcome.INVALID)]
)
def test_a_log_of_every_tenth_step_leaves_out_nine(first: int, outcome: Outcome):
    run = said(resumed(killed(10, 20), 20), *range(first, 61, 10)).complete()
    assert judge(run).outcome is outcome


def test_a_gap_inside_a_life_is_a_skip_where_it_goes_on_at_its_stride():
    run = said(resumed(killed(*range(1, 25)), 20), *range(21, 31), *range(41, 61)).complete()
    assert "attempt 1 skips steps 31 to 40" in judge(run).reason
    early = said(resumed(killed(*range(1, 6), *range(12, 25)), 20), *range(21, 61)).complete()
    assert "attempt 0 skips steps 6 to 11" in judge(early).reason


def test_a_log_that_keeps_no_distance_tells_of_no_skip_and_proves_nothing():
    run = said(resumed(killed(1, 2, 3, 10, 20), 20), 30, 40, 60).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.UNKNOWN
    assert "nothing tells whether a step was skipped" in finding.reason


def test_too_few_lines_prove_nothing():
    assert judge(said(resumed(killed(10), 10), 40).complete()).outcome is Outcome.UNKNOWN


def test_a_job_that_says_few_steps_one_after_the_other_skips_none():
    epochs = replace(JOB, steps=3, save_every=1)
    assert judge(said(resumed(killed(1, workload=epochs), 1), 2, 3).complete()).outcome is Outcome.VALID


def test_a_job_that_says_no_steps_is_not_praised_for_skipping_none():
    run = Run(JOB).attempt(0).put(-1).here(SaveEnded, step=10).here(SaveEnded, step=20).killed()
    finding = judge(resumed(run, 20).here(SaveEnded, step=30).complete())
    assert finding.outcome is Outcome.VALID
    assert "none was skipped" not in finding.reason
    assert "its log says no step" in finding.reason


def test_what_a_progress_bar_leaves_out_is_not_skipped_and_a_wide_gap_proves_nothing():
    def shown(run: Run, *steps: int) -> Run:
        for step in steps:
            said(run.here(LogLine, stream="stderr", text=f"step {step}", is_redrawn=True), step)
        return run

    def bar(*steps: int) -> Run:
        return shown(resumed(shown(Run(JOB).attempt(0).put(-1), 3, 7, 10, 14, 18, 20, 24).killed(), 20), *steps).complete()

    right = judge(bar(23, 30, 36, 60))
    assert right.outcome is Outcome.VALID
    assert "none was skipped" not in right.reason
    assert judge(bar(50, 56, 60)).outcome is Outcome.UNKNOWN


def test_where_words_are_lost_a_step_may_be_among_them():
    run = said(resumed(killed(*range(1, 25)), 20), *range(35, 61)).add(ObservationLost, what="logs", count=3, detail="3 lines").complete()
    assert judge(run).outcome is Outcome.UNKNOWN


def test_who_goes_on_below_the_step_it_resumed_from_does_steps_again():
    run = said(resumed(killed(*range(1, 25)), 20), *range(1, 61)).complete()
    assert "attempt 1 executes steps 1 to 20 again" in judge(run).reason


def test_an_uninterrupted_run_tells_more_than_a_stride():
    golden = said(Run(JOB).attempt(0).put(-1), 1, 2, 3, 10, 20, 30, 40, 60).complete()
    run = said(resumed(killed(1, 2, 3, 10, 20), 20), 30, 40, 60).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
    assert judge(run, golden).outcome is Outcome.VALID
