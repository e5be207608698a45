"""What Cloud Run says of an execution and its tasks: looked at again and again, since it tells nobody by itself.

Answers may be late, out of order, or not come for a while: what was seen once stays seen.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from harness.targets.gcp.calling import Caller, Page, Request
from harness.targets.gcp.failures import ResourceMissingError

if TYPE_CHECKING:
    from google.cloud import run_v2

    from harness.targets.gcp.connection import Clients

SERVICE = "run.googleapis.com"

GONE_AFTER_S = 2.0
"""One answer that it is not there is not believed: right after it was made, another replica may not know it yet. Assumed, not measured."""

PAGE_TASKS = 100
"""Source: https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.jobs.executions.tasks/list (page size)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSeen:
    """A task, as Cloud Run shows it.

    Attributes:
        index: Which.
        retried: How many times it was tried again: its last attempt has this number.
        is_over: Whether it will not be tried again.
        has_succeeded: How it ended.
        exit_code: Of the last attempt that ended; None where it ended by a signal, or none has.
        term_signal: That signal; None likewise.
        message: Why it failed, in the platform's words.
    """

    index: int
    retried: int = 0
    is_over: bool = False
    has_succeeded: bool = False
    exit_code: int | None = None
    term_signal: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSeen:
    """An execution, as Cloud Run shows it.

    Attributes:
        is_over: Whether it has ended.
        succeeded, failed, cancelled, retried: How many tasks have.
        message: Of the condition that says why it ended.
    """

    is_over: bool = False
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    retried: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look.

    Attributes:
        execution: The execution.
        tasks: Those that were listed, by index.
        seen_s: When, on the monotonic clock.
        is_gone: The execution is not there: somebody has deleted it, or its job.
    """

    execution: ExecutionSeen
    tasks: tuple[TaskSeen, ...] = ()
    seen_s: float = 0.0
    is_gone: bool = False


class Watcher(Protocol):
    """Looks at an execution."""

    def look(self) -> Sight:
        """How it stands.

        Raises:
            CallError: When that cannot be had.
        """
        ...


class ExecutionWatcher:
    """Looks at one execution through Google's clients."""

    def __init__(self, clients: "Clients", caller: Caller, name: str) -> None:
        self._clients, self._caller, self._name = clients, caller, name
        self._last = Sight(execution=ExecutionSeen())
        self._missing_since_s: float | None = None

    def look(self) -> Sight:
        """See ``Watcher``. What is not there for the first time is as it was seen last."""
        from google.cloud import run_v2

        def get(timeout_s: float) -> "run_v2.Execution":
            return self._clients.executions.get_execution(name=self._name, timeout=timeout_s, retry=None)

        def fetch(token: str, timeout_s: float) -> Page["run_v2.Task"]:
            request = run_v2.ListTasksRequest(parent=self._name, page_size=PAGE_TASKS, page_token=token)
            page = next(self._clients.tasks.list_tasks(request=request, timeout=timeout_s, retry=None).pages)
            return Page(items=list(page.tasks), token=page.next_page_token)

        try:
            tasks = [task_of(task) for task in self._caller.pages(self._request("Tasks.ListTasks"), fetch)]
            execution = execution_of(self._caller.call(self._request("Executions.GetExecution"), get))
        except ResourceMissingError:
            return self._miss(self._caller.clock.monotonic_s())
        tasks.sort(key=lambda task: task.index)
        self._missing_since_s = None
        self._last = Sight(execution=execution, tasks=tuple(tasks), seen_s=self._caller.clock.monotonic_s())
        return self._last

    def _miss(self, now_s: float) -> Sight:
        if self._missing_since_s is None:
            self._missing_since_s = now_s
        return replace(self._last, seen_s=now_s, is_gone=now_s >= self._missing_since_s + GONE_AFTER_S)

    def _request(self, method: str) -> Request:
        return Request(service=SERVICE, method=method, resource=self._name)


@dataclass(slots=True)
class Standing:
    """How an execution stands, by all looks so far: nothing that was seen is taken back by an older answer."""

    execution: ExecutionSeen = field(default_factory=ExecutionSeen)
    tasks: dict[int, TaskSeen] = field(default_factory=dict)

    def take(self, sight: Sight) -> None:
        """Take in a look."""
        if not self.execution.is_over:
            self.execution = sight.execution
        for task in sight.tasks:
            known = self.tasks.get(task.index)
            if known is None or not (known.is_over or task.retried < known.retried):
                self.tasks[task.index] = task


def execution_of(message: "run_v2.Execution") -> ExecutionSeen:
    """What a message of the API says of an execution."""
    from google.cloud import run_v2

    failed = [each for each in message.conditions if each.state == run_v2.Condition.State.CONDITION_FAILED]
    completed = [each for each in message.conditions if each.type_ == "Completed"]
    is_ended = any(each.state in _ENDED_STATES for each in completed)
    return ExecutionSeen(
        is_over=bool(message.completion_time) or is_ended,
        succeeded=message.succeeded_count,
        failed=message.failed_count,
        cancelled=message.cancelled_count,
        retried=message.retried_count,
        message=next((each.message for each in [*completed, *failed] if each.message), ""),
    )


def task_of(message: "run_v2.Task") -> TaskSeen:
    """What a message of the API says of a task."""
    completed = next((each for each in message.conditions if each.type_ == "Completed"), None)
    result = message.last_attempt_result if "last_attempt_result" in message else None
    is_over = bool(message.completion_time)
    has_succeeded = completed is not None and completed.state == _SUCCEEDED
    seen = TaskSeen(
        index=message.index,
        retried=message.retried,
        is_over=is_over or (completed is not None and completed.state in _ENDED_STATES),
        has_succeeded=has_succeeded,
        message=(completed.message if completed is not None else "") or (result.status.message if result is not None else ""),
    )
    if result is None:
        return seen
    if result.term_signal:
        return replace(seen, term_signal=result.term_signal)
    return replace(seen, exit_code=result.exit_code)


_SUCCEEDED, _FAILED = 4, 3
_ENDED_STATES = (_SUCCEEDED, _FAILED)
"""``CONDITION_SUCCEEDED`` and ``CONDITION_FAILED`` of ``google.cloud.run.v2.Condition.State``.

Source: https://github.com/googleapis/googleapis/blob/master/google/cloud/run/v2/condition.proto
"""
