"""Ends are told when what belongs before them was seen, or has not come for too long."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.clock import ManualClock
from harness.history import AttemptExited, Event, ExecutionFinished, ObservationLost, TaskFinished
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.attendant import VERSION
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.ends import Ends
from harness.targets.gcp.log_book import ContainerEnd, LogBook
from harness.targets.gcp.mailbox import Said
from harness.targets.gcp.pace import PROJECT
from harness.targets.gcp.reports import Report
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.watching import ExecutionSeen, Sight, Standing, TaskSeen
from tests.unit.targets.gcp.launches import launch_of

FIRST, SECOND = AttemptKey(0, 0), AttemptKey(0, 1)


class FakePlayed:
    def __init__(self) -> None:
        self.lines: list[tuple[AttemptKey, str, str]] = []

    def write(self, key: AttemptKey, text: str, *, plays: str, reason: str = "", severity: str = "WARNING") -> None:
        self.lines.append((key, text, plays))


class Stage:
    """All that ends are told from, moved by hand."""

    def __init__(self, home: Path, **launch: Any) -> None:
        self.clock = ManualClock(monotonic_s=200.0)
        self.launch = launch_of(home, **launch)
        self.launch.logs_dir.mkdir(parents=True)
        grounds: Any = SimpleNamespace(launch=self.launch, clock=self.clock, pace=PROJECT, t_s=lambda: self.clock.monotonic_s() - 100.0)
        self.attempts = Attempts(self.launch)
        self.book = LogBook(launch=self.launch, secrets=Secrets())
        self.played = FakePlayed()
        self.standing = Standing()
        played: Any = self.played
        self.ends = Ends(grounds, self.attempts, played=played, hurry=lambda: None, heard_until_s=self.clock.monotonic_s)

    def hear(self, *reports: Report, key: AttemptKey = FIRST) -> None:
        self.attempts.hear(Said(key=key, reports=reports, seen_s=self.clock.monotonic_s()))

    def begin(self, key: AttemptKey = FIRST) -> None:
        self.hear(Report(kind="hello", at=1.0, version=VERSION), Report(kind="begun", at=2.0, pid=7), key=key)

    def exit(self, code: int | None = 0, number: int | None = None, key: AttemptKey = FIRST) -> None:
        self.hear(Report(kind="exit", at=5.0, ended=5.0, code=code, signal=number), key=key)

    def see(self, *tasks: TaskSeen, execution: ExecutionSeen | None = None) -> None:
        self.standing.take(Sight(execution=execution or ExecutionSeen(), tasks=tasks))

    def tell(self) -> list[Event]:
        return self.ends.tell(self.standing, self.book)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.tell() if isinstance(event, kind)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_an_end_waits_for_the_platforms_line_about_it(stage: Stage):
    stage.begin()
    stage.exit(143)
    assert stage.tell() == []
    stage.book.ends[FIRST] = ContainerEnd(exit_code=143)

    assert [exited.exit_code for exited in stage.told(AttemptExited)] == [143]
    assert stage.tell() == []


def test_an_end_does_not_wait_for_a_line_for_ever(stage: Stage):
    stage.begin()
    stage.exit(143)
    stage.tell()
    stage.clock.advance(PROJECT.end_line_s)

    assert len(stage.told(AttemptExited)) == 1


def test_an_end_waits_for_the_lines_that_we_have_played(stage: Stage):
    stage.begin()
    stage.attempts.attempt(FIRST).message = ("Container instance preemption", "INSTANCE_PREEMPTED")
    stage.exit(143)
    stage.book.ends[FIRST] = ContainerEnd(exit_code=143)
    assert stage.tell() == []
    assert [text for _, text, _ in stage.played.lines] == ["Container instance preemption"]
    stage.book.played[FIRST] = 1

    assert len(stage.told(AttemptExited)) == 1
    assert len(stage.played.lines) == 1


def test_an_end_on_a_signal_is_played_since_the_agent_had_to_make_a_code_of_it(stage: Stage):
    stage.begin()
    stage.exit(None, 9)
    stage.tell()

    assert [text for _, text, _ in stage.played.lines] == ["Container terminated on signal 9."]


def test_an_attempt_without_a_last_word_ends_by_the_platforms_word_after_a_while(stage: Stage):
    stage.begin()
    stage.see(TaskSeen(index=0, retried=1))
    stage.book.ends[FIRST] = ContainerEnd(signal=9, t_s=70.0)
    assert stage.tell() == []
    stage.clock.advance(PROJECT.silence_s)

    (exited,) = stage.told(AttemptExited)
    assert (exited.attempt, exited.signal, exited.t_s) == (0, 9, 70.0)


def test_the_next_attempts_first_word_tells_that_the_one_before_is_over(stage: Stage):
    stage.begin()
    stage.see(TaskSeen(index=0))
    stage.hear(Report(kind="hello", at=1.0, version=VERSION), key=SECOND)
    stage.tell()
    stage.clock.advance(PROJECT.silence_s)

    assert [exited.attempt for exited in stage.told(AttemptExited)] == [0]


def test_ends_of_a_task_are_told_one_after_the_other(stage: Stage):
    stage.begin()
    stage.see(TaskSeen(index=0, retried=1))
    stage.hear(Report(kind="hello", at=1.0, version=VERSION), key=SECOND)
    stage.exit(143, key=SECOND)
    stage.book.ends[SECOND] = ContainerEnd(exit_code=143)
    assert stage.tell() == []
    stage.clock.advance(PROJECT.silence_s)
    told = stage.told(AttemptExited) + stage.told(AttemptExited)

    assert [exited.attempt for exited in told] == [0, 1]


def test_a_last_word_that_comes_in_time_is_believed(stage: Stage):
    stage.begin()
    stage.see(TaskSeen(index=0, retried=1))
    stage.tell()
    stage.clock.advance(PROJECT.silence_s / 2)
    stage.exit(7)
    stage.book.ends[FIRST] = ContainerEnd(exit_code=7)

    assert [(exited.exit_code, exited.cause) for exited in stage.told(AttemptExited)] == [(7, "job")]


OVER = TaskSeen(index=0, is_over=True, has_succeeded=True, exit_code=0)
DONE = ExecutionSeen(is_over=True, succeeded=1)


def finish(stage: Stage) -> None:
    stage.begin()
    stage.exit(0)
    stage.book.ends[FIRST] = ContainerEnd(exit_code=0)
    stage.see(OVER, execution=DONE)


def test_task_and_execution_are_told_after_their_attempts(stage: Stage):
    finish(stage)
    kinds = [type(event) for event in stage.tell()]

    assert kinds == [AttemptExited, TaskFinished, ExecutionFinished]
    assert [type(event) for event in stage.tell()] == []


def test_a_task_is_not_told_before_its_last_attempt(stage: Stage):
    stage.begin()
    stage.see(OVER, execution=DONE)

    assert stage.tell() == []


def test_a_task_that_was_cancelled_before_it_could_start_had_no_attempt(stage: Stage):
    stage.see(TaskSeen(index=0, is_over=True, message="cancelled"), execution=replace(DONE, succeeded=0, cancelled=1))

    assert [(task.attempts, task.succeeded) for task in stage.told(TaskFinished)] == [(0, False)]


def test_the_run_is_complete_when_the_log_has_been_quiet_and_was_read_once_more(stage: Stage):
    finish(stage)
    stage.tell()
    stage.book.has_audit = True
    stage.tell()
    assert not stage.ends.wants_last_look
    assert stage.ends.is_settling
    stage.clock.advance(PROJECT.log_quiet_s)
    stage.tell()
    assert stage.ends.wants_last_look
    assert not stage.ends.is_complete
    stage.ends.had_last_look()

    assert stage.tell() == []
    assert stage.ends.is_complete
    assert not stage.ends.is_settling


def test_lines_that_never_came_are_told_to_be_lost(stage: Stage):
    finish(stage)
    del stage.book.ends[FIRST]
    stage.tell()
    stage.clock.advance(PROJECT.end_line_s)
    stage.tell()
    stage.clock.advance(PROJECT.log_s_max)
    stage.tell()
    stage.ends.had_last_look()

    assert [(lost.what, lost.count) for lost in stage.told(ObservationLost)] == [("logs", 1)]
    assert stage.ends.is_complete


def test_an_execution_whose_tasks_are_never_listed_ends_and_says_what_is_not_known(stage: Stage):
    stage.see(execution=ExecutionSeen(is_over=True, failed=1))
    assert stage.tell() == []
    stage.clock.advance(PROJECT.silence_s * 2)

    assert [type(event) for event in stage.tell()][:2] == [ObservationLost, ExecutionFinished]
