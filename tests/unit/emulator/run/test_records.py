"""What is known of an execution from its events, and how the service says it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from google.cloud import run_v2

from harness.cloud_run.log_entries import LogEntries
from harness.emulator.logging.notices import LOST_LABEL
from harness.emulator.run.log_forwarding import LogForwarding
from harness.emulator.run.messages import execution_message, failure_text, reference, task_message
from harness.emulator.run.names import RunName
from harness.emulator.run.records import ExecutionRecord, TaskRecord
from harness.emulator.run.validation import complete_job
from harness.history import AttemptExited, AttemptStarted, LogLine, ObservationLost, SignalSent, TaskFinished
from tests.unit.emulator.run.test_templates import job

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NAME = RunName("p", "l", "j", "j-abcde")
State = run_v2.Condition.State
Reason = run_v2.Condition.ExecutionReason


def record(tasks=1):
    template = complete_job(job(execution={"task_count": tasks}))
    return ExecutionRecord(
        name=NAME,
        run_id="abcde",
        template=template,
        created=BEGAN,
        updated=BEGAN,
        tasks=[TaskRecord(index=index, created=BEGAN) for index in range(tasks)],
    )


def started(t_s, attempt=0, task=0):
    return AttemptStarted(t_s=t_s, task=task, attempt=attempt, pid=1)


def exited(t_s, attempt=0, task=0, *, code=None, signal=None, retried=False):
    return AttemptExited(t_s=t_s, task=task, attempt=attempt, exit_code=code, signal=signal, cause="job", leftovers=0, retried=retried)


def finished(t_s, task=0, *, succeeded):
    return TaskFinished(t_s=t_s, task=task, succeeded=succeeded, attempts=1, detail="")


def after(seconds):
    return BEGAN + timedelta(seconds=seconds)


def condition(message, kind):
    return next(found for found in message.conditions if found.type_ == kind)


def test_before_anything_has_run_all_is_pending_and_reconciling():
    message = execution_message(record(2))

    assert (message.reconciling, message.running_count, message.task_count, message.parallelism) == (True, 0, 2, 2)
    assert condition(message, "Completed").state == State.CONDITION_RECONCILING
    assert condition(message, "Started").state == State.CONDITION_PENDING
    assert message.start_time is None
    assert reference(record()).completion_status == run_v2.ExecutionReference.CompletionStatus.EXECUTION_PENDING


def test_a_task_that_is_tried_again_and_succeeds_counts_as_retried_and_succeeded():
    execution = record()
    execution.note([started(1)])
    assert execution_message(execution).running_count == 1
    execution.note([exited(2, code=1, retried=True)])
    assert execution_message(execution).running_count == 0
    execution.note([started(3, 1), exited(4, 1, code=0), finished(4, succeeded=True)])
    assert not execution.is_over
    execution.end(after(5))
    message, task = execution_message(execution), task_message(execution, execution.tasks[0])

    assert (message.succeeded_count, message.retried_count, message.failed_count, message.reconciling) == (1, 1, 0, False)
    assert condition(message, "Completed").state == State.CONDITION_SUCCEEDED
    retry = condition(message, "Retry")
    assert (retry.reason, retry.message) == (
        run_v2.Condition.CommonReason.IMMEDIATE_RETRY,
        "System will retry after 0:00:00 from lastTransitionTime for attempt 0.",
    )
    assert (message.start_time, message.completion_time) == (after(1), after(5))
    assert (task.retried, task.index, task.completion_time) == (1, 0, after(4))
    assert (task.name, task.last_attempt_result.exit_code) == (f"{NAME}/tasks/j-abcde-task0", 0)
    assert task.last_attempt_result.status.code == 0


def failed(*events):
    execution = record()
    execution.note([started(1), *events, finished(9, succeeded=False)])
    execution.end(after(9))
    return execution


def test_a_task_that_fails_says_how_its_last_attempt_ended():
    execution = failed(exited(2, code=3))
    message, task = execution_message(execution), task_message(execution, execution.tasks[0])
    completed = condition(message, "Completed")

    assert (completed.state, completed.execution_reason) == (State.CONDITION_FAILED, Reason.NON_ZERO_EXIT_CODE)
    assert completed.message == "Task j-abcde-task0 failed with message: The container exited with an error."
    assert failure_text(execution) == "Execution j-abcde has failed to complete, 0/1 tasks were a success."
    assert (task.last_attempt_result.exit_code, task.last_attempt_result.term_signal) == (3, 0)
    assert task.last_attempt_result.status.message == "The container exited with an error."
    assert reference(execution).completion_status == run_v2.ExecutionReference.CompletionStatus.EXECUTION_FAILED


def test_at_most_one_of_exit_code_and_signal_is_told():
    result = task_message(execution := failed(exited(2, signal=9)), execution.tasks[0]).last_attempt_result

    assert (result.exit_code, result.term_signal) == (0, 9)


def test_a_timeout_is_told_for_the_attempt_that_had_it_only():
    sent = SignalSent(t_s=2, task=0, attempt=0, signal="SIGTERM", cause="timeout", pids=(1,))
    last = failed(sent, exited(3, signal=9))
    before = failed(sent, exited(3, signal=9, retried=True), started(4, 1), exited(5, 1, code=1))

    assert condition(task_message(last, last.tasks[0]), "Completed").message == "The configured timeout was reached."
    assert condition(task_message(before, before.tasks[0]), "Completed").message == "The container exited with an error."


def test_a_cancelled_execution_counts_what_it_cancelled_and_says_who_did():
    execution = record(3)
    execution.note([started(1), started(1, task=1), exited(2, code=0), finished(2, succeeded=True)])
    execution.is_cancelling = True
    assert condition(execution_message(execution), "Completed").execution_reason == Reason.CANCELLING
    execution.note([exited(3, task=1, code=143), finished(3, 1, succeeded=False), finished(3, 2, succeeded=False)])
    execution.end(after(3))
    message = execution_message(execution)

    assert (message.succeeded_count, message.cancelled_count, message.failed_count) == (1, 2, 0)
    assert condition(message, "Completed").execution_reason == Reason.CANCELLED
    assert failure_text(execution) == "Execution j-abcde has been cancelled."


def test_what_cannot_be_started_fails_all_its_tasks_with_the_reason():
    execution = record(2)
    execution.end(after(1), problem="no such program")
    message = execution_message(execution)

    assert message.failed_count == 2
    assert condition(message, "ContainerReady").state == State.CONDITION_FAILED
    assert condition(message, "Completed").message == "Task j-abcde-task0 failed with message: no such program"
    assert "last_attempt_result" not in task_message(execution, execution.tasks[0])


def test_the_etag_changes_with_what_is_known_and_with_nothing_else():
    execution = record()
    first = execution_message(execution).etag
    assert execution_message(execution).etag == first
    execution.note([LogLine(t_s=1, text="a line", stream="stdout")])
    assert execution_message(execution).etag == first
    execution.note([started(1)])

    assert execution_message(execution).etag != first


# ---- log entries -------------------------------------------------------------------------------------------------------------


class Log:
    def __init__(self):
        self.entries = []

    def append(self, entries):
        self.entries += entries


@pytest.fixture
def forwarded(tmp_path):
    """Writes lines as the local target does, and returns what has come of them at the log."""
    log, path = Log(), tmp_path / "entries.jsonl"
    written = LogEntries(path, job="j", execution="j-abcde")
    forwarding = LogForwarding(path, NAME, created=BEGAN, log=log)

    def forward(*lines):
        written.append([line for line in lines if isinstance(line, LogLine)], BEGAN + timedelta(hours=1))
        forwarding.forward([started(0), *lines])
        return log.entries

    yield forward
    written.close()


def test_entries_name_the_project_and_place_of_their_execution(forwarded):
    (entry,) = forwarded(LogLine(t_s=1.5, text="step 1", stream="stdout"))

    assert entry["logName"] == "projects/p/logs/run.googleapis.com%2Fstdout"
    assert entry["resource"] == {"type": "cloud_run_job", "labels": {"job_name": "j", "project_id": "p", "location": "l"}}
    assert (entry["textPayload"], entry["labels"]["run.googleapis.com/execution_name"]) == ("step 1", "j-abcde")
    assert entry["timestamp"] == "2026-01-01T00:00:01.500000Z"


def test_entries_of_one_moment_sort_as_their_lines_came(forwarded):
    lines = [LogLine(t_s=1, text=str(number), stream="stdout") for number in range(12)]
    forwarded(*lines[:5])
    entries = forwarded(*lines[5:])

    ordered = sorted(entries[5:] + entries[:5], key=lambda entry: (entry["timestamp"], entry["insertId"]))
    assert [entry["textPayload"] for entry in ordered] == [str(number) for number in range(12)]
    assert len({entry["insertId"] for entry in entries}) == 12


def test_a_line_that_is_json_stays_structured(forwarded):
    (entry,) = forwarded(LogLine(t_s=1, text='{"step": 1}', stream="stdout"))

    assert entry["jsonPayload"] == {"step": 1}


def test_lines_that_were_not_kept_are_told_of_in_a_log_of_the_emulator(forwarded):
    lost = ObservationLost(t_s=2.0, what="logs", count=7, detail="7 lines over the limit")
    entries = forwarded(LogLine(t_s=1, text="kept", stream="stdout"), lost, ObservationLost(t_s=2.0, what="events", count=1, detail="x"))

    (notice,) = entries[1:]
    assert notice["logName"] == "projects/p/logs/harness-emulator"
    assert (notice["labels"][LOST_LABEL], notice["labels"]["run.googleapis.com/execution_name"]) == ("7", "j-abcde")
    assert "7 lines over the limit" in notice["textPayload"]


def test_what_prevents_a_start_is_said_in_the_platforms_log(tmp_path):
    log = Log()
    LogForwarding(tmp_path / "none", NAME, created=BEGAN, log=log).tell_problem("no such program")

    (entry,) = log.entries
    assert entry["logName"].endswith("varlog%2Fsystem")
    assert entry["textPayload"] == "no such program"
    assert msgspec.json.encode(entry)
