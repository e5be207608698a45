"""``google.cloud.run.v2.Executions`` and ``google.cloud.run.v2.Tasks``."""

import threading
from collections.abc import Sequence

from google.cloud import run_v2
from google.longrunning import operations_pb2

from harness.emulator.failures import failed_precondition, not_found
from harness.emulator.pages import page_of
from harness.emulator.run.executor import Executor
from harness.emulator.run.jobs import check_etag, done_operation
from harness.emulator.run.longrunning import FAMILY, operation_message
from harness.emulator.run.messages import execution_message, task_id, task_message
from harness.emulator.run.names import RunName
from harness.emulator.run.records import ExecutionRecord, TaskRecord
from harness.emulator.service import CallContext, Method
from harness.emulator.world import World

SERVICE = "/google.cloud.run.v2.Executions/"
TASKS_SERVICE = "/google.cloud.run.v2.Tasks/"
PAGE_MAX = 1000

_LAST_US = 1 << 62
"""Microseconds: later than any moment."""


class Executions:
    """Executions and their tasks, by their names."""

    def __init__(self, world: World, executor: Executor, lock: threading.RLock) -> None:
        self._world, self._executor, self._lock = world, executor, lock

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""

        def parent(request: run_v2.ListExecutionsRequest) -> str:
            return str(request.parent)

        return (
            Method(name=f"{SERVICE}GetExecution", request=run_v2.GetExecutionRequest, handle=self.get),
            Method(name=f"{SERVICE}ListExecutions", request=run_v2.ListExecutionsRequest, handle=self.list, resource=parent),
            Method(name=f"{SERVICE}DeleteExecution", request=run_v2.DeleteExecutionRequest, handle=self.delete, is_write=True),
            Method(name=f"{SERVICE}CancelExecution", request=run_v2.CancelExecutionRequest, handle=self.cancel, is_write=True),
            Method(name=f"{TASKS_SERVICE}GetTask", request=run_v2.GetTaskRequest, handle=self.get_task),
            Method(name=f"{TASKS_SERVICE}ListTasks", request=run_v2.ListTasksRequest, handle=self.list_tasks, resource=parent),
        )

    def get(self, request: run_v2.GetExecutionRequest, context: CallContext) -> run_v2.Execution:
        """See ``GetExecution``."""
        del context
        with self._lock:
            return execution_message(self.find(request.name, "run.executions.get"))

    def list(self, request: run_v2.ListExecutionsRequest, context: CallContext) -> run_v2.ListExecutionsResponse:
        """See ``ListExecutions``: the newest first."""
        project = self._world.projects.require("run.executions.list", request.parent)
        parent = RunName.parse(request.parent, "jobs", field="parent").in_project(project)
        with self._lock:
            page, token = page_of(
                [record for record in self._executor.executions.values() if parent.matches(record.name)],
                key=_newest_first,
                size=request.page_size,
                token=request.page_token,
                size_max=PAGE_MAX,
                is_partial=context.is_partial,
            )
            return run_v2.ListExecutionsResponse(executions=[execution_message(record) for record in page], next_page_token=token)

    def delete(self, request: run_v2.DeleteExecutionRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``DeleteExecution``."""
        del context
        with self._lock:
            record = self.find(request.name, "run.executions.delete")
            message = execution_message(record)
            check_etag(request.etag, message.etag)
            message.delete_time = self._world.clock.utc()
            if request.validate_only:
                if not record.is_over:
                    raise failed_precondition(f"Execution '{record.name}' is still running; cancel it before it is deleted.")
                return done_operation(message)
            self._executor.forget(record)
        operation = self._world.operations.begin(
            record.name.parent, family=FAMILY, target=str(record.name), kind="delete", metadata=message, lasts_s=0, work=lambda: message
        )
        return operation_message(operation)

    def cancel(self, request: run_v2.CancelExecutionRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``CancelExecution``: nothing is tried again; the operation ends when nothing runs any more."""
        del context
        with self._lock:
            record = self.find(request.name, "run.executions.cancel")
            message = execution_message(record)
            check_etag(request.etag, message.etag)
            if request.validate_only:
                return done_operation(message)
            return operation_message(self._executor.cancel(record))

    def get_task(self, request: run_v2.GetTaskRequest, context: CallContext) -> run_v2.Task:
        """See ``GetTask``."""
        del context
        project = self._world.projects.require("run.tasks.get", request.name)
        name = RunName.parse(request.name, "tasks").in_project(project)
        with self._lock:
            for record, task in self._tasks_of(RunName(name.project, name.location, name.job, name.execution)):
                if task_id(record, task) == name.task:
                    return task_message(record, task)
        raise not_found(request.name)

    def list_tasks(self, request: run_v2.ListTasksRequest, context: CallContext) -> run_v2.ListTasksResponse:
        """See ``ListTasks``: of one execution, of all of a job, or of all."""
        project = self._world.projects.require("run.tasks.list", request.parent)
        parent = RunName.parse(request.parent, "executions", field="parent").in_project(project)
        with self._lock:
            page, token = page_of(
                self._tasks_of(parent),
                key=lambda found: f"{_newest_first(found[0])}/{found[1].index:06d}",
                size=request.page_size,
                token=request.page_token,
                size_max=PAGE_MAX,
                is_partial=context.is_partial,
            )
            return run_v2.ListTasksResponse(tasks=[task_message(record, task) for record, task in page], next_page_token=token)

    def find(self, text: str, permission: str) -> ExecutionRecord:
        """An execution that the caller may do something with.

        Raises:
            ApiError: PERMISSION_DENIED when it may not, NOT_FOUND when there is none of that name.
        """
        project = self._world.projects.require(permission, text)
        record = self._executor.executions.get(str(RunName.parse(text, "executions").in_project(project)))
        if record is None:
            raise not_found(text)
        return record

    def _tasks_of(self, parent: RunName) -> Sequence[tuple[ExecutionRecord, TaskRecord]]:
        records = [record for record in self._executor.executions.values() if parent.matches(record.name)]
        return [(record, task) for record in records for task in record.tasks]


def _newest_first(record: ExecutionRecord) -> str:
    """A key that sorts so, and is unique."""
    return f"{_LAST_US - round(record.created.timestamp() * 1e6):020d}/{record.name}"
