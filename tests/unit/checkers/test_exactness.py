"""Bit for bit the uninterrupted run, in every life; no tolerance, and nothing claimed without a comparison."""

from harness.checkers.exactness import check
from harness.history import Inspected, ObservationLost
from harness.scenario.expectations import BitExactResume
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import SILENT, Run, digests_of, resumed, uninterrupted


def judge(run: Run, *parts: str, golden: Run | None = None) -> Finding:
    return check(BitExactResume(parts=parts), run.evidence(golden=golden or uninterrupted()))


def killed() -> Run:
    return Run().golden().attempt(0).begin().steps(1, 7).killed()


def changed(step: int, *parts: str) -> dict[str, str]:
    return digests_of(step) | dict.fromkeys(parts, "wrong")


def test_equal_states_after_a_resume_are_valid():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert finding.measures["states_compared_after_resume"] == 15.0
    assert finding.measures["states_compared"] == 7 + 1 + 15


def test_the_first_differing_step_and_part_and_attempt_are_named():
    run = killed().attempt(1).begin(5).step(6)
    for step in range(7, 21):
        run.step(step, digests=changed(step, "rng", "optimizer"))
    finding = judge(run.complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 1 rank 0 executed step 7 at" in finding.reason
    assert "optimizer is wrong, and o000007 in the uninterrupted run" in finding.reason
    assert "14 of 23 compared states differ" in finding.evidence


def test_a_restored_state_is_compared_too():
    run = killed().attempt(1).boot().restore(5, digests=changed(5, "optimizer")).start(5).steps(6, 20).complete()
    assert "restored step 5" in judge(run).reason


def test_work_that_was_lost_is_compared_too():
    run = Run().golden().attempt(0).begin().steps(1, 6).step(7, digests=changed(7, "params")).killed().attempt(1).begin(5).steps(6, 20)
    assert "attempt 0 rank 0 executed step 7" in judge(run.complete()).reason


def test_only_the_parts_that_were_asked_for_count():
    run = killed().attempt(1).begin(5).steps(6, 19).step(20, digests=changed(20, "rng")).complete()
    assert judge(run, "params", "optimizer").outcome is Outcome.VALID
    assert judge(run, "rng").outcome is Outcome.INVALID


def test_a_part_that_only_one_run_reports_is_unknown():
    assert judge(resumed(), "data").outcome is Outcome.UNKNOWN
    run = killed().attempt(1).begin(5).steps(6, 19).step(20, digests={"params": "p000020"}).complete()
    finding = judge(run)
    assert (finding.outcome, "optimizer is reported by only one" in finding.reason) == (Outcome.UNKNOWN, True)


def test_every_rank_is_compared_with_its_own():
    golden = Run().attempt(0).begin().begin(rank=1)
    for step in range(1, 21):
        golden.step(step).step(step, rank=1, digests={"data": f"d{step}"})
    run = killed().attempt(1).begin(5).begin(5, rank=1).step(6).step(6, rank=1, digests={"data": "wrong"})
    assert "rank 1 executed step 6" in judge(run, golden=golden).reason


def test_without_an_uninterrupted_run_that_repeats_itself_nothing_is_proved():
    assert check(BitExactResume(), resumed().evidence()).outcome is Outcome.UNKNOWN
    unestablished = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 20).complete()
    assert judge(unestablished).outcome is Outcome.UNKNOWN
    differing = Run().golden(equal=False, detail="step 3 differs").attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5)
    finding = judge(differing.step(6, digests=changed(6, "params")))
    assert (finding.outcome, "step 3 differs" in finding.reason) == (Outcome.UNKNOWN, True)


def test_without_a_state_after_a_resume_nothing_is_proved():
    finding = judge(Run().golden().attempt(0).begin().steps(1, 20).complete())
    assert (finding.outcome, "none of them after a resume" in finding.reason) == (Outcome.UNKNOWN, True)
    assert judge(killed().attempt(1).begin(5).killed("2-kill").close()).outcome is Outcome.UNKNOWN


def test_where_nothing_was_left_to_train_the_restored_state_is_the_proof():
    assert judge(Run().golden().attempt(0).begin().steps(1, 20).killed().attempt(1).begin(20).complete()).outcome is Outcome.VALID


def test_without_fingerprints_nothing_is_proved():
    run = Run().golden().attempt(0).start(0).step(1, digests={}).killed().attempt(1).start(0).step(1, digests={}).complete()
    finding = judge(run)
    assert (finding.outcome, "no state has a fingerprint in both runs" in finding.reason) == (Outcome.UNKNOWN, True)


def test_a_silent_job_is_judged_by_its_inspection():
    def run(digests: dict[str, str], step: int = 20, detail: str = "") -> Run:
        told = Run(SILENT).golden().attempt(0).put(5).killed().attempt(1).put(20).exit(0)
        return told.here(Inspected, step=step, digests=digests, detail=detail).finish()

    golden = Run(SILENT).attempt(0).put(20).exit(0).here(Inspected, step=20, digests={"w": "1"}).finish()
    assert judge(run({"w": "1"}), golden=golden).outcome is Outcome.VALID
    finding = judge(run({"w": "2"}), golden=golden)
    assert (finding.outcome, "inspected, of step 20" in finding.reason) == (Outcome.INVALID, True)
    failed = judge(run({}, step=-1, detail="no such file"), golden=golden)
    assert (failed.outcome, "no such file" in failed.reason) == (Outcome.UNKNOWN, True)


def test_a_last_inspection_that_failed_leaves_it_open_and_an_earlier_one_does_not():
    golden = uninterrupted().here(Inspected, step=20, digests={"w": "1"})

    def told(*steps: int) -> Run:
        run = resumed()
        for attempt, step in enumerate(steps):
            run.on(attempt).here(Inspected, step=step, digests={"w": "1"} if step >= 0 else {}, detail="no such file")
        return run

    assert judge(told(-1, 20), golden=golden).outcome is Outcome.VALID
    failed = judge(told(5, -1), golden=golden)
    assert (failed.outcome, "no such file" in failed.reason) == (Outcome.UNKNOWN, True)


def test_lost_events_leave_it_open():
    assert judge(resumed().add(ObservationLost, what="events", count=1, detail="x")).outcome is Outcome.UNKNOWN


def test_a_run_that_was_short_of_the_end_is_compared_as_far_as_it_went():
    assert judge(killed().attempt(1).begin(5).steps(6, 9).close("deadline")).outcome is Outcome.VALID
