"""The rules of an execution of a Cloud Run job as a state machine: no process, no clock of its own, nothing that waits.

It is told what happened and when, and says what the platform does next. ``harness.cloud_run.running`` does it.

Source: https://docs.cloud.google.com/run/docs/configuring/max-retries, https://docs.cloud.google.com/run/docs/configuring/task-timeout,
    https://docs.cloud.google.com/run/docs/configuring/parallelism.
"""

import math
import signal
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from harness.history import Cause
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey

_HARMLESS = {signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH}
"""Signals whose default action ends nothing: they never are the cause of an exit."""


class TimeoutReached(NamedTuple):
    """Move: the attempt has used up its time."""

    key: AttemptKey


class GraceOver(NamedTuple):
    """Move: the grace period has passed for the attempt, or for one rank of it."""

    key: AttemptKey
    rank: int


Move = TimeoutReached | GraceOver


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the platform grants; ``parallelism`` 0 means all tasks at once."""

    tasks: int
    parallelism: int
    max_retries: int
    timeout_s: float
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What an attempt's exit means: who ended it, and whether the task is tried again."""

    cause: Cause
    retried: bool


@dataclass(slots=True)
class _Attempt:
    timeout_at_s: float
    kill_at_s: dict[int, float] = field(default_factory=dict)
    ended_by: Cause | None = None
    hurt_by: Cause | None = None
    is_abandoned: bool = False

    @property
    def has_notice(self) -> bool:
        return WHOLE_ATTEMPT in self.kill_at_s


