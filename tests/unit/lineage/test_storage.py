"""Storage as the surveys show it, and who changed what."""

from typing import get_args

import msgspec

from harness.history import CheckpointSeen, CheckpointsSeen, FaultFailed, SaveBegun, SaveEnded
from harness.lineage import DAMAGE, END_S, Lineage, newest_sound, trace
from harness.scenario.faults import DamageFault
from tests.unit.checkers.builders import JOB, Run


def lineage_of(run: Run) -> Lineage:
    return trace(run.history().events)


def change_of(run: Run, step: int) -> str:
    return lineage_of(run).storage_before(0, END_S)[step].change


def saved() -> Run:
    """Steps 5 and 10 are on storage, the attempt was killed after step 12."""
    return Run().attempt(0).begin().steps(1, 12).killed()


def test_damage_is_what_the_scenarios_call_damage():
    assert {kind.__struct_config__.tag for kind in get_args(DamageFault)} == DAMAGE


def test_damage_that_failed_half_way_is_not_the_job_s():
    run = saved().put(10, state="incomplete").request("2-tear-rename", "tear-rename")
    run.here(FaultFailed, injection="2-tear-rename", detail="half of it is done")
    assert change_of(run.survey("after-fault"), 10) == "fault"


def test_the_newest_sound_step_is_that_of_the_moment():
    lineage = lineage_of(saved())
    ended = [event.t_s for event in lineage.events if isinstance(event, SaveEnded)]
    assert lineage.newest_sound_step(0, 0.0) is None
    assert lineage.newest_sound_step(0, ended[1]) == 5
    assert lineage.newest_sound_step(0, END_S) == 10
    assert lineage.newest_sound_step(1, END_S) is None


def test_nothing_is_sound_where_nothing_was_saved():
    assert lineage_of(Run().attempt(0).begin().steps(1, 3).killed()).newest_sound_step(0, END_S) == 0


def test_a_sound_checkpoint_of_an_unknown_step_leaves_the_newest_open():
    assert lineage_of(Run().attempt(0).put(-1).exit(1)).newest_sound_step(0, END_S) is None


def test_a_whole_survey_forgets_what_is_gone_and_a_partial_one_does_not():
    run = Run().attempt(0).begin().steps(1, 5).lose(5).step(6).save(6)
    assert set(lineage_of(run).storage_before(0, END_S)) == {5, 6}
    assert set(lineage_of(run.exit(1)).storage_before(0, END_S)) == {6}


def test_what_changes_after_a_damaging_fault_the_fault_has_changed():
    assert change_of(saved().put(10, content="x").damaged(), 10) == "fault"
    assert change_of(saved().put(10, content="x").damaged(), 5) == "none"
    assert change_of(saved().put(10, state="incomplete").damaged(fault="truncate-file"), 10) == "fault"
    assert change_of(saved().put(18).damaged(), 18) == "fault"
    assert lineage_of(saved().put(10, content="x").damaged()).newest_sound_step(0, END_S) == 5


def test_a_fault_that_touches_no_storage_explains_no_change():
    assert change_of(saved().put(10, content="x").request("k", "kill").survey("after-fault"), 10) == "unexplained"


def test_damage_stays_damage_until_the_step_is_saved_anew():
    run = saved().put(10, content="x").damaged().attempt(1).begin(5).steps(6, 8).killed("3")
    assert change_of(run, 10) == "fault"
    run.attempt(2).begin(5).steps(6, 9).step(10).save(10, content="new").killed("4")
    assert change_of(run, 10) == "none"


def test_a_save_that_was_never_acknowledged_explains_other_bytes():
    run = saved().attempt(1).begin(10).begin_save(10).put(10, content="x").killed("2")
    assert change_of(run, 10) == "save"
    acknowledged = saved().attempt(1).begin(10).begin_save(10).put(10, content="x").here(SaveEnded, step=10).killed("2")
    assert change_of(acknowledged, 10) == "none"


def test_the_save_of_a_dead_attempt_explains_nothing_that_comes_later():
    run = Run().attempt(0).begin().steps(1, 9).begin_save(10).commit(10).killed()
    assert change_of(run, 10) == "none"
    assert change_of(run.put(10, content="x").damaged(), 10) == "fault"


def test_bytes_that_change_without_a_cause_are_unexplained():
    run = saved().attempt(1).begin(10).put(5, content="x").killed("2")
    assert change_of(run, 5) == "unexplained"
    assert lineage_of(run).newest_sound_step(0, END_S) == 10


def test_what_was_committed_and_is_incomplete_without_a_cause_is_unexplained():
    assert change_of(saved().attempt(1).begin(10).put(5, state="incomplete").killed("2"), 5) == "unexplained"


def test_a_checkpoint_that_retention_removed_has_not_become_the_orphan_of_its_step():
    orphan = CheckpointSeen(step=5, path="checkpoint_1", state="incomplete")
    kept = CheckpointSeen(step=5, path="checkpoint_2", state="committed", digest="a")
    run = Run().attempt(0).here(CheckpointsSeen, occasion="save-end", checkpoints=(orphan, kept))
    run.here(CheckpointsSeen, occasion="attempt-end", checkpoints=(orphan,))
    assert change_of(run, 5) == "none"
    assert lineage_of(run).newest_sound_step(0, END_S) == 0


def test_what_a_silent_job_saves_after_damage_is_its_own():
    silent = msgspec.structs.replace(JOB, speaks_protocol=False)
    run = Run(silent).attempt(0).put(5).killed().put(5, content="x").damaged().attempt(1).put(10).killed("3")
    assert (change_of(run, 5), change_of(run, 10)) == ("fault", "none")


def test_of_two_checkpoints_of_a_step_the_committed_one_counts():
    seen = (
        CheckpointSeen(step=5, path="step_5", state="committed", digest="a"),
        CheckpointSeen(step=5, path="step_5.tmp", state="temporary"),
    )
    run = Run().attempt(0).here(CheckpointsSeen, occasion="attempt-end", checkpoints=seen)
    assert lineage_of(run).storage_before(0, END_S)[5].state == "committed"


def test_a_checkpoint_that_could_not_be_read_is_taken_as_it_was():
    run = saved()
    run.stored[10] = msgspec.structs.replace(run.stored[10], digest="")
    assert change_of(run.survey("end"), 10) == "none"


def test_surveys_say_what_they_looked_at_and_whether_damage_came_before():
    surveys = [(len(survey.looked_at), survey.is_after_damage) for survey in lineage_of(saved().put(10, content="x").damaged()).surveys(0)]
    assert surveys == [(1, False), (1, False), (2, False), (2, True)]


def test_tasks_have_storage_of_their_own():
    run = Run().attempt(0).begin().steps(1, 5).attempt(0, task=1).begin().step(1).request("x", "flip-byte")
    run.here(SaveBegun, step=1).killed()
    assert lineage_of(run).newest_sound_step(0, END_S) == 5
    assert newest_sound(lineage_of(run).storage_before(1, END_S)) == 0
