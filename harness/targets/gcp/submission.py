"""Cloud Run jobs through Google's clients: make, run, cancel, delete; long operations are waited for to their end."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.targets.gcp.calling import Caller, Effect, Request, Send
from harness.targets.gcp.failures import PreconditionError, ResourceMissingError
from harness.targets.gcp.operations import OperationState, failure_of_status, wait_for

if TYPE_CHECKING:
    from google.cloud import run_v2
    from google.longrunning import operations_pb2

    from harness.targets.gcp.connection import Clients

SERVICE = "run.googleapis.com"

MADE_S_MAX = 300.0
"""For a job to be made or deleted, and for a cancel: seconds are usual, and an image may have to be resolved."""


class _Future(Protocol):
    """What the clients return for a long operation."""

    @property
    def operation(self) -> "operations_pb2.Operation":
        """As the service tells it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An execution that was begun.

    Attributes:
        name: Full.
        created: By Google's clock; None where the service does not say.
        asked_s, seen_s: Between which moments of the monotonic clock it was made.
    """

    name: str
    created: datetime | None
    asked_s: float
    seen_s: float


Message = TypeVar("Message")


class Jobs:
    """Jobs and executions of one project."""

    def __init__(self, clients: "Clients", caller: Caller) -> None:
        self._clients, self._caller = clients, caller

    def get(self, name: str) -> "run_v2.Job":
        """A job.

        Raises:
            ResourceMissingError: When there is none.
            CallError: When it cannot be read.
        """
        jobs = self._clients.jobs
        return self._caller.call(
            self._request("Jobs.GetJob", name), lambda timeout_s: jobs.get_job(name=name, timeout=timeout_s, retry=None)
        )

    def create(self, job: "run_v2.Job", name: str) -> None:
        """Make a job, and wait until it is there.

        Raises:
            CallError: When it cannot be made.
        """
        parent, _, job_id = name.partition("/jobs/")

        def send(timeout_s: float) -> "operations_pb2.Operation | None":
            future: _Future = self._clients.jobs.create_job(parent=parent, job=job, job_id=job_id, timeout=timeout_s, retry=None)
            return future.operation

        def look(timeout_s: float) -> "operations_pb2.Operation | None":
            return self._operation_done() if self._look_for(name, timeout_s) else None

        request = self._request("Jobs.CreateJob", name, Effect.WRITE)
        self._finish(request, self._caller.call(request, send, look=look), settled=lambda: self.is_there(name))

    def run(self, name: str) -> Running:
        """Begin an execution; it is not waited for.

        The job is the run's own, so an execution that is there is ours: a lost answer begins none a second time.

        Raises:
            CallError: When it cannot be begun.
        """
        from google.cloud import run_v2

        asked_s = self._caller.clock.monotonic_s()

        def send(timeout_s: float) -> "run_v2.Execution":
            future = self._clients.jobs.run_job(request=run_v2.RunJobRequest(name=name), timeout=timeout_s, retry=None)
            execution: run_v2.Execution = future.metadata
            return execution

        def look(timeout_s: float) -> "run_v2.Execution | None":
            request = run_v2.ListExecutionsRequest(parent=name, page_size=1)
            page = next(self._clients.executions.list_executions(request=request, timeout=timeout_s, retry=None).pages)
            return next(iter(page.executions), None)

        execution = self._caller.call(self._request("Jobs.RunJob", name, Effect.WRITE), send, look=look)
        created: datetime | None = execution.create_time or None
        short = execution.name.rpartition("/")[2]
        return Running(name=f"{name}/executions/{short}", created=created, asked_s=asked_s, seen_s=self._caller.clock.monotonic_s())

    def cancel(self, execution: str) -> None:
        """Ask for a cancel; what comes of it is seen elsewhere. One that is over or gone is left alone.

        Raises:
            CallError: When the service does not do it.
        """

        def send(timeout_s: float) -> None:
            self._clients.executions.cancel_execution(name=execution, timeout=timeout_s, retry=None)

        try:
            self._caller.call(self._request("Executions.CancelExecution", execution, Effect.IDEMPOTENT), send)
        except (ResourceMissingError, PreconditionError):
            return

    def delete(self, name: str) -> bool:
        """Delete a job with its executions, and wait until it is gone; whether it was there.

        Raises:
            CallError: When it cannot be deleted.
        """

        def send(timeout_s: float) -> "operations_pb2.Operation | None":
            future: _Future = self._clients.jobs.delete_job(name=name, timeout=timeout_s, retry=None)
            return future.operation

        request = self._request("Jobs.DeleteJob", name, Effect.IDEMPOTENT)
        try:
            self._finish(request, self._caller.call(request, send), settled=lambda: not self.is_there(name))
        except ResourceMissingError:
            if self.is_there(name):  # a service that contradicts itself must not make us forget the job
                raise
            return False
        return True

    def list_running(self, name: str) -> list[str]:
        """The full names of a job's executions that have not ended; none of a job that is gone.

        Raises:
            CallError: When they cannot be listed.
        """
        from google.cloud import run_v2

        from harness.targets.gcp.calling import Page

        def fetch(token: str, timeout_s: float) -> Page["run_v2.Execution"]:
            request = run_v2.ListExecutionsRequest(parent=name, page_size=100, page_token=token)
            page = next(self._clients.executions.list_executions(request=request, timeout=timeout_s, retry=None).pages)
            return Page(items=list(page.executions), token=page.next_page_token)

        try:
            found = list(self._caller.pages(self._request("Executions.ListExecutions", name), fetch))
        except ResourceMissingError:
            return []
        return [f"{name}/executions/{each.name.rpartition('/')[2]}" for each in found if not each.completion_time]

    def list_all(self, parent: str) -> "list[run_v2.Job]":
        """The jobs of a region.

        Raises:
            CallError: When they cannot be listed.
        """
        from google.cloud import run_v2

        from harness.targets.gcp.calling import Page

        def fetch(token: str, timeout_s: float) -> Page["run_v2.Job"]:
            request = run_v2.ListJobsRequest(parent=parent, page_size=100, page_token=token)
            page = next(self._clients.jobs.list_jobs(request=request, timeout=timeout_s, retry=None).pages)
            return Page(items=list(page.jobs), token=page.next_page_token)

        return list(self._caller.pages(self._request("Jobs.ListJobs", parent), fetch))

    def is_there(self, name: str) -> bool:
        """Whether a job is there.

        Raises:
            CallError: When nobody can tell.
        """
        return self._caller.call(self._request("Jobs.GetJob", name), lambda timeout_s: self._look_for(name, timeout_s))

    def _look_for(self, name: str, timeout_s: float) -> bool:
        from google.api_core.exceptions import NotFound

        try:
            self._clients.jobs.get_job(name=name, timeout=timeout_s, retry=None)
        except NotFound:
            return False
        return True

    def _operation_done(self) -> "operations_pb2.Operation":
        from google.longrunning import operations_pb2

        return operations_pb2.Operation(done=True)

    def _finish(self, request: Request, operation: "operations_pb2.Operation | None", *, settled: Callable[[], bool]) -> None:
        if operation is None:
            return
        if operation.done:
            state = _state_of(operation)
            wait_for(self._caller, request, lambda _: state, deadline_s=MADE_S_MAX)
            return
        name = operation.name
        asked = Request(service=SERVICE, method="Operations.GetOperation", resource=name)
        wait_for(self._caller, asked, self._poll(name), deadline_s=MADE_S_MAX, settled=lambda: OperationState[None](is_done=settled()))

    def _poll(self, name: str) -> Send[OperationState[None]]:
        operations = self._clients.operations

        def poll(timeout_s: float) -> OperationState[None]:
            return _state_of(operations.get_operation(name, timeout=timeout_s, retry=None))  # type: ignore[no-untyped-call]

        return poll

    def _request(self, method: str, resource: str, effect: Effect = Effect.READ) -> Request:
        return Request(service=SERVICE, method=method, resource=resource, effect=effect)


def _state_of(operation: "operations_pb2.Operation") -> OperationState[None]:
    failure = failure_of_status(operation.error.code, operation.error.message) if operation.HasField("error") else None
    return OperationState(is_done=operation.done, failure=failure)
