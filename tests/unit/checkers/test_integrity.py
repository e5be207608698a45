"""What is loaded is what was saved and committed; the last good checkpoint is never lost."""

import msgspec
import pytest

from harness.checkers.integrity import check
from harness.history import AttemptStarted, Booted, ObservationLost, RestoreBegun, Restored, SaveEnded, Started
from harness.scenario.expectations import IntactCheckpoints
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, digests_of, resumed, uninterrupted


def judge(run: Run, **fields: object) -> Finding:
    return check(IntactCheckpoints(), run.evidence(**fields))


def killed() -> Run:
    """Killed after step 12; steps 5 and 10 are on storage."""
    return Run().attempt(0).begin().steps(1, 12).killed()


def broken(run: Run, *words: str) -> None:
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID, finding
    assert any(all(word in line for word in words) for line in finding.evidence), finding


# ---- kept ----


def test_what_was_saved_and_committed_is_loaded():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert finding.measures["restores"] == 1.0
    assert judge(uninterrupted()).outcome is Outcome.VALID


def test_a_death_in_a_save_is_information():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="temporary").killed()
    run.lose(10).attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_an_incomplete_step_of_a_save_that_was_cut_is_no_loss_while_an_older_one_is_whole():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="incomplete").killed().attempt(1).begin(5).steps(6, 20)
    assert judge(run.complete()).outcome is Outcome.VALID


def test_a_fault_that_damages_the_only_checkpoint_is_not_the_job_s_loss():
    run = Run().attempt(0).begin().steps(1, 7).killed().put(5, state="incomplete").damaged(fault="truncate-file")
    assert judge(run.attempt(1).begin().steps(1, 20).complete()).outcome is Outcome.VALID
    gone = Run().attempt(0).begin().steps(1, 7).killed().lose(5).damaged(fault="delete-path").attempt(1).begin().steps(1, 20).complete()
    assert judge(gone).outcome is Outcome.VALID


def test_falling_back_from_a_damaged_step_is_right():
    run = killed().put(10, content="flipped").damaged().attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_trying_a_damaged_step_before_falling_back_is_right():
    run = killed().put(18, state="incomplete", is_latest=True).damaged(fault="add-empty-step").attempt(1).boot().here(RestoreBegun, step=18)
    assert judge(run.restore(10).start(10).steps(11, 20).complete()).outcome is Outcome.VALID


def test_a_step_that_was_saved_anew_may_have_other_bytes():
    run = killed().put(10, content="flipped").damaged().attempt(1).begin(5).steps(6, 9).step(10).save(10, content="new").steps(11, 20)
    assert judge(run.complete()).outcome is Outcome.VALID


def test_one_text_file_replaces_the_step_before_it():
    text = msgspec.structs.replace(JOB, layout="text-file")
    run = Run(text).attempt(0).begin().steps(1, 12).killed().attempt(1).begin(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_rank_that_writes_nothing_is_compared_with_its_own_steps():
    run = Run().attempt(0).begin().begin(rank=1)
    own = {"data": "mine"}
    for step in range(1, 6):
        run.step(step, rank=1, digests=own).steps(step, step)
    run.killed().attempt(1).begin(5).boot(1).restore(5, rank=1, digests=own).start(5, rank=1).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_what_is_read_while_an_attempt_runs_is_not_held_against_it():
    run = Run().attempt(0).begin().steps(1, 7).lose(5).survey("after-fault").put(5).steps(8, 20).complete()
    assert judge(run).outcome is Outcome.VALID


# ---- broken: what was loaded ----


def test_a_part_that_differs_from_what_was_saved_is_named():
    torn = digests_of(10) | {"optimizer": "zero"}
    broken(
        killed().attempt(1).boot().restore(10, digests=torn).start(10).steps(11, 20).complete(),
        "restored step 10",
        "its optimizer zero is not what was saved",
    )


def test_a_mixture_of_two_saves_of_a_step_is_torn():
    first, second = {"params": "p1", "optimizer": "o1"}, {"params": "p2", "optimizer": "o2"}
    run = Run().attempt(0).begin().save(5, digests=first).killed().attempt(1).begin().save(5, digests=second).killed("2-kill")
    run.attempt(2).boot().restore(5, digests={"params": "p2", "optimizer": "o1"}).start(5).steps(6, 20).complete()
    broken(run, "attempt 2 restored step 5", "its optimizer o1")


def test_damage_that_was_loaded_is_torn():
    run = killed().put(10, content="flipped").damaged().attempt(1).boot().restore(10, digests={"params": "x"}).start(10)
    broken(run.steps(11, 20).complete(), "its params x is not what was saved")


def test_damage_that_left_the_state_alone_may_be_loaded():
    run = killed().put(10, state="incomplete").damaged(fault="delete-path").attempt(1).begin(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_step_that_nobody_saved_is_foreign():
    broken(killed().put(18).damaged().attempt(1).begin(18).steps(19, 20).complete(), "restored step 18", "nobody had saved")
    empty = killed().put(18, state="incomplete").damaged(fault="add-empty-step")
    broken(empty.attempt(1).begin(18).steps(19, 20).complete(), "restored step 18", "nobody had saved")
    broken(Run().attempt(0).begin(3).steps(4, 20).complete(), "attempt 0 restored step 3", "nobody had saved")


def test_a_silent_job_too_may_load_only_what_it_saved():
    run = Run(SILENT).attempt(0).put(5).killed().put(18).damaged().attempt(1).here(Restored, step=18).here(Started, restored_step=18)
    broken(run.put(20).complete(), "restored step 18", "nobody had saved")


def test_an_uncommitted_step_must_not_be_restored():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="temporary").killed().attempt(1).begin(10)
    broken(run.steps(11, 20).complete(), "restored step 10", "temporary on storage")


def test_dying_of_an_uncommitted_step_is_broken():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="incomplete").killed()
    run.attempt(1).boot().here(RestoreBegun, step=10).exit(1).attempt(2).begin(5).steps(6, 20).complete()
    broken(run, "attempt 1 chose step 10", "died of it")


