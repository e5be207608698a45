"""A history with a gap proves nothing; one without is said to be whole."""

import msgspec
import pytest

from harness.checkers.recording import check
from harness.history import FaultObserved, FaultRequested, ObservationLost, RunOpened
from harness.scenario import LogPatterns, Outside
from harness.verdict import Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun


def reason_of(run: Run, **fields: object) -> str:
    finding = check(run.evidence(**fields))
    assert finding.outcome is Outcome.UNKNOWN, finding
    return finding.reason


def test_a_whole_history_is_valid():
    finding = check(resumed().evidence())
    assert finding.outcome is Outcome.VALID
    assert "in 2 attempts" in finding.reason


def test_a_history_without_a_header_or_of_another_schema_is_unknown():
    run = uninterrupted()
    header = run.events.pop(0)
    assert "no header" in reason_of(run)
    assert isinstance(header, RunOpened)
    run.events.insert(0, msgspec.structs.replace(header, schema=99))
    assert "schema 99" in reason_of(run)


def test_a_torn_or_unclosed_history_is_unknown():
    assert "torn" in reason_of(uninterrupted(), is_torn=True)
    run = uninterrupted()
    run.events.pop()
    assert "never closed" in reason_of(run)


@pytest.mark.parametrize("how", ["interrupted", "error"])
def test_a_run_that_broke_off_is_unknown(how: str):
    run = Run().attempt(0).begin().steps(1, 7).close(how, detail="why")
    assert f"as {how}: why" in reason_of(run)


def test_a_run_ended_by_its_deadline_is_fully_recorded():
    assert check(Run().attempt(0).begin().steps(1, 7).close("deadline").evidence()).outcome is Outcome.VALID


def test_lost_events_are_a_gap_and_lost_logs_only_of_a_job_that_is_read_by_its_log():
    assert "5 events" in reason_of(uninterrupted().add(ObservationLost, what="events", count=5, detail="garbage"))
    logs = {"what": "logs", "count": 9, "detail": "limit"}
    assert check(uninterrupted().add(ObservationLost, **logs).evidence()).outcome is Outcome.VALID
    assert "9 logs" in reason_of(uninterrupted(SILENT).add(ObservationLost, **logs))


def test_an_attempt_that_said_nothing_is_a_gap_unless_it_was_hit_before_it_could():
    assert "attempt 1" in reason_of(resumed().attempt(1, task=1).exit(1))
    hit = Run().attempt(0).killed().attempt(1).begin().steps(1, 20).complete()
    assert check(hit.evidence()).outcome is Outcome.VALID
    timed_out = Run().attempt(0).signal("SIGTERM", cause="timeout").exit(143, cause="timeout").attempt(1).begin().steps(1, 20).complete()
    assert check(timed_out.evidence()).outcome is Outcome.VALID


def test_a_history_without_attempts_is_a_gap():
    assert "no attempt" in reason_of(Run().close())


def test_a_checkpoint_whose_save_nobody_recorded_is_a_gap():
    run = Run().attempt(0).begin().step(1).put(1).exit(1).close()
    assert "a checkpoint of step 1 was on storage" in reason_of(run)
    assert check(Run(SILENT).attempt(0).put(1).exit(1).close().evidence()).outcome is Outcome.VALID


def test_of_a_silent_job_only_the_first_save_is_demanded():
    workload = msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(saved=r"saved (?P<step>\d+)")))
    assert "no save of that step" in reason_of(Run(workload).attempt(0).put(1).exit(1).close())
    assert check(Run(workload).attempt(0).save(1).put(2).exit(1).close().evidence()).outcome is Outcome.VALID


def test_what_a_fault_planted_was_not_saved_by_the_job():
    run = Run().attempt(0).begin().steps(1, 7).killed().put(18).damaged().close()
    assert check(run.evidence()).outcome is Outcome.VALID


def test_files_of_an_unknown_layout_are_no_saves():
    run = Run(msgspec.structs.replace(JOB, layout="files")).attempt(0).begin().put(1).exit(1).close()
    assert check(run.evidence()).outcome is Outcome.VALID


def test_files_may_be_the_save_that_was_due_and_that_nobody_spoke_of():
    files = msgspec.structs.replace(JOB, layout="files")
    run = Run(files).attempt(0).begin().steps(1, 4).step(5).put(-1).exit(1).close()
    assert "a save was due every 5 steps, and none was ever recorded" in reason_of(run)
    assert check(Run(files).attempt(0).begin().steps(1, 7).save(5).put(-1).exit(1).close().evidence()).outcome is Outcome.VALID


def test_a_fault_that_was_never_healed_is_a_gap():
    run = Run().attempt(0).begin().steps(1, 3).here(FaultRequested, injection="1-slow", fault="slow-writes")
    run.here(FaultObserved, injection="1-slow", evidence="3 hits").steps(4, 20).complete()
    assert "1-slow of attempt 0" in reason_of(run)


def test_a_job_that_waits_in_its_queue_to_the_end_owes_no_attempt():
    assert check(ClusterRun().submit().queued().close("deadline").evidence()).outcome is Outcome.VALID
    assert "no attempt was ever seen" in reason_of(ClusterRun().submit().close("deadline"))


def test_an_attempt_that_the_platform_ended_before_its_first_word_is_no_gap():
    run = ClusterRun().submit().admit()
    run.attempt(0).exit(137, cause="platform").attempt(1).begin().steps(1, 20).complete()
    assert check(run.evidence()).outcome is Outcome.VALID
    own = Run().attempt(0).exit(137).attempt(1).begin().steps(1, 20).complete()
    assert "neither boot nor start" in reason_of(own)
