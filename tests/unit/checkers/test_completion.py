"""Complete means that storage holds the final step; exit 0 alone never does."""

from collections.abc import Sequence

import msgspec
import pytest

from harness.checkers.completion import check
from harness.history import AttemptStarted, FaultFailed, FaultRequested, Inspected, ObservationLost, ResultSeen, RunClosed, Started
from harness.scenario import Injection, LogPatterns, Outside, Platform
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution
from harness.scenario.triggers import AtStep
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun

CANCEL = (Injection(fault=CancelExecution(), at=AtStep(step=7)),)


def judge(run: Run, **fields: object) -> Finding:
    return check(Completes(), run.evidence(**fields))


def test_the_durable_step_is_the_final_one():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert "executed 20, reported 20, durable 20 of 20 steps" in finding.reason
    assert "by the durable step" in finding.reason
    assert finding.measures["durable_step"] == 20.0


def test_exit_zero_with_the_last_save_lost_is_broken():
    run = Run().attempt(0).begin().steps(1, 19).step(20).begin_save(20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "its durable step 15 is short of the final step 20: its last save is lost" in finding.reason


def test_exit_zero_without_an_attempt_to_save_the_final_step_is_broken_where_it_was_due():
    finding = judge(Run().attempt(0).begin().steps(1, 19).step(20).complete())
    assert finding.outcome is Outcome.INVALID


def test_a_success_short_of_the_work_is_broken():
    finding = judge(Run().attempt(0).begin().steps(1, 10).done(10).exit(0).finish())
    assert finding.outcome is Outcome.INVALID
    assert "durable step 10 is short of the final step 20" in finding.reason


def test_a_checkpoint_beyond_the_end_is_broken():
    run = Run().attempt(0).begin().steps(1, 25).complete()
    assert "lies beyond" in judge(run).reason


def test_a_task_that_failed_within_the_budget_is_broken():
    run = Run().attempt(0).begin().steps(1, 7).exit(1, retried=False).finish(succeeded=False, detail="exit code 1")
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "failed after 1 attempt: executed 7, reported unknown, durable 5 of 20 steps (exit code 1)" in finding.reason


@pytest.mark.parametrize("why", ["deadline", "hang"])
def test_a_run_that_had_to_be_ended_is_broken(why: str):
    finding = judge(Run().attempt(0).begin().steps(1, 7).close(why))
    assert finding.outcome is Outcome.INVALID
    assert why in finding.reason
    assert "executed 7" in finding.reason


@pytest.mark.parametrize("why", ["deadline", "hang"])
def test_where_every_task_has_ended_nobody_is_blamed_that_more_was_waited_for(why: str):
    finding = judge(Run().attempt(0).begin().steps(1, 20).done().exit(0).end_task().close(why))
    assert finding.outcome is Outcome.UNKNOWN
    assert f"{why}; every task had ended by then" in finding.reason
    failed = judge(Run().attempt(0).begin().steps(1, 7).exit(1, retried=False).end_task(succeeded=False).close(why))
    assert (failed.outcome, "failed after 1 attempt" in failed.reason) == (Outcome.INVALID, True)


@pytest.mark.parametrize("why", ["interrupted", "error"])
def test_a_run_that_broke_off_is_unknown(why: str):
    assert judge(Run().attempt(0).begin().steps(1, 7).close(why)).outcome is Outcome.UNKNOWN


def test_an_unclosed_run_and_a_task_without_an_end_are_unknown():
    assert judge(Run().attempt(0).begin().steps(1, 7)).outcome is Outcome.UNKNOWN
    assert judge(Run().attempt(0).begin().steps(1, 20).done().exit(0).close()).outcome is Outcome.UNKNOWN


def test_every_task_must_complete():
    platform = Platform(tasks=2)
    text = msgspec.structs.replace(JOB, layout="text-file")
    run = Run(text, platform).attempt(0).begin().steps(1, 20).done().exit(0).end_task()
    run.attempt(0, task=1).begin().steps(1, 10).done(10).exit(0).finish()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "task 1 ended as a success" in finding.reason
    assert finding.measures["durable_step"] == 10.0


def test_without_a_survey_an_owed_checkpoint_is_unknown():
    run = Run(is_surveyed=False).attempt(0).begin().steps(1, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
    lost = Run().attempt(0).begin().steps(1, 19).step(20).begin_save(20)
    lost.add(ObservationLost, what="checkpoints", count=1, detail="x").complete()
    assert judge(lost).outcome is Outcome.UNKNOWN


def test_where_the_cadence_misses_the_final_step_the_reported_step_is_judged_and_named():
    odd = msgspec.structs.replace(JOB, steps=18)
    finding = judge(Run(odd).attempt(0).begin().steps(1, 18).complete())
    assert finding.outcome is Outcome.VALID
    assert "by the reported step, for no checkpoint of the final step is owed" in finding.reason
    assert judge(Run(odd).attempt(0).begin().steps(1, 17).done(17).exit(0).finish()).outcome is Outcome.INVALID
    said_nothing = judge(Run(odd).attempt(0).begin().steps(1, 18).exit(0).finish())
    assert (said_nothing.outcome, "never said that it was done" in said_nothing.reason) == (Outcome.INVALID, True)
    begun = judge(Run(odd).attempt(0).begin().steps(1, 18).begin_save(18).complete())
    assert begun.outcome is Outcome.INVALID


def test_files_that_name_no_step_are_judged_by_done_result_or_inspection():
    files = msgspec.structs.replace(SILENT, layout="files", save_every=0)
    assert judge(Run(files).attempt(0).put(-1).complete()).outcome is Outcome.VALID
    mute = Run(files).attempt(0).put(-1).exit(0).finish()
    assert judge(mute).outcome is Outcome.UNKNOWN
    result = Run(files).attempt(0).put(-1).exit(0).add(ResultSeen, path="final.json", sha256="ab").finish()
    assert "by the result file" in judge(result).reason
    missing = Run(files).attempt(0).put(-1).done().exit(0).add(ResultSeen, path="final.json").finish()
    assert "final.json is not there" in judge(missing).reason
    inspected = Run(files).attempt(0).put(-1).exit(0).add(Inspected, step=20).finish()
    assert "by the durable step" in judge(inspected).reason


def test_the_final_step_may_come_from_the_job():
    unsaid = msgspec.structs.replace(JOB, steps=0)
    run = Run(unsaid).attempt(0).boot().start(0, steps=10).steps(1, 10).done(10).exit(0).finish()
    assert "durable 10 of 10 steps" in judge(run).reason
    nobody = msgspec.structs.replace(SILENT, steps=0, outside=Outside(logs=LogPatterns(done="done")))
    finding = judge(Run(nobody, is_surveyed=False).attempt(0).steps(1, 10).done(10).exit(0).finish())
    assert finding.outcome is Outcome.VALID
    assert finding.reason == (
        "task 0 succeeded after 1 attempt: executed 10, reported 10 "
        "(complete by the job's own word, for nothing tells how many steps it had to do)"
    )
    assert "final_step" not in finding.measures


def test_a_silent_job_of_several_hosts_has_reported_its_end_when_the_last_of_them_has():
    nobody = msgspec.structs.replace(SILENT, steps=0, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)", done="done")))
    run = Run(nobody, is_surveyed=False).attempt(0).step(30).done(30).step(40).done(40).exit(0).finish()
    assert "executed 40, reported 40" in judge(run).reason


def test_outside_the_budget_a_clean_failure_is_owed():
    run = Run(platform=Platform(max_retries=1)).attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 7).killed()
    assert judge(run.finish(succeeded=False), within_budget=False).outcome is Outcome.VALID
    assert judge(resumed(), within_budget=False).outcome is Outcome.VALID
    short = Run().attempt(0).begin().steps(1, 10).done(10).exit(0).finish()
    assert judge(short, within_budget=False).outcome is Outcome.INVALID
    endless = Run().attempt(0).begin().steps(1, 7).close("deadline")
    assert judge(endless, within_budget=False).outcome is Outcome.INVALID


def test_outside_the_budget_too_many_attempts_or_a_lost_checkpoint_are_broken():
    run = Run(platform=Platform(max_retries=0)).attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 7).killed()
    assert "had 2 attempts, and 1 were allowed" in judge(run.finish(succeeded=False), within_budget=False).reason
    run = Run().attempt(0).begin().steps(1, 7).lose(5).exit(1, retried=False).finish(succeeded=False)
    assert "held no committed checkpoint" in judge(run, within_budget=False).reason