@dataclass(slots=True)
class Task:
    """A task: ``held`` for one round of starts after its attempt was abandoned, then ``waiting`` for a free place."""

    index: int
    state: Literal["held", "waiting", "running", "succeeded", "failed", "cancelled"] = "waiting"
    attempts: int = 0
    detail: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it will not be tried again."""
        return self.state in ("succeeded", "failed", "cancelled")


class Execution:
    """All tasks of one execution."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.tasks = [Task(index) for index in range(rules.tasks)]
        self._attempts: dict[AttemptKey, _Attempt] = {}
        self._is_cancelled = False

    @property
    def is_over(self) -> bool:
        """Whether all tasks have ended; abandoned attempts may still run."""
        return all(task.is_over for task in self.tasks)

    @property
    def has_starts(self) -> bool:
        """Whether ``take_starts`` has something to start or to let go, now or in its next round."""
        return any(task.state == "held" for task in self.tasks) or bool(self._startable())

    def count(self, state: Literal["succeeded", "failed", "cancelled"]) -> int:
        """How many tasks ended so."""
        return sum(task.state == state for task in self.tasks)

    @property
    def retried_count(self) -> int:
        """How many tasks were tried more than once, as ``retriedCount`` of the Admin API counts."""
        return sum(task.attempts > 1 for task in self.tasks)

    def next_due_s(self) -> float:
        """When ``take_due`` has its next move; infinity when there is none."""
        return min(
            (at_s for attempt in self._attempts.values() for at_s in (attempt.timeout_at_s, *attempt.kill_at_s.values())), default=math.inf
        )

    def take_starts(self, now_s: float) -> list[AttemptKey]:
        """Begin the attempts for which there is a place; a retry keeps the place of its task."""
        started = [AttemptKey(task.index, task.attempts) for task in self._startable()]
        for key in started:
            task = self.tasks[key.task]
            task.state, task.attempts = "running", task.attempts + 1
            self._attempts[key] = _Attempt(timeout_at_s=now_s + self._rules.timeout_s)
        for task in self.tasks:
            if task.state == "held":
                task.state = "waiting"
        return started

    def take_due(self, now_s: float) -> list[Move]:
        """The moves whose time has come, each once."""
        moves: list[Move] = []
        for key, attempt in self._attempts.items():
            if attempt.timeout_at_s <= now_s:
                attempt.timeout_at_s = math.inf
                if not attempt.has_notice:
                    moves.append(TimeoutReached(key))
            for rank in [rank for rank, at_s in attempt.kill_at_s.items() if at_s <= now_s]:
                attempt.kill_at_s[rank] = math.inf
                moves.append(GraceOver(key, rank))
        return moves

    def give_notice(self, key: AttemptKey, now_s: float, rank: int = WHOLE_ATTEMPT) -> None:
        """SIGTERM was sent: the grace period runs. A second notice does not prolong the first."""
        self._attempts[key].kill_at_s.setdefault(rank, now_s + self._rules.grace_s)

    def end_grace(self, key: AttemptKey, rank: int = WHOLE_ATTEMPT) -> None:
        """The grace is over before its time; ``take_due`` tells it no more.

        Raises:
            LookupError: When none runs: there was no notice, or its grace is over already.
        """
        attempt = self._attempts[key]
        if attempt.kill_at_s.get(rank, math.inf) == math.inf:
            whose = f"attempt {key.attempt} of task {key.task}" + ("" if rank == WHOLE_ATTEMPT else f", rank {rank},")
            raise LookupError(f"no grace runs for {whose}: it has had no notice, or its grace is over")
        attempt.kill_at_s[rank] = math.inf

    def note_signal(self, key: AttemptKey, number: int, cause: Cause, rank: int = WHOLE_ATTEMPT) -> None:
        """Remember who sent a signal that can end the attempt."""
        attempt = self._attempts[key]
        if number in _HARMLESS:
            return
        if rank == WHOLE_ATTEMPT:
            attempt.ended_by = cause
        else:
            attempt.hurt_by = cause

    def note_hurt(self, key: AttemptKey, cause: Cause) -> None:
        """Remember who killed something in the attempt that is no rank of it: should it fail, this is why."""
        self._attempts[key].hurt_by = cause

    def has_notice(self, key: AttemptKey) -> bool:
        """Whether the attempt as a whole has got SIGTERM from the platform."""
        return self._attempts[key].has_notice

    def is_abandoned(self, key: AttemptKey) -> bool:
        """Whether the platform has lost sight of the attempt."""
        return self._attempts[key].is_abandoned

    def end(self, key: AttemptKey, *, succeeded: bool, detail: str) -> Ending:
        """The attempt has exited: 0 is success, everything else is tried again while attempts are left."""
        attempt = self._attempts.pop(key)
        cause: Cause = attempt.ended_by or ("job" if succeeded else attempt.hurt_by or "job")
        task = self.tasks[key.task]
        if attempt.is_abandoned:
            return Ending(cause=cause, retried=False)
        if succeeded:
            task.state = "succeeded"
        else:
            self._fail(task, retry_state="waiting")
        task.detail = detail
        return Ending(cause=cause, retried=task.state == "waiting")

    def abandon(self, key: AttemptKey) -> None:
        """Hold the attempt for dead: it counts as failed, and the task goes on without it.

        Raises:
            LookupError: When it was abandoned before.
        """
        attempt = self._attempts[key]
        if attempt.is_abandoned:
            raise LookupError(f"attempt {key.attempt} of task {key.task} is abandoned already")
        attempt.is_abandoned, attempt.timeout_at_s = True, math.inf
        attempt.kill_at_s.clear()
        task = self.tasks[key.task]
        self._fail(task, retry_state="held")
        task.detail = "the platform lost sight of the last attempt"

    def cancel(self) -> list[AttemptKey]:
        """Try nothing again; returns the running attempts that have no notice yet. Tasks that wait are over."""
        self._is_cancelled = True
        for task in self.tasks:
            if task.state in ("waiting", "held"):
                task.state, task.detail = "cancelled", "cancelled before an attempt could start"
        return [key for key, attempt in self._attempts.items() if not attempt.is_abandoned and not attempt.has_notice]

    def _startable(self) -> list[Task]:
        running = sum(task.state == "running" for task in self.tasks)
        places = (self._rules.parallelism or self._rules.tasks) - running
        waiting = [task for task in self.tasks if task.state == "waiting"]
        return sorted(waiting, key=lambda task: (task.attempts == 0, task.index))[:places]

    def _fail(self, task: Task, *, retry_state: Literal["held", "waiting"]) -> None:
        if self._is_cancelled:
            task.state = "cancelled"
        else:
            task.state = retry_state if task.attempts <= self._rules.max_retries else "failed"
