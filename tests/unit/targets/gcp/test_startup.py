"""Time that goes by while containers start is told from the job's own."""

from pathlib import Path

import pytest

from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.attendant import VERSION
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.mailbox import Said
from harness.targets.gcp.reports import Report
from harness.targets.gcp.startup import RESTARTING_S, STARTING_S, Startup, is_starting, startup_s_max
from harness.targets.gcp.watching import ExecutionSeen, Sight, Standing, TaskSeen
from tests.unit.targets.gcp.launches import launch_of

HELLO, BEGUN = Report(kind="hello", at=1.0, version=VERSION), Report(kind="begun", at=2.0, pid=7)


class Stage:
    def __init__(self, home: Path, **launch: int) -> None:
        self.launch = launch_of(home, **launch)
        self.attempts, self.standing = Attempts(self.launch), Standing()

    def hear(self, *reports: Report, task: int = 0, attempt: int = 0) -> None:
        self.attempts.hear(Said(key=AttemptKey(task, attempt), reports=reports, seen_s=110.0))

    def exit(self, code: int, task: int = 0, attempt: int = 0) -> None:
        self.hear(Report(kind="exit", at=5.0, ended=5.0, code=code), task=task, attempt=attempt)

    @property
    def starts(self) -> bool:
        return is_starting(self.launch, self.attempts, self.standing)


def test_an_execution_starts_until_its_job_runs(tmp_path: Path):
    stage = Stage(tmp_path)
    assert stage.starts
    stage.hear(HELLO)
    assert stage.starts
    stage.hear(BEGUN)
    assert not stage.starts


def test_it_starts_again_between_an_attempt_and_the_next(tmp_path: Path):
    stage = Stage(tmp_path, max_retries=1)
    stage.hear(HELLO, BEGUN)
    stage.exit(1)
    assert stage.starts
    stage.hear(HELLO, BEGUN, attempt=1)
    assert not stage.starts


@pytest.mark.parametrize(("code", "attempt"), [(0, 0), (1, 1)])
def test_nothing_starts_after_a_success_or_the_last_attempt(tmp_path: Path, code: int, attempt: int):
    stage = Stage(tmp_path, max_retries=1)
    for number in range(attempt + 1):
        stage.hear(HELLO, BEGUN, attempt=number)
        stage.exit(code, attempt=number)
    assert not stage.starts


def test_all_tasks_that_may_run_together_are_waited_for(tmp_path: Path):
    together, one_by_one = Stage(tmp_path, tasks=2), Stage(tmp_path, tasks=2, parallelism=1)
    for stage in (together, one_by_one):
        stage.hear(HELLO, BEGUN)
    assert together.starts
    assert not one_by_one.starts


def test_what_the_platform_has_ended_or_we_have_cancelled_does_not_start(tmp_path: Path):
    over, task_over, cancelled = Stage(tmp_path), Stage(tmp_path), Stage(tmp_path)
    over.standing.take(Sight(execution=ExecutionSeen(is_over=True)))
    task_over.standing.take(Sight(execution=ExecutionSeen(), tasks=(TaskSeen(index=0, is_over=True),)))
    cancelled.attempts.is_cancelled = True
    assert [stage.starts for stage in (over, task_over, cancelled)] == [False] * 3


def test_only_time_while_it_starts_is_counted_and_no_more_than_is_granted():
    startup = Startup(longest_s=startup_s_max(1))
    for is_up, now_s in ((True, 10.0), (True, 20.0), (False, 40.0), (False, 90.0), (True, 100.0), (False, 105.0)):
        startup.note(is_starting=is_up, now_s=now_s)
    assert startup.total_s == 35.0
    startup.note(is_starting=True, now_s=200.0)
    startup.note(is_starting=True, now_s=9000.0)
    assert startup.total_s == STARTING_S + RESTARTING_S
