"""Each sample once and in order, over every kill and resume."""

from harness.checkers.data_order import check
from harness.history import ObservationLost
from harness.scenario.expectations import ExactlyOnceData
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, batch_of, resumed, uninterrupted


def judge(run: Run, golden: Run | None = None) -> Finding:
    return check(ExactlyOnceData(), run.evidence(golden=golden or uninterrupted()))


def alone(run: Run) -> Finding:
    """Without an uninterrupted run."""
    return check(ExactlyOnceData(), run.evidence())


def killed() -> Run:
    return Run().golden().attempt(0).begin().steps(1, 7).killed()


def shifted(run: Run, first: int, last: int, by: int) -> Run:
    for step in range(first, last + 1):
        run.step(step, batch_ids=batch_of(step + by))
    return run


def test_the_same_samples_in_the_same_order_are_valid():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert "20 retained batches" in finding.reason
    assert "2 lost ones" in finding.reason
    assert judge(Run().golden().attempt(0).begin().steps(1, 20).complete()).outcome is Outcome.VALID


def test_an_order_that_restarts_is_named_with_step_and_samples():
    finding = judge(shifted(killed().attempt(1).begin(5), 6, 20, by=-5).complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 1 (after resume 1 from step 5) took samples (0, 1, 2, 3) at step 6" in finding.reason
    assert "the uninterrupted run (20, 21, 22, 23)" in finding.reason


def test_an_order_that_is_wrong_only_after_the_second_resume_says_so():
    run = killed().attempt(1).begin(5).steps(6, 12).killed("2-kill").attempt(2).begin(10)
    assert "attempt 2 (after resume 2 from step 10) took" in judge(shifted(run, 11, 20, by=3).complete()).reason


def test_lost_work_with_other_samples_is_broken():
    run = Run().golden().attempt(0).begin().steps(1, 6)
    run = shifted(run, 7, 7, by=1).killed().attempt(1).begin(5).steps(6, 20).complete()
    finding = judge(run)
    assert (finding.outcome, "work that was not retained" in finding.reason) == (Outcome.INVALID, True)


def test_steps_that_were_passed_over_are_broken():
    finding = judge(killed().attempt(1).begin(5).steps(9, 20).complete())
    assert (finding.outcome, "step 6 is not among the retained steps up to 20; 3 are missing" in finding.reason) == (Outcome.INVALID, True)


def test_a_step_that_was_saved_but_not_said_leaves_its_samples_unknown():
    run = Run().golden().attempt(0).begin().steps(1, 9).begin_save(10).commit(10).killed().attempt(1).begin(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN


def test_a_step_that_counts_twice_is_broken():
    finding = judge(Run().golden().attempt(0).begin().steps(1, 7).steps(7, 20).complete())
    assert (finding.outcome, "retained 2 times" in finding.reason) == (Outcome.INVALID, True)


def test_a_step_that_the_uninterrupted_run_has_not_is_unknown():
    assert judge(Run().golden().attempt(0).begin().steps(1, 22).complete()).outcome is Outcome.UNKNOWN


def test_every_rank_has_its_own_samples():
    def run(second: tuple[int, ...]) -> Run:
        told = Run().golden().attempt(0).begin().begin(rank=1)
        return told.step(1).step(1, rank=1, batch_ids=second).step(2).step(2, rank=1, batch_ids=(7,)).close()

    assert judge(run((5,)), run((5,))).outcome is Outcome.VALID
    assert "at step 1 on rank 1" in judge(run((6,)), run((5,))).reason


def test_a_run_that_does_not_repeat_itself_refutes_nothing():
    run = Run().golden(equal=False).attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5)
    assert judge(shifted(run, 6, 20, by=1).complete()).outcome is Outcome.UNKNOWN


def test_without_an_uninterrupted_run_the_order_is_never_proved():
    assert alone(resumed()).outcome is Outcome.UNKNOWN


def test_without_an_uninterrupted_run_a_replay_with_other_samples_is_broken_all_the_same():
    finding = alone(shifted(killed().attempt(1).begin(5), 6, 20, by=1).complete())
    assert (finding.outcome, "in attempt 0" in finding.reason) == (Outcome.INVALID, True)


def test_without_an_uninterrupted_run_a_sample_twice_in_an_epoch_is_broken():
    run = Run().attempt(0).begin().steps(1, 15).killed().attempt(1).begin(15)
    finding = alone(shifted(run, 16, 20, by=-4).complete())
    assert finding.outcome is Outcome.INVALID
    assert "twice in an epoch of 40 samples" in finding.reason


def test_without_samples_nothing_is_proved():
    run = Run().golden().attempt(0).begin().step(1, batch_ids=()).close()
    finding = judge(run)
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "no step names its samples")


def test_lost_events_leave_it_open():
    assert judge(resumed().add(ObservationLost, what="events", count=1, detail="x")).outcome is Outcome.UNKNOWN


def test_a_step_that_may_be_among_what_was_not_recorded_accuses_nobody():
    run = Run().golden().attempt(0).begin().steps(1, 6).steps(8, 20).complete()
    assert judge(run).outcome is Outcome.INVALID
    assert judge(run.add(ObservationLost, what="events", count=1, detail="x")).outcome is Outcome.UNKNOWN


def test_a_zombie_s_work_is_not_retained():
    run = Run().golden().attempt(0).begin().steps(1, 7).abandon().attempt(1).begin(5).on(0).step(8).on(1).steps(6, 20)
    assert judge(run.complete()).outcome is Outcome.VALID


def test_steps_after_a_resume_that_tell_no_samples_leave_it_open():
    run = killed().attempt(1).begin(5)
    for step in range(6, 21):
        run.step(step, batch_ids=())
    finding = judge(run.complete())
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "task 0 rank 0: step 6 does not tell its samples; 15 do not in all")


def test_a_rank_that_passes_over_steps_is_broken_though_rank_0_does_not():
    def run(*of_second: int) -> Run:
        told = Run().golden().attempt(0).begin().begin(rank=1)
        for step in range(1, 5):
            told.step(step)
            if step in of_second:
                told.step(step, rank=1)
        return told.close()

    assert judge(run(1, 2, 3, 4), run(1, 2, 3, 4)).outcome is Outcome.VALID
    finding = judge(run(1, 4), run(1, 2, 3, 4))
    assert (finding.outcome, "rank 1: step 2 is not among the retained steps up to 4; 2 are missing" in finding.reason) == (
        Outcome.INVALID,
        True,
    )