def test_dying_twice_of_one_damaged_step_is_a_crash_loop():
    run = killed().put(10, content="flipped").damaged()
    once = run.attempt(1).boot().here(RestoreBegun, step=10).exit(1)
    assert judge(once.fork().attempt(2).begin(5).steps(6, 20).complete()).outcome is Outcome.VALID
    broken(once.attempt(2).boot().here(RestoreBegun, step=10).exit(1).close(), "attempt 2 died restoring step 10", "as attempt 1")


def test_a_kill_at_a_restore_is_no_crash():
    run = (
        killed()
        .attempt(1)
        .boot()
        .here(RestoreBegun, step=10)
        .killed("2-kill")
        .attempt(2)
        .boot()
        .here(RestoreBegun, step=10)
        .killed("3-kill")
    )
    assert judge(run.attempt(3).begin(10).steps(11, 20).complete()).outcome is Outcome.VALID


# ---- broken: what storage held ----


def test_losing_the_last_good_checkpoint_is_broken():
    run = Run().attempt(0).begin().steps(1, 9).step(10).lose(5).begin_save(10).killed().attempt(1).begin().steps(1, 20).complete()
    broken(run, "held no committed checkpoint", "it held step 5", "no fault had touched it")


def test_a_save_in_place_that_is_cut_is_broken():
    run = Run().attempt(0).begin().steps(1, 7).begin_save(5).put(5, state="incomplete").killed().attempt(1).begin().steps(1, 20).complete()
    broken(run, "held no committed checkpoint")


def test_an_acknowledged_save_that_storage_never_held_is_broken():
    run = Run().attempt(0).begin().step(1).here(SaveEnded, step=1).killed().attempt(1).begin().steps(1, 20).complete()
    broken(run, "although the job had acknowledged step 1")


def test_losing_what_was_saved_after_damage_is_broken_again():
    run = Run().attempt(0).begin().steps(1, 7).killed().lose(5).damaged(fault="delete-path").attempt(1).begin().steps(1, 5).lose(5)
    broken(run.killed("3-kill").attempt(2).begin().steps(1, 20).complete(), "it held step 5")


def test_bytes_that_change_by_themselves_are_broken():
    broken(killed().attempt(1).begin(10).put(5, content="rotten").killed("2-kill").close(), "step 5 had changed", "neither a save")


def test_the_newest_step_must_not_fall():
    broken(killed().attempt(1).begin(10).lose(10).killed("2-kill").attempt(2).begin(5).steps(6, 20).complete(), "fell from 10", "to 5")


def test_storage_must_not_offer_what_is_not_whole():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="incomplete", is_latest=True).killed()
    broken(run.attempt(1).begin(5).steps(6, 20).complete(), "storage offered step 10", "incomplete")


def test_of_unknown_files_a_fresh_start_beside_an_acknowledged_save_is_broken():
    files = msgspec.structs.replace(JOB, layout="files")
    run = Run(files).attempt(0).begin().steps(1, 7).lose(5).put(-1).killed().attempt(1).begin().steps(1, 20).complete()
    broken(run, "found nothing to restore, although step 5 had been acknowledged")


# ---- unknown ----


def test_without_a_checkpoint_there_is_nothing_to_judge():
    assert judge(Run().attempt(0).begin().steps(1, 3).killed().close()).outcome is Outcome.UNKNOWN
    assert judge(Run(is_surveyed=False).attempt(0).begin().steps(1, 7).killed().close()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("what", ["events", "checkpoints"])
def test_lost_observations_leave_it_open(what: str):
    assert judge(resumed().add(ObservationLost, what=what, count=1, detail="x")).outcome is Outcome.UNKNOWN


def test_a_restore_without_fingerprints_proves_nothing_of_a_job_that_should_give_them():
    run = killed().attempt(1).boot().restore(10, digests={}).start(10).steps(11, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
    silent = Run(SILENT).attempt(0).put(5).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5).put(20).complete()
    assert judge(silent).outcome is Outcome.VALID
    damaged = Run(SILENT).attempt(0).put(5).killed().put(5, content="x").damaged().attempt(1).here(Restored, step=5)
    assert judge(damaged.here(Started, restored_step=5).put(20).complete()).outcome is Outcome.UNKNOWN


def test_unknown_files_that_no_fingerprint_speaks_of_may_be_torn():
    files = msgspec.structs.replace(SILENT, layout="files")
    run = Run(files).attempt(0).put(5).killed().attempt(1).here(Restored, step=5).here(Started, restored_step=5).put(20, content="x")
    assert judge(run.complete()).outcome is Outcome.UNKNOWN
    spoken = msgspec.structs.replace(JOB, layout="files")
    assert judge(Run(spoken).attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 20).complete()).outcome is Outcome.VALID


# ---- several lives and writers ----


def test_lives_in_one_attempt_may_load_what_was_committed_after_the_last_look():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).put(10, state="incomplete").survey("save-end", only_step=10)
    assert judge(run.here(Booted).restore(10).start(10).put(10).steps(11, 20).complete()).outcome is Outcome.VALID


def test_two_attempts_at_once_leave_storage_unread():
    run = Run().attempt(0).begin().steps(1, 12).abandon().add(AttemptStarted, attempt=1, pid=7).lose(5, 10).exit(signal=9, cause="fault")
    assert judge(run.on(1).begin().steps(1, 20).complete()).outcome is Outcome.VALID
