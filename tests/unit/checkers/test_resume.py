"""Every attempt after the first goes on from the newest durable step, repeats little and skips nothing."""

import msgspec
import pytest

from harness.checkers.resume import check
from harness.history import Booted, LogLine, ObservationLost, Restored, Started, StepDone
from harness.scenario import LogPatterns, Outside
from harness.scenario.expectations import ResumesFromNewestDurable
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted

PROMISE = ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0)


def judge(run: Run, **fields: object) -> Finding:
    return check(PROMISE, run.evidence(**fields))


def killed() -> Run:
    """Killed after step 12; steps 5 and 10 are on storage."""
    return Run().attempt(0).begin().steps(1, 12).killed()


def broken(run: Run, *words: str) -> None:
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID, finding
    assert any(all(word in line for word in words) for line in finding.evidence), finding


# ---- kept ----


def test_going_on_from_the_newest_sound_step_is_right():
    finding = judge(killed().attempt(1).begin(10).steps(11, 20).complete())
    assert finding.outcome is Outcome.VALID
    assert "2 steps repeated, at most 2 at once of 5 allowed" in finding.reason
    assert finding.measures == {"resumes": 1.0, "lost_steps": 2.0, "lost_steps_at_once": 2.0}
    assert "attempt 1 went on from step 10 at" in finding.evidence[0]
    assert "newest sound checkpoint on storage was step 10" in finding.evidence[0]


def test_starting_over_is_right_when_nothing_was_durable():
    assert judge(Run().attempt(0).begin().steps(1, 3).killed().attempt(1).begin().steps(1, 20).complete()).outcome is Outcome.VALID
    at_boot = Run().attempt(0).boot().killed().attempt(1).begin().steps(1, 20).complete()
    assert judge(at_boot).outcome is Outcome.VALID


