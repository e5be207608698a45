"""``google.cloud.run.v2.Jobs``: create, get, list, update and delete jobs.

Source: https://docs.cloud.google.com/run/docs/reference/rpc/google.cloud.run.v2; permissions:
    https://docs.cloud.google.com/run/docs/reference/iam/permissions. Assumed: that a job is not deleted while it runs.
"""

import threading
import uuid
from collections.abc import Sequence
from datetime import timedelta

from google.cloud import run_v2
from google.longrunning import operations_pb2

from harness.emulator.failures import ApiError, aborted, already_exists, failed_precondition, not_found
from harness.emulator.pages import page_of
from harness.emulator.project import ProjectState
from harness.emulator.run.executor import Executor
from harness.emulator.run.longrunning import FAMILY, operation_message
from harness.emulator.run.messages import etag_of, reference
from harness.emulator.run.names import RunName, check_job_id, check_location
from harness.emulator.run.records import JobRecord
from harness.emulator.run.validation import complete_job, gpus_of
from harness.emulator.service import CallContext, Method
from harness.emulator.world import World

SERVICE = "/google.cloud.run.v2.Jobs/"
PAGE_MAX = 1000
JOBS_QUOTA = "JobsPerProjectRegion"
KEPT_AFTER_DELETION = timedelta(days=30)
"""Assumed: how long Google says that it keeps what was deleted. The emulator keeps nothing."""


