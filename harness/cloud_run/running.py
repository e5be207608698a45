"""An execution while it runs: the platform's moves on attempts, whatever these are made of, and one reading of all they say."""

import contextlib
import heapq
import selectors
import signal
from collections.abc import MutableMapping, Sequence
from typing import Protocol

from harness.capabilities import Launch
from harness.clock import Clock
from harness.cloud_run.attempt import DRAIN_S_MAX, Attempt
from harness.cloud_run.environment import execution_name
from harness.cloud_run.execution import Execution, Rules, TimeoutReached
from harness.cloud_run.log_entries import LogEntries
from harness.cloud_run.platform_lines import container_lines, describe_exit, timeout_line
from harness.cloud_run.record import ExecutionRecord
from harness.errors import BrokenHarnessError
from harness.history import (
    AttemptExited,
    AttemptStarted,
    Cause,
    Event,
    ExecutionStarted,
    SignalSent,
)
from harness.process_table import ProcessRow, is_there, read_row
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey

READ_BYTES_A_POLL = 512 << 10
"""Shared by all attempts: some 10 ms of reading, so that a job that floods us delays no deadline by more."""

READ_BYTES_MIN = 64 << 10
"""For each attempt, however many there are."""

WAIT_S_MAX_BLIND = 0.01
"""Where the system has no exit descriptors, an exit that closes no pipe is noticed this late."""


class Attempts(Protocol):
    """Makes the attempts of one execution, as a target has them."""

    def open(self, resources: contextlib.ExitStack, held: MutableMapping[AttemptKey, Attempt]) -> None:
        """Open what all attempts need; ``resources`` closes it, and must end whatever is then still ``held``."""
        ...

    def start(self, key: AttemptKey, selector: selectors.BaseSelector) -> Attempt:
        """Start an attempt.

        Raises:
            OSError: When it cannot be started.
            StoreError: When its event file cannot be created.
        """
        ...

    def took(self, attempt: Attempt) -> None:
        """The execution holds the attempt: from now on it is ended with it."""
        ...