def test_a_save_in_flight_that_became_whole_may_be_restored():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).commit(10).killed().attempt(1).begin(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_damaged_newest_checkpoint_makes_the_next_older_one_right():
    run = killed().put(10, content="flipped").damaged().attempt(1).begin(5).steps(6, 20).complete()
    assert check(ResumesFromNewestDurable(lost_steps_max=7), run.evidence()).outcome is Outcome.VALID
    broken(run, "repeats 7 steps", "5 allowed")


def test_damage_that_did_not_reach_the_state_is_no_reason_to_refuse():
    assert judge(killed().put(10, content="flipped").damaged().attempt(1).begin(10).steps(11, 20).complete()).outcome is Outcome.VALID


def test_a_save_after_sigterm_loses_nothing():
    run = Run().attempt(0).begin().steps(1, 7).terminated(saves=7).attempt(1).begin(7).steps(8, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_grace_that_ended_in_a_kill_allows_the_interval():
    run = Run().attempt(0).begin().steps(1, 7).signal("SIGTERM").exit(signal=9, cause="grace").attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_job_killed_after_its_last_save_has_nothing_left_to_skip():
    assert judge(Run().attempt(0).begin().steps(1, 20).killed().attempt(1).begin(20).complete()).outcome is Outcome.VALID


def test_an_attempt_killed_while_it_restored_is_no_resume():
    run = killed().attempt(1).boot().restore(10).killed("2-kill").attempt(2).begin(10).steps(11, 20).complete()
    assert judge(run).measures["resumes"] == 1.0


def test_a_step_whose_save_was_begun_was_executed_even_if_it_was_not_said():
    run = Run().attempt(0).begin().steps(1, 9).begin_save(10).commit(10).killed().attempt(1).begin(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.VALID


# ---- broken ----


def test_an_older_step_than_the_newest_is_named_with_it():
    run = killed().attempt(1).begin(5).steps(6, 20).complete()
    broken(run, "went on from step 5", "newest sound checkpoint on storage was step 10")


def test_starting_over_beside_a_sound_checkpoint_is_broken():
    broken(killed().attempt(1).begin().steps(1, 20).complete(), "went on from step 0", "step 10")


def test_a_step_that_nobody_saved_is_broken():
    broken(killed().attempt(1).begin(11).steps(12, 20).complete(), "step 11", "nobody had saved")


def test_a_step_that_was_not_committed_is_broken():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="incomplete").killed()
    broken(run.attempt(1).begin(10).steps(11, 20).complete(), "step 10", "had not been committed")


def test_going_on_from_damaged_bytes_is_broken():
    run = killed().put(10, content="flipped").damaged().attempt(1).boot()
    run.restore(10, digests={"params": "other"}).start(10).steps(11, 20).complete()
    broken(run, "step 10", "a fault had damaged")


def test_more_lost_work_than_allowed_is_broken():
    run = (
        Run(msgspec.structs.replace(JOB, save_every=10)).attempt(0).begin().steps(1, 9).killed().attempt(1).begin().steps(1, 20).complete()
    )
    broken(run, "repeats 9 steps", "step 9 had been executed; 5 allowed")


def test_lost_work_after_a_grace_that_sufficed_is_broken():
    run = Run().attempt(0).begin().steps(1, 7).terminated().attempt(1).begin(5).steps(6, 20).complete()
    broken(run, "repeats 2 steps", "0 allowed after attempt 0 had SIGTERM and its grace")


def test_a_skipped_step_is_broken():
    broken(killed().attempt(1).begin(10).steps(14, 20).complete(), "attempt 1 skips steps 11 to 13")


def test_counting_the_restored_step_twice_is_broken():
    run = killed().attempt(1).boot().restore(10).start(11).steps(12, 20).complete()
    broken(run, "loaded the checkpoint of step 10 and went on as if from step 11")


def test_a_step_done_again_is_broken():
    broken(killed().attempt(1).begin(10).steps(10, 20).complete(), "executes steps 10 to 10 again")


def test_a_gap_in_the_retained_steps_is_broken():
    broken(Run().attempt(0).begin().steps(1, 3).steps(7, 12).killed().attempt(1).begin(10).steps(11, 20).complete(), "step 4 is not among")


def test_the_second_resume_is_judged_like_the_first():
    run = killed().attempt(1).begin(10).steps(11, 17).killed("2-kill").attempt(2).begin(10).steps(11, 20).complete()
    broken(run, "attempt 2 went on from step 10", "step 15")


# ---- unknown ----


def test_without_a_resume_nothing_is_proved():
    assert judge(uninterrupted()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("what", ["events", "checkpoints"])
def test_lost_observations_leave_it_open_but_mend_nothing(what: str):
    lost = {"what": what, "count": 1, "detail": "x"}
    assert judge(resumed().add(ObservationLost, **lost)).outcome is Outcome.UNKNOWN
    assert judge(killed().attempt(1).begin(5).steps(6, 20).add(ObservationLost, **lost)).outcome is Outcome.INVALID


def test_a_step_that_may_be_among_what_was_not_recorded_accuses_nobody():
    run = Run().attempt(0).begin().steps(1, 5).steps(7, 12).killed().attempt(1).begin(10).steps(11, 14).steps(16, 20).complete()
    broken(run, "skips steps 15 to 15")
    broken(run, "step 6 is not among the retained steps")
    assert judge(run.add(ObservationLost, what="events", count=1, detail="x")).outcome is Outcome.UNKNOWN


def test_without_surveys_nothing_tells_what_was_durable():
    run = Run(is_surveyed=False).attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN


# ---- several lives, several writers, silent jobs ----


def test_lives_inside_one_attempt_may_find_what_was_committed_after_the_last_look():
    run = Run().attempt(0).begin().steps(1, 12)
    run.here(Booted).restore(10).start(10).steps(11, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.VALID
    assert "attempt 0 (life 1)" in finding.evidence[0]
    late = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10)
    late.here(Booted).restore(10).start(10).steps(11, 20).complete()
    assert judge(late).outcome is Outcome.VALID


def test_an_older_life_inside_one_attempt_is_still_owed_what_was_seen():
    broken(Run().attempt(0).begin().steps(1, 12).here(Booted).restore(5).start(5).steps(6, 20).complete(), "went on from step 5", "step 10")


def test_beside_a_zombie_only_what_was_there_at_the_start_is_required():
    run = Run().attempt(0).begin().steps(1, 12).abandon().attempt(1).boot().on(0).steps(13, 15).on(1).restore(10).start(10)
    run.steps(11, 12).on(0).exit(signal=9, cause="fault").on(1).steps(13, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_tasks_are_judged_apart():
    text = msgspec.structs.replace(JOB, layout="text-file")
    run = Run(text).attempt(0).begin().steps(1, 12).attempt(0, task=1).begin().steps(1, 7).killed()
    run.attempt(1, task=1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID
    wrong = Run(text).attempt(0).begin().steps(1, 12).attempt(0, task=1).begin().steps(1, 7).killed()
    broken(wrong.attempt(1, task=1).begin().steps(1, 20).complete(), "task 1 attempt 1 went on from step 0", "step 5")


SPARSE = msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)", resumed=r"from (?P<step>\d+)")))


def logged(run: Run, *steps: int) -> Run:
    for step in steps:
        run.here(StepDone, step=step)
    return run


def test_a_silent_job_that_logs_every_fourth_step_skips_nothing():
    golden = logged(Run(SPARSE).attempt(0), 4, 8, 12, 16, 20).complete()
    run = logged(Run(SPARSE).attempt(0), 4, 8).put(5).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5)
    assert judge(logged(run, 8, 12, 16, 20).put(20).complete(), golden=golden).outcome is Outcome.VALID
    run = logged(Run(SPARSE).attempt(0), 4, 8).put(5).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5)
    assert judge(logged(run, 12, 16, 20).put(20).complete(), golden=golden).outcome is Outcome.INVALID


def test_a_silent_job_that_does_not_say_that_it_resumed_started_over():
    golden = logged(Run(SPARSE).attempt(0), 4, 8, 12, 16, 20).complete()
    run = logged(logged(Run(SPARSE).attempt(0), 4, 8).put(5).killed().attempt(1), 4, 8, 12, 16, 20).complete()
    assert judge(run, golden=golden).outcome is Outcome.INVALID
    nothing = logged(logged(Run(SPARSE).attempt(0), 4).killed().attempt(1), 4, 8, 12, 16, 20).complete()
    assert judge(nothing, golden=golden).outcome is Outcome.VALID


def test_a_silent_job_that_says_nothing_of_resuming_may_leave_it_open():
    mute = msgspec.structs.replace(SPARSE, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)")))
    golden = logged(Run(mute).attempt(0), 4, 8, 12, 16, 20).complete()
    run = logged(logged(Run(mute).attempt(0), 4, 8, 12).put(10).killed().attempt(1), 12, 16, 20).put(20).complete()
    assert judge(run, golden=golden).outcome is Outcome.UNKNOWN
    older = logged(logged(Run(mute).attempt(0), 4, 8, 12).put(10).killed().attempt(1), 8, 12, 16, 20).put(20).complete()
    assert judge(older, golden=golden).outcome is Outcome.INVALID


def shown(run: Run, *steps: int) -> Run:
    """A progress bar shows some steps."""
    for step in steps:
        run.here(LogLine, stream="stderr", text=f"step {step}", is_redrawn=True).here(StepDone, step=step)
    return run


def test_a_progress_bar_shows_other_steps_in_every_run_and_none_is_skipped():
    golden = shown(Run(SPARSE).attempt(0), 3, 7, 11, 20).complete()
    run = shown(Run(SPARSE).attempt(0), 4, 8).put(5).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5)
    assert judge(shown(run, 9, 16, 20).put(20).complete(), golden=golden).outcome is Outcome.VALID
    over = shown(shown(Run(SPARSE).attempt(0), 4, 8).put(5).killed().attempt(1), 3, 7, 20).complete()
    assert judge(over, golden=golden).outcome is Outcome.INVALID


def test_a_progress_bar_alone_does_not_tell_where_a_job_went_on():
    mute = msgspec.structs.replace(SPARSE, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)")))
    run = shown(shown(Run(mute).attempt(0), 4, 8).put(5).killed().attempt(1), 9, 16, 20).put(20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN


def test_of_unknown_files_the_acknowledged_save_is_required():
    files = msgspec.structs.replace(JOB, layout="files")
    run = Run(files).attempt(0).begin().steps(1, 7).lose(5).put(-1).killed().attempt(1)
    assert judge(run.begin(5).steps(6, 20).complete()).outcome is Outcome.VALID
    run = Run(files).attempt(0).begin().steps(1, 7).lose(5).put(-1).killed().attempt(1).begin().steps(1, 20).complete()
    broken(run, "the newest acknowledged save was step 5")
    damaged = Run(files).attempt(0).begin().steps(1, 5).lose(5).put(-1).killed().damaged().attempt(1).begin().steps(1, 20).complete()
    assert judge(damaged).outcome is Outcome.UNKNOWN


def test_of_unknown_files_the_newest_may_be_half_written():
    files = msgspec.structs.replace(SILENT, layout="files")
    run = Run(files).attempt(0).put(5).put(10).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5)
    assert judge(run.steps(6, 20).complete()).outcome is Outcome.VALID


def test_of_a_job_that_never_spoke_of_a_save_nothing_tells_what_was_durable():
    run = Run(msgspec.structs.replace(JOB, layout="files")).attempt(0).begin().steps(1, 4).step(5).put(-1).killed()
    finding = judge(run.attempt(1).start(5).step(6).close())
    assert finding.outcome is Outcome.UNKNOWN
    assert "nothing tells which step was durable" in finding.reason


def test_steps_that_are_missing_are_counted_not_listed():
    run = (
        Run()
        .attempt(0)
        .begin()
        .steps(1, 5)
        .steps(10**15, 10**15)
        .killed()
        .attempt(1)
        .begin(10**15)
        .steps(10**15 + 1, 10**15 + 1)
        .complete()
    )
    broken(run, f"step 6 is not among the retained steps up to {10**15 + 1}; {10**15 - 6} are missing in all")
