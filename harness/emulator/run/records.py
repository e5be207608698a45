"""What is known of jobs, executions and tasks; nothing here runs or waits."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from google.cloud import run_v2
from google.iam.v1 import policy_pb2

from harness.emulator.operations import Operation
from harness.emulator.run.names import RunName
from harness.history import AttemptExited, AttemptStarted, Event, SignalSent, TaskFinished

TaskState = Literal["waiting", "running", "succeeded", "failed", "cancelled"]


@dataclass(slots=True, kw_only=True)
class JobRecord:
    """A job.

    Attributes:
        name: Its name.
        message: All that its caller gave, defaults filled in, and what the service adds.
        policy: Who may do what with it; kept, not enforced.
    """

    name: RunName
    message: run_v2.Job
    policy: policy_pb2.Policy = field(default_factory=policy_pb2.Policy)


@dataclass(slots=True, kw_only=True)
class TaskRecord:
    """A task of an execution.

    Attributes:
        index: From 0.
        attempts: How many have started.
        last_exit: The end of the last attempt; None before.
        retried: How often it was tried again.
        retried_at: When that was decided last.
        is_timed_out: Whether the last attempt that ended had used up its time.
    """

    index: int
    created: datetime
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    state: TaskState = "waiting"
    attempts: int = 0
    retried: int = 0
    started: datetime | None = None
    completed: datetime | None = None
    retried_at: datetime | None = None
    last_exit: AttemptExited | None = None
    is_timed_out: bool = False


@dataclass(slots=True, kw_only=True)
class ExecutionRecord:
    """An execution, from its creation on.

    Attributes:
        name: Its name.
        run_id: Its processes carry it, and its name ends with the last letters of it.
        template: What its job was when it began, overrides applied.
        created: When it was created: the zero of its events' times.
        updated: When something became known last.
        problem: Why nothing could be started; empty otherwise.
        is_cancelling: Whether a cancel was asked for.
        operation: That of ``RunJob``.
    """

    name: RunName
    run_id: str
    template: run_v2.Job
    created: datetime
    updated: datetime
    tasks: list[TaskRecord]
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    version: int = 1
    started: datetime | None = None
    completed: datetime | None = None
    problem: str = ""
    is_cancelling: bool = False
    operation: Operation | None = None

    @property
    def is_over(self) -> bool:
        """Whether all its tasks have ended."""
        return self.completed is not None

    def count(self, state: TaskState) -> int:
        """How many tasks are in a state."""
        return sum(task.state == state for task in self.tasks)

    @property
    def retried_count(self) -> int:
        """How many tasks were tried more than once."""
        return sum(task.retried > 0 for task in self.tasks)

    @property
    def succeeded(self) -> bool:
        """Whether every task has."""
        return self.is_over and self.count("succeeded") == len(self.tasks)

    def note(self, events: Sequence[Event]) -> None:
        """Learn from what has happened; the execution is over only when ``end`` says so."""
        for event in events:
            moment = self.created + timedelta(seconds=event.t_s)
            match event:
                case AttemptStarted():
                    self._begin_attempt(self.tasks[event.task], event, moment)
                case AttemptExited():
                    self._end_attempt(self.tasks[event.task], event, moment)
                case SignalSent(cause="timeout"):
                    self.tasks[event.task].is_timed_out = True
                case TaskFinished():
                    task = self.tasks[event.task]
                    task.state = "succeeded" if event.succeeded else "cancelled" if self.is_cancelling else "failed"
                    task.completed = moment
                case _:
                    continue
            self.touch(moment)

    def end(self, moment: datetime, *, problem: str = "") -> None:
        """All tasks have ended; with a problem, those that have not cannot be run."""
        for task in self.tasks:
            if task.state in ("waiting", "running"):
                task.state, task.completed = ("cancelled" if self.is_cancelling else "failed"), moment
        self.problem, self.completed = problem, moment
        self.touch(moment)

    def touch(self, moment: datetime) -> None:
        """Something has become known."""
        self.version += 1
        self.updated = max(self.updated, moment)

    def _begin_attempt(self, task: TaskRecord, event: AttemptStarted, moment: datetime) -> None:
        task.state, task.attempts, task.is_timed_out = "running", event.attempt + 1, False
        task.started = task.started or moment
        self.started = self.started or moment

    def _end_attempt(self, task: TaskRecord, event: AttemptExited, moment: datetime) -> None:
        task.last_exit = event
        if event.retried:
            task.state, task.retried, task.retried_at = "waiting", task.retried + 1, moment
