"""How an execution stands, by looks that may be late or out of order."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from google.api_core.exceptions import NotFound
from google.cloud import run_v2
from google.rpc import status_pb2

from harness.clock import ManualClock
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.watching import GONE_AFTER_S, ExecutionSeen, ExecutionWatcher, Sight, Standing, TaskSeen, execution_of, task_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATE = run_v2.Condition.State


def sight(*tasks: TaskSeen, execution: ExecutionSeen | None = None) -> Sight:
    return Sight(execution=execution or ExecutionSeen(), tasks=tasks)


def test_an_older_answer_takes_nothing_back():
    standing = Standing()
    standing.take(sight(TaskSeen(index=0, retried=2), execution=ExecutionSeen(is_over=True, succeeded=1)))
    standing.take(sight(TaskSeen(index=0, retried=1), execution=ExecutionSeen()))

    assert standing.tasks[0].retried == 2
    assert standing.execution.is_over


def test_a_task_that_is_over_stays_over():
    standing = Standing()
    standing.take(sight(TaskSeen(index=0, is_over=True, has_succeeded=True)))
    standing.take(sight(TaskSeen(index=0, retried=5)))

    assert standing.tasks[0].has_succeeded


def test_tasks_that_a_list_leaves_out_are_still_known():
    standing = Standing()
    standing.take(sight(TaskSeen(index=0), TaskSeen(index=1)))
    standing.take(sight(TaskSeen(index=1, retried=1)))

    assert {index: task.retried for index, task in standing.tasks.items()} == {0: 0, 1: 1}


def test_a_running_task_has_no_result():
    seen = task_of(run_v2.Task(index=3, retried=1, start_time=NOW))

    assert seen == TaskSeen(index=3, retried=1)


@pytest.mark.parametrize(
    ("result", "exit_code", "signal"),
    [
        (run_v2.TaskAttemptResult(exit_code=143), 143, None),
        (run_v2.TaskAttemptResult(exit_code=0), 0, None),
        (run_v2.TaskAttemptResult(term_signal=9), None, 9),
        (run_v2.TaskAttemptResult(status=status_pb2.Status(code=2)), 0, None),
    ],
)
def test_the_last_result_is_a_code_or_a_signal(result: run_v2.TaskAttemptResult, exit_code: int | None, signal: int | None):
    seen = task_of(run_v2.Task(index=0, completion_time=NOW, last_attempt_result=result))

    assert (seen.exit_code, seen.term_signal) == (exit_code, signal)


def test_a_failed_task_says_why():
    condition = run_v2.Condition(type_="Completed", state=STATE.CONDITION_FAILED, message="The container exited with an error.")
    seen = task_of(run_v2.Task(index=0, completion_time=NOW, conditions=[condition]))

    assert (seen.is_over, seen.has_succeeded, seen.message) == (True, False, "The container exited with an error.")


def test_an_execution_is_over_when_it_is_completed_or_its_condition_says_so():
    condition = run_v2.Condition(type_="Completed", state=STATE.CONDITION_SUCCEEDED)

    assert not execution_of(run_v2.Execution(running_count=1)).is_over
    assert execution_of(run_v2.Execution(completion_time=NOW, failed_count=1)).failed == 1
    assert execution_of(run_v2.Execution(conditions=[condition])).is_over


class Services:
    """Clients of which only the lists answer: with what the test says."""

    def __init__(self) -> None:
        self.is_there = True
        self.tasks = self.executions = self

    def list_tasks(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(pages=iter([SimpleNamespace(tasks=[run_v2.Task(index=0, retried=1)], next_page_token="")]))

    def get_execution(self, **_: object) -> run_v2.Execution:
        if not self.is_there:
            raise NotFound("no such execution")
        return run_v2.Execution(retried_count=1)


def test_one_answer_that_it_is_not_there_is_not_believed():
    services, clock = Services(), ManualClock()
    watcher = ExecutionWatcher(services, Caller(clock=clock), "projects/p/locations/r/jobs/j/executions/e")
    seen = watcher.look()
    services.is_there = False

    missed = watcher.look()
    assert (missed.is_gone, missed.execution, missed.tasks) == (False, seen.execution, seen.tasks)
    clock.advance(GONE_AFTER_S)
    assert watcher.look().is_gone

    services.is_there = True
    assert not watcher.look().is_gone
    services.is_there = False
    assert not watcher.look().is_gone
