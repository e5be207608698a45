"""The ends of attempts, tasks and the execution: told when what belongs before them was seen, or has not come for too long."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from harness.history import Event, ExecutionFinished, ObservationLost, TaskFinished
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.attempt import Attempt
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.log_book import ContainerEnd, LogBook
from harness.targets.gcp.playing import PlayedLines
from harness.targets.gcp.watching import Standing, TaskSeen

MAINTENANCE_PLAYED, SIGNAL_PLAYED = "platform", "container-end"
"""What a played line stands for: why the platform took an attempt away, and the end on a signal that the agent had to turn into a code."""


@dataclass(slots=True)
class _Ending:
    """An attempt whose last word was heard: how many lines we have played for it, and until when its end waits for the log."""

    played: int
    due_s: float


class Ends:
    """Tells each end once, those of a task one after the other.

    Args:
        grounds: What the run works with.
        attempts: What agents have told.
        played: Writes lines in the platform's place.
        hurry: Has everything looked at soon.
        heard_until_s: By when what agents had said was read.

    Attributes:
        is_complete: Whether the end of the execution was told, and the log counts as whole.
        wants_last_look: Whether the log is to be read once more from its beginning.
    """

    def __init__(
        self,
        grounds: Grounds,
        attempts: Attempts,
        *,
        played: PlayedLines,
        hurry: Callable[[], None],
        heard_until_s: Callable[[], float],
    ) -> None:
        self.is_complete = self.wants_last_look = False
        self._grounds, self._attempts, self._played, self._hurry = grounds, attempts, played, hurry
        self._heard_until_s = heard_until_s
        self._endings: dict[AttemptKey, _Ending] = {}
        self._silent_since_s: dict[AttemptKey, float] = {}
        self._told: set[int] = set()
        self._is_finished = self._had_last_look = False
        self._finished_s = self._unknown_since_s = math.inf

    @property
    def is_settling(self) -> bool:
        """Whether the end of the execution was told, and only its log is waited for, which has an end of its own."""
        return self._is_finished and not self.is_complete

    def tell(self, standing: Standing, book: LogBook) -> list[Event]:
        """What has ended, as far as everything before it is known.

        Raises:
            CallError: When a line cannot be played.
        """
        now_s = self._grounds.clock.monotonic_s()
        events: list[Event] = []
        for attempt in sorted(self._attempts.by_key.values(), key=lambda each: each.key):
            if attempt.exit is not None and not attempt.is_over and self._attempts.is_preceded(attempt.key):
                events += self._tell_attempt(attempt, book, now_s)
        for task in standing.tasks.values():
            events += self._tell_silent(task, book, now_s)
            events += self._tell_task(task)
        events += self._tell_execution(standing, now_s)
        if self._is_finished and not self.is_complete:
            events += self._settle_log(book, now_s)
        return events

    def had_last_look(self) -> None:
        """The log was read once more, or as much of it as could be."""
        self.wants_last_look, self._had_last_look = False, True

    # ---- attempts ----------------------------------------------------------------------------------------------------

    def _tell_attempt(self, attempt: Attempt, book: LogBook, now_s: float) -> list[Event]:
        """Its end, when the platform's line about it has come, or has not for a while."""
        ending = self._endings.get(attempt.key)
        if ending is None:
            ending = _Ending(played=self._play(attempt), due_s=now_s + self._grounds.pace.end_line_s)
            self._endings[attempt.key] = ending
            self._hurry()
        is_read = attempt.key in book.ends and book.played[attempt.key] >= ending.played
        if not is_read and now_s < ending.due_s:
            return []
        return self._attempts.tell_exit(attempt, now_s)

    def _play(self, attempt: Attempt) -> int:
        """Write the platform's lines in its place; how many."""
        count = 0
        if attempt.message is not None:
            text, reason = attempt.message
            self._played.write(attempt.key, text, plays=MAINTENANCE_PLAYED, reason=reason)
            count += 1
        if attempt.exit is not None and attempt.exit.signal is not None and attempt.exit.began:
            self._played.write(attempt.key, f"Container terminated on signal {attempt.exit.signal}.", plays=SIGNAL_PLAYED)
            count += 1
        return count

    def _tell_silent(self, task: TaskSeen, book: LogBook, now_s: float) -> list[Event]:
        """Attempts that the platform holds for over and whose agents have no last word, after a while."""
        events: list[Event] = []
        has_begun = task.retried > 0 or task.exit_code is not None or task.term_signal is not None
        last = task.retried if task.is_over and (has_begun or self._is_heard(task.index)) else task.retried - 1
        ended = range(max(last, self._last_heard(task.index) - 1) + 1)
        for key in [AttemptKey(task.index, number) for number in ended]:
            attempt = self._attempts.by_key.get(key)
            if attempt is not None and (attempt.is_over or attempt.exit is not None):
                continue
            since_s = self._silent_since_s.setdefault(key, now_s)
            if self._heard_until_s() < since_s + self._grounds.pace.silence_s or not self._attempts.is_preceded(key):
                break
            attempt = self._attempts.attempt(key)
            events += self._play_silent(attempt)
            end = book.ends.get(key) or _end_of(task, key)
            ended_s = now_s if end.t_s is None else min(now_s, end.t_s + self._grounds.launch.epoch_s)
            events += self._attempts.tell_silent_exit(attempt, ended_s, exit_code=end.exit_code, number=end.signal)
        return events

    def _play_silent(self, attempt: Attempt) -> list[Event]:
        if attempt.message is not None:
            text, reason = attempt.message
            self._played.write(attempt.key, text, plays=MAINTENANCE_PLAYED, reason=reason)
        return []

    def _is_heard(self, task: int) -> bool:
        return self._last_heard(task) >= 0

    def _last_heard(self, task: int) -> int:
        """The last attempt of a task that has said anything: those before it are over, whatever else is known."""
        return max((key.attempt for key, attempt in self._attempts.by_key.items() if key.task == task and attempt.hello), default=-1)

    # ---- tasks and execution -----------------------------------------------------------------------------------------

    def _tell_task(self, task: TaskSeen) -> list[Event]:
        """A task that is over, when all of its attempts are."""
        known = [attempt for key, attempt in self._attempts.by_key.items() if key.task == task.index]
        if not task.is_over or task.index in self._told or not all(attempt.is_over for attempt in known):
            return []
        has_result = task.exit_code is not None or task.term_signal is not None
        if not known and has_result:
            return []  # its attempts are told first
        self._told.add(task.index)
        attempts = max((attempt.key.attempt + 1 for attempt in known), default=0)
        return [
            TaskFinished(
                t_s=self._grounds.t_s(), task=task.index, succeeded=task.has_succeeded, attempts=attempts, detail=task.message[:500]
            )
        ]

    def _tell_execution(self, standing: Standing, now_s: float) -> list[Event]:
        execution = standing.execution
        if not execution.is_over or self._is_finished:
            return []
        self._unknown_since_s = min(self._unknown_since_s, now_s)
        missing = self._grounds.launch.tasks - len(self._told)
        is_ending = any(not attempt.is_over for attempt in self._attempts.by_key.values())
        patience_s = self._grounds.pace.silence_s * 2 + (self._grounds.pace.end_line_s * 2 if is_ending else 0.0)
        if missing and now_s < self._unknown_since_s + patience_s:
            return []
        self._is_finished, self._finished_s = True, now_s
        self._hurry()
        t_s = self._grounds.t_s()
        finished = ExecutionFinished(
            t_s=t_s,
            succeeded=execution.succeeded,
            failed=execution.failed,
            cancelled=execution.cancelled,
            retried=execution.retried,
        )
        if not missing:
            return [finished]
        detail = f"the execution is over, and the platform did not tell how {missing} of its tasks ended"
        return [ObservationLost(t_s=t_s, what="events", count=missing, detail=detail), finished]

    def _settle_log(self, book: LogBook, now_s: float) -> list[Event]:
        """Wait for the log: for the platform's line about each attempt, and then for a while without anything new."""
        pace = self._grounds.pace
        missing = [attempt.key for attempt in self._attempts.by_key.values() if attempt.key not in book.ends]
        is_late = now_s >= self._finished_s + pace.log_s_max
        is_quiet = now_s >= max(self._finished_s, book.newest_s) + pace.log_quiet_s
        if not is_late and (missing or not is_quiet or not book.has_audit):
            return []
        if not self._had_last_look:
            self.wants_last_look = True
            return []
        self.is_complete = True
        events: list[Event] = []
        t_s = self._grounds.t_s()
        if missing:
            named = ", ".join(f"attempt {key.attempt} of task {key.task}" for key in missing[:5])
            detail = f"the platform's line about the end of {named} had not come after {pace.log_s_max:g} s: lines before it may be missing"
            events.append(ObservationLost(t_s=t_s, what="logs", count=len(missing), detail=detail))
        return events


def _end_of(task: TaskSeen, key: AttemptKey) -> ContainerEnd:
    """How the platform says that a task's last attempt ended; of an earlier one it says nothing."""
    if key.attempt == task.retried and task.is_over:
        return ContainerEnd(exit_code=task.exit_code, signal=task.term_signal)
    return ContainerEnd()
