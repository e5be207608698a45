"""What is told of an execution besides its attempts: the tasks that are over, its end, and the log as entries."""

from collections.abc import Sequence

from harness.clock import Clock
from harness.cloud_run.execution import Execution
from harness.cloud_run.log_entries import ExecutionEnd, LogEntries
from harness.cloud_run.platform_lines import execution_end, execution_end_line
from harness.history import Event, ExecutionFinished, LogLine, TaskFinished


class ExecutionRecord:
    """Tells each thing once.

    Attributes:
        is_complete: Whether the end of the execution has been told.
    """

    def __init__(self, entries: LogEntries, clock: Clock) -> None:
        self.is_complete = False
        self._entries = entries
        self._clock = clock
        self._told: set[int] = set()
        self._end: ExecutionEnd | None = None

    def report(self, rules: Execution, t_s: float) -> list[Event]:
        """Tasks that are over, and the execution when all are."""
        events: list[Event] = []
        for task in rules.tasks:
            if task.is_over and task.index not in self._told:
                self._told.add(task.index)
                succeeded = task.state == "succeeded"
                events.append(TaskFinished(t_s=t_s, task=task.index, succeeded=succeeded, attempts=task.attempts, detail=task.detail))
        if not rules.is_over or self.is_complete:
            return events
        self.is_complete = True
        finished = ExecutionFinished(
            t_s=t_s,
            succeeded=rules.count("succeeded"),
            failed=rules.count("failed"),
            cancelled=rules.count("cancelled"),
            retried=rules.retried_count,
        )
        self._end = execution_end(self._entries.execution, rules, finished)
        return [*events, finished, execution_end_line(self._end, t_s)]

    def log(self, events: Sequence[Event]) -> None:
        """Append the lines among the events to the log.

        Raises:
            StoreError: When it cannot be written; later lines are then left out.
        """
        self._entries.append([event for event in events if isinstance(event, LogLine)], self._clock.utc(), self._end)

    def close(self) -> None:
        """Close the log."""
        self._entries.close()
