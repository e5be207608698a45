"""The service Cloud Run: all its methods over one set of jobs and executions."""

import threading
from collections.abc import Sequence

from harness.emulator.failures import not_found
from harness.emulator.run.executions import Executions
from harness.emulator.run.executor import Executor, Platform
from harness.emulator.run.job_runs import JobPolicies, JobRuns
from harness.emulator.run.jobs import Jobs
from harness.emulator.run.longrunning import OperationMethods
from harness.emulator.run.records import ExecutionRecord
from harness.emulator.service import Method, Route
from harness.emulator.world import World

DEFAULT_PLATFORM = Platform()


class CloudRun:
    """Cloud Run Admin API v2 for jobs. Services, worker pools and builds are not covered, nor is REST."""

    def __init__(self, world: World, platform: Platform = DEFAULT_PLATFORM) -> None:
        lock = threading.RLock()
        self._executor = Executor(world, platform, lock)
        jobs = Jobs(world, self._executor, lock)
        self._executions = Executions(world, self._executor, lock)
        self._methods: tuple[Method, ...] = (
            *jobs.methods(),
            *JobRuns(world, jobs, self._executor, lock).methods(),
            *JobPolicies(world, jobs, lock).methods(),
            *self._executions.methods(),
            *OperationMethods(world).methods(),
        )

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        return self._methods

    def routes(self) -> Sequence[Route]:
        """See ``Service``."""
        return ()

    def executions(self) -> Sequence[ExecutionRecord]:
        """All executions, the oldest first."""
        with self._executor.lock:
            return tuple(self._executor.executions.values())

    def maintain(self, execution: str, task: int) -> tuple[int, int]:
        """The platform takes the instance of a task for maintenance; returns the attempt, and how many processes were told.

        Args:
            execution: Its whole name, or the last segment of it.
            task: Which task.

        Raises:
            ApiError: NOT_FOUND, or FAILED_PRECONDITION when no attempt of the task runs.
        """
        for record in self.executions():
            if execution in (str(record.name), record.name.execution):
                return self._executor.maintain(record, task)
        raise not_found(execution)

    def close(self) -> None:
        """See ``Service``."""
        self._executor.close()