def test_a_cancelled_execution_owes_a_clean_end_without_another_attempt():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultRequested, injection="1-cancel-execution", fault="cancel-execution")
    run.signal("SIGTERM", cause="cancel").save(7).exit(143, cause="cancel", retried=False)
    assert judge(run.fork().finish(succeeded=False), injections=CANCEL, within_budget=False).outcome is Outcome.VALID
    again = judge(run.add(AttemptStarted, pid=1, attempt=1).finish(succeeded=False), injections=CANCEL)
    assert (again.outcome, "attempt 1 began" in again.reason) == (Outcome.INVALID, True)
    assert judge(uninterrupted(), injections=CANCEL).outcome is Outcome.UNKNOWN


def test_a_cancel_that_could_not_act_accuses_no_later_attempt():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultRequested, injection="1-cancel-execution", fault="cancel-execution")
    run.here(FaultFailed, injection="1-cancel-execution", detail="nothing runs").exit(1).add(AttemptStarted, pid=1, attempt=1)
    assert judge(run.finish(succeeded=False), injections=CANCEL).outcome is Outcome.UNKNOWN


def test_outside_the_budget_a_workload_that_its_queue_has_deactivated_has_ended_cleanly():
    run = ClusterRun().submit().admit("dws")
    run.attempt(0).begin().steps(1, 7).exit(143, cause="platform")
    stopped = run.fork().deactivate().close("deadline")
    assert judge(stopped, within_budget=False).outcome is Outcome.VALID
    assert judge(stopped).outcome is Outcome.INVALID
    assert judge(run.fork().evict().close("deadline"), within_budget=False).outcome is Outcome.INVALID
    assert judge(run.lose(5).survey("end").deactivate().close("deadline"), within_budget=False).outcome is Outcome.INVALID


