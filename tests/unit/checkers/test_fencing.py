"""Once a newer attempt trains, no older one commits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.fencing import check
from harness.history import Booted, ObservationLost, SaveBegun, SaveEnded, Started, StepDone
from harness.scenario.expectations import SingleWriter
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import SILENT, Run, resumed, uninterrupted


def judge(run: Run) -> Finding:
    return check(SingleWriter(), run.evidence())


def overlapping() -> Run:
    """Attempt 0 is held for dead after step 7 and lives on beside attempt 1, which has taken over."""
    return Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).begin(5)


def test_an_older_attempt_that_stops_in_time_is_right():
    finding = judge(overlapping().on(0).step(8).exit(75).on(1).steps(6, 20).complete())
    assert finding.outcome is Outcome.VALID
    assert finding.measures == {"overlaps": 1.0}
    assert "attempt 0 committed nothing after attempt 1 took over" in finding.evidence[1]


def test_a_commit_beside_the_newer_attempt_is_broken():
    finding = judge(overlapping().on(0).step(8).save(8).exit(75).on(1).steps(6, 20).complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 committed step 8 at 2.40 s, although attempt 1 trained since 2.10 s" in finding.reason


def test_a_save_that_is_begun_and_given_up_breaks_nothing():
    assert judge(overlapping().on(0).begin_save(8).exit(75).on(1).steps(6, 20).complete()).outcome is Outcome.VALID


def test_a_commit_that_was_never_acknowledged_is_seen_on_storage():
    run = overlapping().on(0).begin_save(8).commit(8).exit(signal=9, cause="fault").on(1).steps(6, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 committed step 8, begun at" in finding.reason
    shared = overlapping().on(0).begin_save(8).on(1).steps(6, 8).save(8).on(0).exit(signal=9, cause="fault").on(1).steps(9, 20).complete()
    assert judge(shared).outcome is Outcome.VALID  # nobody can tell whose it is


def test_a_step_that_was_there_before_is_not_committed_again():
    run = overlapping().survey("attempt-end").on(0).begin_save(5).exit(signal=9, cause="fault").on(1).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_save_before_the_newer_attempt_trains_is_right():
    run = Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).boot().on(0).save(7).on(1).restore(7).start(7)
    assert judge(run.on(0).exit(75).on(1).steps(8, 20).complete()).outcome is Outcome.VALID


def test_every_pair_of_attempts_is_judged():
    run = overlapping().steps(6, 7).abandon().attempt(2).begin(5).on(0).exit(75).on(1).save(7).exit(75).on(2).steps(6, 20).complete()
    finding = judge(run)
    assert finding.measures == {"overlaps": 3.0}
    assert "attempt 1 committed step 7" in finding.reason


def test_without_an_overlap_nothing_was_there_to_fence():
    for run in (resumed(), uninterrupted(), Run()):
        finding = judge(run)
        assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, {"overlaps": 0.0})


def test_a_newer_attempt_that_never_trained_meanwhile_proves_nothing():
    never = (
        Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).boot().on(0).steps(8, 10).exit(0).on(1).exit(1).finish(succeeded=False)
    )
    assert judge(never).outcome is Outcome.UNKNOWN
    late = Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).boot().on(0).exit(75).on(1).start(5).steps(6, 20).complete()
    assert judge(late).outcome is Outcome.UNKNOWN


def test_a_job_that_was_never_heard_to_save_proves_nothing():
    run = Run(SILENT).attempt(0).step(7).abandon().attempt(1).step(6).on(0)
    finding = judge(run.fork().step(8).exit(0).on(1).exit(0).finish())
    assert finding.outcome is Outcome.UNKNOWN
    assert "the job says nothing of its saves" in finding.reason
    assert judge(run.here(SaveEnded, step=8).exit(0).on(1).exit(0).finish()).outcome is Outcome.INVALID


def test_lost_events_may_have_been_commits():
    run = overlapping().add(ObservationLost, what="events", count=1, detail="x").on(0).exit(75).on(1).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
    broken = overlapping().add(ObservationLost, what="events", count=1, detail="x").on(0).save(8).exit(75).on(1).steps(6, 20).complete()
    assert judge(broken).outcome is Outcome.INVALID


@pytest.mark.parametrize("first", [SaveBegun, SaveEnded])
def test_a_job_that_does_not_say_when_it_starts_takes_over_with_its_first_work(first: type):
    run = Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).here(first, step=6).on(0).save(8).exit(75).on(1).complete()
    assert judge(run).outcome is Outcome.INVALID


@given(st.lists(st.sampled_from(["older saves", "newer starts", "older ends"]), min_size=1, max_size=8))
def test_the_judgement_follows_the_order(story: list[str]):
    run = Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).boot()
    has_started = has_ended = was_together = is_broken = False
    for number, word in enumerate(story):
        if word == "newer starts" and not has_started:
            run.on(1).start(5)
            has_started, was_together = True, not has_ended
        elif word == "older ends" and not has_ended:
            run.on(0).exit(75)
            has_ended = True
        elif word == "older saves" and not has_ended:
            run.on(0).save(8 + number)
            is_broken = is_broken or has_started
    finding = judge(run.on(1).complete())
    expected = Outcome.INVALID if is_broken else Outcome.VALID if was_together else Outcome.UNKNOWN
    assert finding.outcome is expected, finding


def replaced() -> Run:
    """The pod of the only rank is replaced inside the attempt, and the old one lives on."""
    run = Run().attempt(0).here(Booted, pid=11).here(Started, restored_step=0, steps=20, pid=11).here(StepDone, step=7, pid=11)
    run.here(SaveBegun, step=7, pid=11).here(SaveEnded, step=7, pid=11).here(Booted, pid=22)
    return run.here(Started, restored_step=7, steps=20, pid=22)


def test_two_pods_of_a_rank_inside_one_attempt_are_two_writers():
    right = replaced().here(StepDone, step=8, pid=11).here(StepDone, step=8, pid=22).here(SaveEnded, step=8, pid=22).complete()
    assert judge(right).outcome is Outcome.VALID
    finding = judge(replaced().here(SaveEnded, step=8, pid=11).here(StepDone, step=8, pid=22).complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 committed step 8 at" in finding.reason
    assert "attempt 0 (life 1) trained since" in finding.reason


def test_a_pod_that_is_replaced_when_it_was_gone_leaves_nothing_to_fence():
    assert judge(replaced().here(StepDone, step=8, pid=22).complete()).outcome is Outcome.UNKNOWN


def test_a_container_that_outlives_its_recorded_end_is_still_a_writer():
    run = Run().attempt(0).begin().steps(1, 7).exit(signal=9, cause="fault").attempt(1).begin(5).on(0).save(8).on(1)
    finding = judge(run.steps(6, 20).complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 committed step 8" in finding.reason