class RunningExecution:
    """One execution: started by ``begin``, moved by ``poll``, ended by itself or by ``end_all``, freed by ``close``.

    Attributes:
        launch: What runs.
        name: The execution's name.
        rules: The state machine.
        attempts: Those that run or of which something is left, abandoned ones included.
        pending: Events that the next ``poll`` returns.

    Raises:
        StoreError: When its log cannot be created.
    """

    def __init__(self, launch: Launch, clock: Clock, attempts: Attempts) -> None:
        self.launch = launch
        self.name = execution_name(launch)
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.pending: list[Event] = []
        self._noticed: dict[tuple[AttemptKey, int], list[ProcessRow]] = {}
        self._clock = clock
        self._maker = attempts
        self.rules = Execution(
            Rules(
                tasks=launch.tasks,
                parallelism=launch.parallelism,
                max_retries=launch.max_retries,
                timeout_s=launch.timeout_s,
                grace_s=launch.grace_s,
            )
        )
        self._resources = contextlib.ExitStack()
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        log = LogEntries(launch.logs_dir / "entries.jsonl", job=launch.job, execution=self.name)
        self._record = ExecutionRecord(log, clock)
        self._resources.callback(self._record.close)

    def begin(self) -> None:
        """Open what the execution needs and start its first attempts.

        Raises:
            OSError: When a program cannot be started.
            StoreError: When an event file cannot be created.
        """
        launch = self.launch
        self._maker.open(self._resources, self.attempts)
        self.pending.append(
            ExecutionStarted(
                t_s=self.t_s(),
                execution=self.name,
                tasks=launch.tasks,
                max_retries=launch.max_retries,
                timeout_s=launch.timeout_s,
                grace_s=launch.grace_s,
            )
        )
        self._start_attempts()

    @property
    def is_over(self) -> bool:
        """Whether all tasks have ended and ``poll`` has told everything about them."""
        return self._record.is_complete and not self.pending

    def t_s(self) -> float:
        """Now, as the history counts."""
        return self._clock.monotonic_s() - self.launch.epoch_s

    def poll(self) -> list[Event]:
        """Make the platform's next moves and read everything."""
        if self.rules.has_starts:
            self._start_attempts_or_explain()
        self._make_moves()
        events = self._look()
        for attempt in [attempt for attempt in self.attempts.values() if attempt.is_over]:
            events += self._finish_attempt(attempt)
        events += self._record.report(self.rules, self.t_s())
        self._record.log(events)
        return events

    def wait(self, timeout_s: float) -> None:
        """Sleep until there is something to read, a move of the platform is due, or the time is over."""
        is_blind = any(attempt.processes.exit_descriptor is None for attempt in self.attempts.values())
        if self.pending or self.rules.has_starts or any(attempt.is_behind for attempt in self.attempts.values()):
            timeout_s = 0.0
        elif any(attempt.is_dying for attempt in self.attempts.values()):
            timeout_s = min(timeout_s, self._end_round_s())
        elif is_blind:
            timeout_s = min(timeout_s, WAIT_S_MAX_BLIND)
        due_in_s = self.rules.next_due_s() - self._clock.monotonic_s()
        self._selector.select(max(0.0, min(timeout_s, due_in_s)))

    def find(self, key: AttemptKey) -> Attempt:
        """An attempt whose first process runs.

        Raises:
            LookupError: When there is none.
        """
        attempt = self.attempts.get(key)
        if attempt is None or attempt.processes.poll() is not None:
            raise LookupError(f"attempt {key.attempt} of task {key.task} does not run")
        return attempt

    def send(self, key: AttemptKey, number: int, *, cause: Cause, rank: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """Send a signal, and say so in the history and to the rules.

        Raises:
            LookupError: When there is nobody to get it.
        """
        attempt = self.find(key)
        pids = attempt.processes.signal(number, attempt.pid_of(rank))
        self._note_sent(key, number, cause=cause, rank=rank, pids=pids)
        return pids

    def give_notice(self, key: AttemptKey, *, cause: Cause, rank: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """SIGTERM now, SIGKILL when the grace is over.

        Raises:
            LookupError: When there is nobody to get it.
        """
        pids = self.send(key, signal.SIGTERM, cause=cause, rank=rank)
        if rank != WHOLE_ATTEMPT:
            self._noticed.setdefault((key, rank), [row for pid in pids if (row := read_row(pid))])
        self.rules.give_notice(key, self._clock.monotonic_s(), rank)
        return pids

    def expire_grace(self, key: AttemptKey, rank: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """The grace that a notice began is over now; returns who was killed.

        Raises:
            LookupError: When there is nobody left, or no grace runs.
        """
        self.find(key)
        self.rules.end_grace(key, rank)
        if rank == WHOLE_ATTEMPT:
            return self.send(key, signal.SIGKILL, cause="grace")
        pids = self._end_notice_of_rank(key, rank)
        if not pids:
            raise LookupError(f"the process of rank {rank} of task {key.task} attempt {key.attempt} that had notice is gone")
        return pids

    def expire_timeout(self, key: AttemptKey) -> None:
        """The attempt has used up its time.

        Raises:
            LookupError: When it does not run.
        """
        self.find(key)
        self.pending.append(timeout_line(key, self.t_s(), self.launch.timeout_s))
        self.give_notice(key, cause="timeout")

    def end_all(self, last: list[Event]) -> None:
        """Kill every attempt, read what was left to read; what was seen until then is added to ``last``, whatever fails."""
        for key in list(self.attempts):
            with contextlib.suppress(LookupError):
                self.send(key, signal.SIGKILL, cause="stop")
        deadline_s = self._clock.monotonic_s() + DRAIN_S_MAX
        last += self._look()
        while not all(attempt.is_over for attempt in self.attempts.values()) and self._clock.monotonic_s() < deadline_s:
            self._clock.sleep(0.0 if any(attempt.is_behind for attempt in self.attempts.values()) else self._end_round_s())
            last += self._look()
        for attempt in list(self.attempts.values()):
            last += self._finish_attempt(attempt)
        self._record.log(last)

    def close(self) -> None:
        """End what is left of the run and free everything, whatever fails on the way."""
        self._resources.close()

    def _end_round_s(self) -> float:
        return min((attempt.processes.end_round_s for attempt in self.attempts.values()), default=0.0)

    def _start_attempts(self) -> None:
        for key in self.rules.take_starts(self._clock.monotonic_s()):
            attempt = self._maker.start(key, self._selector)
            self.attempts[key] = attempt
            self._maker.took(attempt)  # after it is ours to end, so that an interrupt in between loses nobody
            t_s = attempt.started_at_s - self.launch.epoch_s
            self.pending.append(AttemptStarted(t_s=t_s, task=key.task, attempt=key.attempt, pid=attempt.processes.pid))

    def _start_attempts_or_explain(self) -> None:
        try:
            self._start_attempts()
        except OSError as error:
            raise not_startable(error) from error

    def _make_moves(self) -> None:
        for move in self.rules.take_due(self._clock.monotonic_s()):
            with contextlib.suppress(LookupError):  # it ended by itself in the meantime
                if isinstance(move, TimeoutReached):
                    self.expire_timeout(move.key)
                elif move.rank == WHOLE_ATTEMPT:
                    self.send(move.key, signal.SIGKILL, cause="grace")
                else:
                    self._end_notice_of_rank(move.key, move.rank)

    def _end_notice_of_rank(self, key: AttemptKey, rank: int) -> tuple[int, ...]:
        """SIGKILL to the process that got the notice, if it is there still: another that has become the rank since has got none.

        Returns:
            Who got it.

        Raises:
            LookupError: When the attempt does not run.
        """
        attempt = self.find(key)
        left = [row.pid for row in self._noticed.pop((key, rank), []) if is_there(row)]
        pids = attempt.processes.kill(left)
        if pids:
            self._note_sent(key, signal.SIGKILL, cause="grace", rank=rank, pids=pids)
        return pids

    def _note_sent(self, key: AttemptKey, number: int, *, cause: Cause, rank: int, pids: tuple[int, ...]) -> None:
        """Say it in the history and to the rules."""
        self.rules.note_signal(key, number, cause, rank)
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        self.pending.append(SignalSent(t_s=self.t_s(), task=key.task, attempt=key.attempt, signal=name, cause=cause, pids=pids, rank=rank))

    def _look(self) -> list[Event]:
        """One reading of all attempts, merged by time, each source in its own order; who waits for us comes last."""
        now_s = self._clock.monotonic_s()
        budget_bytes = max(READ_BYTES_MIN, READ_BYTES_A_POLL // max(1, len(self.attempts)))
        pending, self.pending = self.pending, []
        streams: list[Sequence[Event]] = [pending]
        barriers: list[Event] = []
        for attempt in self.attempts.values():
            spoken, waiting = attempt.look(now_s, budget_bytes)
            streams += spoken
            barriers += waiting
        return [*heapq.merge(*streams, key=lambda event: event.t_s), *barriers]

    def _finish_attempt(self, attempt: Attempt) -> list[Event]:
        del self.attempts[attempt.key]
        now_s = self._clock.monotonic_s()
        events = attempt.finish(now_s)
        code, exited_at_s = attempt.processes.returncode, attempt.exited_at_s
        if code is None or exited_at_s is None:  # it withstands SIGKILL, and ``finish`` has said so
            return events
        kill = self._note_foreign_kill(attempt)
        ending = self.rules.end(attempt.key, succeeded=code == 0, detail=describe_exit(attempt.key, code, kill))
        exited = AttemptExited(
            t_s=exited_at_s - self.launch.epoch_s,
            task=attempt.key.task,
            attempt=attempt.key.attempt,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cause=ending.cause,
            leftovers=attempt.processes.leftover_count,
            retried=ending.retried,
        )
        return [*events, *container_lines(exited, now_s - self.launch.epoch_s, attempt.message), exited]

    def _note_foreign_kill(self, attempt: Attempt) -> str:
        """Tell the rules; returns how the platform says it."""
        kill = attempt.processes.foreign_kill()
        if kill is None:
            return ""
        if kill.line:
            attempt.message = (kill.line, "")
        if kill.is_whole:
            self.rules.note_signal(attempt.key, signal.SIGKILL, "platform")
        else:
            self.rules.note_hurt(attempt.key, "platform")
        return kill.line


def not_startable(error: OSError) -> BrokenHarnessError:
    """Why a process could not be started although its program is there: not the job's fault, and no reason to skip a test."""
    return BrokenHarnessError(f"an attempt could not be started: {error}; raise the limits (ulimit -a) or lower `parallelism`")