class Jobs:
    """The jobs of all projects."""

    def __init__(self, world: World, executor: Executor, lock: threading.RLock) -> None:
        self._world, self._executor, self._lock = world, executor, lock
        self._jobs: dict[str, JobRecord] = {}

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        return (
            Method(
                name=f"{SERVICE}CreateJob",
                request=run_v2.CreateJobRequest,
                handle=self.create,
                is_write=True,
                resource=lambda request: f"{request.parent}/jobs/{request.job_id}",
            ),
            Method(name=f"{SERVICE}GetJob", request=run_v2.GetJobRequest, handle=self.get),
            Method(name=f"{SERVICE}ListJobs", request=run_v2.ListJobsRequest, handle=self.list, resource=lambda request: request.parent),
            Method(
                name=f"{SERVICE}UpdateJob",
                request=run_v2.UpdateJobRequest,
                handle=self.update,
                is_write=True,
                resource=lambda request: request.job.name,
            ),
            Method(name=f"{SERVICE}DeleteJob", request=run_v2.DeleteJobRequest, handle=self.delete, is_write=True),
        )

    def create(self, request: run_v2.CreateJobRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``CreateJob``."""
        del context
        parent = RunName.parse(request.parent, "locations", field="parent")
        project = self._world.projects.require("run.jobs.create", request.parent)
        check_location(parent)
        check_job_id(request.job_id)
        job = complete_job(request.job)
        name = RunName(project.name, parent.location, request.job_id)
        with self._lock:
            if str(name) in self._jobs:
                raise already_exists(request.job_id)
            self._require_quota(project, name, job)
            return self._put(JobRecord(name=name, message=self._born(name, job)), kind="create", is_real=not request.validate_only)

    def get(self, request: run_v2.GetJobRequest, context: CallContext) -> run_v2.Job:
        """See ``GetJob``."""
        del context
        with self._lock:
            return self._message(self.find(request.name, "run.jobs.get"))

    def list(self, request: run_v2.ListJobsRequest, context: CallContext) -> run_v2.ListJobsResponse:
        """See ``ListJobs``. Nothing that was deleted is kept to be shown."""
        project = self._world.projects.require("run.jobs.list", request.parent)
        parent = RunName.parse(request.parent, "locations", field="parent").in_project(project)
        check_location(parent)
        with self._lock:
            page, token = page_of(
                [job for job in self._jobs.values() if parent.matches(job.name)],
                key=lambda job: job.name.job,
                size=request.page_size,
                token=request.page_token,
                size_max=PAGE_MAX,
                is_partial=context.is_partial,
            )
            return run_v2.ListJobsResponse(jobs=[self._message(job) for job in page], next_page_token=token)

    def update(self, request: run_v2.UpdateJobRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``UpdateJob``: the whole job is given; one whose specification is the same keeps its generation."""
        project = self._world.projects.require("run.jobs.update", request.job.name)
        name = RunName.parse(request.job.name, "jobs", field="job.name").in_project(project)
        with self._lock:
            old = self._jobs.get(str(name))
            if old is None and request.allow_missing:
                creation = run_v2.CreateJobRequest(
                    parent=name.parent, job=request.job, job_id=name.job, validate_only=request.validate_only
                )
                return self.create(creation, context)
            if old is None:
                raise not_found(request.job.name)
            check_etag(request.job.etag, old.message.etag)
            job = complete_job(request.job)
            self._require_quota(project, name, job)
            changed = JobRecord(name=name, message=self._grown(old, job), policy=old.policy)
            return self._put(changed, kind="update", is_real=not request.validate_only)

    def delete(self, request: run_v2.DeleteJobRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``DeleteJob``: its executions go with it."""
        del context
        with self._lock:
            job = self.find(request.name, "run.jobs.delete")
            check_etag(request.etag, job.message.etag)
            executions = self._executor.of_job(job.name)
            running = [record for record in executions if not record.is_over]
            if running:
                raise failed_precondition(f"Job '{job.name}' has a running execution '{running[0].name.execution}'; cancel it first.")
            message = self._message(job)
            message.delete_time = self._world.clock.utc()
            message.expire_time = self._world.clock.utc() + KEPT_AFTER_DELETION
            if request.validate_only:
                return done_operation(message)
            for record in executions:
                self._executor.forget(record)
            del self._jobs[str(job.name)]
        return self._finished(job, message, kind="delete")

    def find(self, text: str, permission: str) -> JobRecord:
        """A job that the caller may do something with.

        Raises:
            ApiError: PERMISSION_DENIED when it may not, NOT_FOUND when there is none of that name.
        """
        project = self._world.projects.require(permission, text)
        name = RunName.parse(text, "jobs").in_project(project)
        job = self._jobs.get(str(name))
        if job is None:
            raise not_found(text)
        return job

    def _born(self, name: RunName, job: run_v2.Job) -> run_v2.Job:
        now = self._world.clock.utc()
        job.name, job.uid, job.generation = str(name), str(uuid.uuid4()), 1
        job.create_time = job.update_time = now
        job.launch_stage = job.launch_stage or 4  # GA
        return job

    def _grown(self, old: JobRecord, job: run_v2.Job) -> run_v2.Job:
        before = old.message
        is_same = job.template == before.template
        job.name, job.uid, job.create_time = before.name, before.uid, before.create_time
        job.generation = before.generation if is_same else before.generation + 1
        job.update_time = self._world.clock.utc()
        job.launch_stage = job.launch_stage or before.launch_stage
        return job

    def _put(self, job: JobRecord, *, kind: str, is_real: bool) -> operations_pb2.Operation:
        message = job.message
        message.observed_generation, message.reconciling = message.generation, False
        message.etag = etag_of(message.uid, message.generation, uuid.uuid4())
        ready = run_v2.Condition.State.CONDITION_SUCCEEDED
        message.terminal_condition = run_v2.Condition(type_="Ready", state=ready, last_transition_time=message.update_time)
        if not is_real:
            return done_operation(self._message(job))
        self._jobs[str(job.name)] = job
        return self._finished(job, self._message(job), kind=kind)

    def _message(self, job: JobRecord) -> run_v2.Job:
        """A copy of what is kept, with what its executions say."""
        message = run_v2.Job()
        run_v2.Job.copy_from(message, job.message)
        executions = self._executor.of_job(job.name)
        message.execution_count = len(executions)
        if executions:
            message.latest_created_execution = reference(executions[-1])
        return message

    def _finished(self, job: JobRecord, message: run_v2.Job, *, kind: str) -> operations_pb2.Operation:
        operation = self._world.operations.begin(
            job.name.parent, family=FAMILY, target=str(job.name), kind=kind, metadata=message, lasts_s=0, work=lambda: message
        )
        return operation_message(operation)

    def _require_quota(self, project: ProjectState, name: RunName, job: run_v2.Job) -> None:
        """See that there is room for a job, and that it could ever run."""
        others = [other for key, other in self._jobs.items() if key != str(name) and other.name.parent == name.parent]
        project.require_quota(JOBS_QUOTA, len(others) + 1, place=name.location, service="run.googleapis.com")
        require_gpus(project, job, in_use=0)


def require_gpus(project: ProjectState, job: run_v2.Job, *, in_use: int) -> None:
    """See that the project has the GPUs that a job needs at once, besides those in use.

    Raises:
        ApiError: RESOURCE_EXHAUSTED when it has not. Source: the form "Quota violated", as callers have published it; assumed for GPUs.
    """
    gpus, quota = gpus_of(job)
    limit = project.quotas.get(quota)
    if gpus and limit is not None and gpus + in_use > limit:
        raise ApiError(
            "RESOURCE_EXHAUSTED",
            f"Quota violated:\n{quota} requested: {gpus + in_use} allowed: {limit:g}",
            reason="QUOTA_EXCEEDED",
            domain="run.googleapis.com",
            metadata={"quota_metric": quota, "quota_limit_value": f"{limit:g}", "service": "run.googleapis.com"},
        )


def check_etag(given: str, actual: str) -> None:
    """See that the caller has seen the resource as it is.

    Raises:
        ApiError: ABORTED when it has seen another version; the words are assumed.
    """
    if given and given != actual:
        raise aborted(f"The etag {given} does not match the current version of the resource; read it again.")


def done_operation(response: run_v2.Job | run_v2.Execution) -> operations_pb2.Operation:
    """The answer to a request that only validates: what would come of it, in an operation that is kept nowhere."""
    message = operations_pb2.Operation(done=True)
    message.response.Pack(type(response).pb(response))
    return message
