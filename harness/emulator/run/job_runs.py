"""``google.cloud.run.v2.Jobs``: run a job, and say who may."""

import threading
from collections.abc import Sequence

from google.cloud import run_v2
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.longrunning import operations_pb2

from harness.emulator.failures import ApiError
from harness.emulator.project import ProjectState
from harness.emulator.run.executor import Executor
from harness.emulator.run.jobs import SERVICE, Jobs, check_etag, done_operation, require_gpus
from harness.emulator.run.launches import overridden
from harness.emulator.run.longrunning import operation_message
from harness.emulator.run.messages import execution_message
from harness.emulator.run.records import JobRecord
from harness.emulator.run.validation import gpus_of
from harness.emulator.service import CallContext, Method
from harness.emulator.world import World


class JobRuns:
    """Runs jobs."""

    def __init__(self, world: World, jobs: Jobs, executor: Executor, lock: threading.RLock) -> None:
        self._world, self._jobs, self._executor, self._lock = world, jobs, executor, lock

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        return (Method(name=f"{SERVICE}RunJob", request=run_v2.RunJobRequest, handle=self.run, is_write=True),)

    def run(self, request: run_v2.RunJobRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``RunJob``: the operation ends when the execution does."""
        del context
        project = self._world.projects.require("run.jobs.run", request.name)
        if "overrides" in request:
            self._world.projects.require("run.jobs.runWithOverrides", request.name)
        with self._lock:
            job = self._jobs.find(request.name, "run.jobs.run")
            check_etag(request.etag, job.message.etag)
            template = overridden(job.message, request.overrides)
            self._require_gpus(project, job, template)
            record = self._executor.draft(job, template)
            if request.validate_only:
                return done_operation(execution_message(record))
            return operation_message(self._executor.start(record))

    def _require_gpus(self, project: ProjectState, job: JobRecord, template: run_v2.Job) -> None:
        wanted = gpus_of(template)[1]
        running = [record for record in self._executor.executions.values() if not record.is_over and record.name.parent == job.name.parent]
        used = [gpus_of(record.template) for record in running]
        require_gpus(project, template, in_use=sum(gpus for gpus, quota in used if quota == wanted))


class JobPolicies:
    """Policies of jobs, kept and not enforced: who may do what is said of whole projects (``ProjectState.granted``)."""

    def __init__(self, world: World, jobs: Jobs, lock: threading.RLock) -> None:
        self._world, self._jobs, self._lock = world, jobs, lock

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""

        def resource(request: iam_policy_pb2.GetIamPolicyRequest) -> str:
            return str(request.resource)

        return (
            Method(name=f"{SERVICE}GetIamPolicy", request=iam_policy_pb2.GetIamPolicyRequest, handle=self.get, resource=resource),
            Method(
                name=f"{SERVICE}SetIamPolicy",
                request=iam_policy_pb2.SetIamPolicyRequest,
                handle=self.set,
                is_write=True,
                resource=resource,
            ),
            Method(
                name=f"{SERVICE}TestIamPermissions", request=iam_policy_pb2.TestIamPermissionsRequest, handle=self.test, resource=resource
            ),
        )

    def get(self, request: iam_policy_pb2.GetIamPolicyRequest, context: CallContext) -> policy_pb2.Policy:
        """See ``GetIamPolicy``."""
        del context
        with self._lock:
            return self._jobs.find(request.resource, "run.jobs.getIamPolicy").policy

    def set(self, request: iam_policy_pb2.SetIamPolicyRequest, context: CallContext) -> policy_pb2.Policy:
        """See ``SetIamPolicy``: the etag, where there is one, must be that of the policy that is replaced."""
        del context
        with self._lock:
            job = self._jobs.find(request.resource, "run.jobs.setIamPolicy")
            if request.policy.etag and request.policy.etag != job.policy.etag:
                raise ApiError(
                    "ABORTED",
                    "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff.",
                )
            policy = policy_pb2.Policy()
            policy.CopyFrom(request.policy)
            policy.etag = (int.from_bytes(job.policy.etag, "big") + 1).to_bytes(8, "big")
            job.policy = policy
            return policy

    def test(self, request: iam_policy_pb2.TestIamPermissionsRequest, context: CallContext) -> iam_policy_pb2.TestIamPermissionsResponse:
        """See ``TestIamPermissions``: which of them the caller has; none where there is no such resource, and no error.

        Source: https://docs.cloud.google.com/iam/docs/reference/rest (``testIamPermissions``)
        """
        del context
        held: list[str] = []
        for permission in request.permissions:
            try:
                with self._lock:
                    self._jobs.find(request.resource, permission)
            except ApiError as error:
                if error.code not in ("PERMISSION_DENIED", "NOT_FOUND"):
                    raise
            else:
                held.append(permission)
        return iam_policy_pb2.TestIamPermissionsResponse(permissions=held)