def test_a_job_that_somebody_takes_away_proves_nothing():
    run = ClusterRun().submit().admit("on-demand").attempt(0).begin().steps(1, 7).exit(signal=9, cause="platform").submit(status="Deleted")

    finding = judge(run.finish(succeeded=False, detail="jobs job-0 was deleted"))

    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason.startswith("Job job-0 of task 0 was deleted at ")
    assert finding.reason.endswith(", by no fault, before it had ended: nobody knows how it would have")


@pytest.mark.parametrize("status", ["Complete", "Failed"])
def test_a_job_that_goes_by_itself_after_its_end_is_judged(status: str):
    run = ClusterRun().submit().admit("on-demand").attempt(0).begin().steps(1, 20).complete()
    run.events = [event for event in run.events if not isinstance(event, RunClosed)]

    assert judge(run.submit(status=status).submit(status="Deleted").close()).outcome is Outcome.VALID


def test_a_job_that_is_taken_away_by_our_own_cleaning_is_judged():
    run = ClusterRun().submit().admit("on-demand").attempt(0).begin().steps(1, 7)
    run.events.append(RunClosed(t_s=run.t_s + 9, reason="deadline", ended_s=run.t_s))

    assert judge(run.submit(status="Deleted")).outcome is Outcome.INVALID


FOLLOWED = msgspec.structs.replace(
    SILENT, layout="files", steps=60, save_every=0, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)", done="done"))
)


def ended(*steps: int, done: bool = True) -> Run:
    """A followed job that says these steps, and that it was done."""
    run = Run(FOLLOWED).attempt(0).put(-1)
    for step in steps:
        run.step(step)
    return (run.done() if done else run).exit(0).add(ResultSeen, path="final.json", sha256="ab").finish()


def test_a_followed_job_that_stops_short_of_its_last_step_has_not_done_its_work():
    for done in (True, False):
        finding = judge(ended(*range(1, 36), done=done))
        assert finding.outcome is Outcome.INVALID
        assert "the last step that it said is 35 of 60" in finding.reason
        assert "reported 60" not in finding.reason
    whole = judge(ended(*range(1, 61)))
    assert whole.outcome is Outcome.VALID
    assert "executed 60, said that it was done" in whole.reason


@pytest.mark.parametrize("steps", [range(60), range(7, 61, 7), range(10, 61, 10), range(0, 60, 10), (), (60,)])
def test_what_its_log_leaves_out_at_the_end_is_not_missing(steps: Sequence[int]):
    assert judge(ended(*steps)).outcome is Outcome.VALID


def test_a_log_that_keeps_no_distance_or_has_lost_lines_leaves_the_end_open():
    assert judge(ended(1, 2, 3, 10, 20)).outcome is Outcome.UNKNOWN
    lost = ended(*range(1, 36)).add(ObservationLost, what="logs", count=3, detail="3 lines")
    assert judge(lost).outcome is Outcome.UNKNOWN


def test_who_dies_at_its_end_and_stops_short_when_it_is_tried_again_has_not_done_its_work():
    run = Run(FOLLOWED).attempt(0)
    for step in range(1, 61):
        run.step(step)
    run.killed().attempt(1).here(Started, restored_step=40)
    for step in range(41, 51):
        run.step(step)
    assert judge(run.done().exit(0).finish()).outcome is Outcome.INVALID
