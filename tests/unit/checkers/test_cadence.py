"""Each multiple of the interval that a life has left behind is committed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.cadence import check
from harness.history import ObservationLost, SaveEnded, SigtermSeen
from harness.scenario import LogPatterns, Outside, Platform, Workload
from harness.scenario.expectations import SavesAtCadence
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted


def judge(run: Run, *, every: int = 5, missed_max: int = 0) -> Finding:
    return check(SavesAtCadence(every=every, missed_max=missed_max), run.evidence())


def trained(run: Run, first: int, last: int) -> Run:
    """Steps without a save."""
    for step in range(first, last + 1):
        run.step(step)
    return run


def test_every_life_saves_at_its_cadence():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert finding.reason == "3 of 3 saves were committed at every 5 steps"
    assert finding.evidence[0] == "attempt 0: saves owed at [], missing []"
    assert finding.evidence[1] == "attempt 1: saves owed at [10, 15, 20], missing []"
    assert judge(uninterrupted()).measures == {"saves_expected": 4.0, "saves_missed": 0.0}


def test_saves_that_stop_after_a_resume_are_broken():
    run = trained(Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5), 6, 20).save(20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "2 of 3 saves are missing, 0 may be: attempt 1: saves owed at [10, 15, 20], missing [10, 15]"
    assert judge(run, missed_max=2).outcome is Outcome.VALID


def test_a_save_that_is_begun_and_never_ends_is_missing_once_the_job_went_on():
    run = Run().attempt(0).begin().steps(1, 4).step(5).begin_save(5).steps(6, 20).complete()
    assert "missing [5]" in judge(run).reason


def test_a_save_that_is_acknowledged_later_is_in_time():
    run = trained(Run().attempt(0).begin(), 1, 5).begin_save(5)
    trained(run, 6, 11).here(SaveEnded, step=5).begin_save(10)
    trained(run, 12, 20).here(SaveEnded, step=10).save(15).save(20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_saves_that_a_death_finds_under_way_are_not_owed():
    run = trained(trained(Run().attempt(0).begin(), 1, 5).begin_save(5), 6, 10).begin_save(10)
    run = trained(run, 11, 17).killed().attempt(1).begin().steps(1, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.VALID
    assert finding.evidence[0] == "attempt 0: saves owed at [], missing []"


def test_of_many_unfinished_saves_a_death_excuses_only_the_last():
    run = Run().attempt(0).begin()
    for step in range(1, 20):
        run.step(step)
        if step % 5 == 0:
            run.begin_save(step)
    run.killed().attempt(1).begin().steps(1, 20).complete()
    assert "attempt 0: saves owed at [5], missing [5]" in judge(run).reason


def test_a_good_end_excuses_nothing():
    run = trained(trained(Run().attempt(0).begin().steps(1, 15), 16, 20).begin_save(20), 21, 20)
    assert "missing [20]" in judge(run.done().exit(0).finish()).reason
    silent = trained(Run(SILENT).attempt(0), 1, 5).here(SaveEnded, step=5)
    assert "3 of 4 saves are missing" in judge(trained(silent, 6, 20).exit(0).finish()).reason


def test_a_commit_without_its_acknowledgement_counts_as_storage_shows_it():
    run = Run().attempt(0).begin().steps(1, 4).step(5).begin_save(5).commit(5).survey("after-fault").steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_what_another_life_has_saved_is_owed_by_nobody():
    run = Run().attempt(0).begin().steps(1, 12).killed().attempt(1).begin(5)
    trained(run, 6, 14).step(15).save(15).steps(16, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.VALID
    assert finding.evidence[1] == "attempt 1: saves owed at [15, 20], missing []"


def test_what_an_earlier_life_has_saved_and_a_fault_has_damaged_is_owed_again():
    run = Run().attempt(0).begin().steps(1, 12).killed().put(10, content="x").damaged()
    trained(run.attempt(1).begin(5), 6, 14).step(15).save(15).steps(16, 20).complete()
    assert "attempt 1: saves owed at [10, 15, 20], missing [10]" in judge(run).reason


def test_nothing_is_owed_from_the_notice_on():
    run = Run().attempt(0).begin().steps(1, 9).signal("SIGTERM").here(SigtermSeen)
    trained(run, 10, 16).exit(143, cause="fault").attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).evidence[0] == "attempt 0: saves owed at [5], missing []"


def test_nothing_is_owed_by_an_attempt_that_was_held_for_dead():
    run = Run().attempt(0).begin().steps(1, 7).abandon().attempt(1).begin(5).on(0)
    trained(run, 8, 16).exit(75).on(1).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_lives_inside_one_attempt_are_judged_each():
    run = Run().attempt(0).begin().steps(1, 12)
    run = trained(run.begin(10), 11, 20).save(20).complete()
    assert "attempt 0 (life 1): saves owed at [15, 20], missing [15]" in judge(run).reason


def test_tasks_add_up():
    text = msgspec.structs.replace(JOB, layout="text-file")
    run = Run(text, Platform(tasks=2)).attempt(0).begin().steps(1, 20).done().exit(0).end_task()
    trained(run.attempt(0, task=1).begin(), 1, 20).save(20).done().exit(0).finish()
    finding = judge(run)
    assert "3 of 8 saves are missing, 0 may be: task 1 attempt 0" in finding.reason


def test_without_a_save_that_is_owed_nothing_is_known():
    short = Run().attempt(0).begin().steps(1, 4).killed().attempt(1).begin().steps(1, 3).killed("2").close("deadline")
    assert judge(short).outcome is Outcome.UNKNOWN
    assert judge(Run()).outcome is Outcome.UNKNOWN


def test_lost_events_may_have_been_saves():
    run = Run().attempt(0).begin().add(ObservationLost, what="events", count=1, detail="x")
    assert judge(run.fork().steps(1, 20).complete()).outcome is Outcome.UNKNOWN
    finding = judge(trained(run, 1, 20).save(20).complete())
    assert finding.outcome is Outcome.UNKNOWN
    assert any("3 of 4 saves are missing" in line for line in finding.evidence)


def silent(**fields: object) -> Workload:
    return msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)")), **fields)


def test_a_job_that_does_not_tell_its_saves_is_judged_by_the_newest_on_storage():
    kept = trained(Run(silent()).attempt(0), 1, 20).put(15).put(20).exit(0).finish()
    finding = judge(kept)
    assert finding.outcome is Outcome.VALID
    assert finding.evidence[0] == "attempt 0: saves owed at [20], missing []"
    lost = trained(Run(silent()).attempt(0), 1, 20).put(15).exit(0).finish()
    assert judge(lost).outcome is Outcome.INVALID
    never = trained(Run(silent()).attempt(0), 1, 20).exit(0).finish()
    assert judge(never).outcome is Outcome.INVALID


@pytest.mark.parametrize("blind", ["not looked at", "no steps in names", "not all was seen"])
def test_where_neither_job_nor_storage_tells_nothing_is_known(blind: str):
    run = Run(silent(layout="files"), is_surveyed=blind != "not looked at").attempt(0)
    if blind == "not all was seen":
        run.add(ObservationLost, what="checkpoints", count=1, detail="permission denied")
    run = trained(run, 1, 20).put(-1 if blind == "no steps in names" else 20).exit(0).finish()
    assert judge(run).outcome is Outcome.UNKNOWN


@given(skipped=st.sets(st.sampled_from([5, 10, 15, 20])), killed_after=st.integers(1, 20), every=st.sampled_from([5, 10]))
def test_the_judgement_is_a_count_of_what_was_left_behind(skipped: set[int], killed_after: int, every: int):
    run = Run().attempt(0).begin().save(0)  # heard of once, or its silence would accuse nobody
    for step in range(1, killed_after + 1):
        run.step(step)
        if step % 5 == 0 and step not in skipped:
            run.save(step)
    finding = judge(run.killed().close("deadline"), every=every)
    owed = [step for step in range(every, 21, every) if step + every <= killed_after]
    missing = [step for step in owed if step in skipped]
    assert finding.measures == {"saves_expected": float(len(owed)), "saves_missed": float(len(missing))}
    assert finding.outcome is (Outcome.INVALID if missing else Outcome.VALID if owed else Outcome.UNKNOWN)
