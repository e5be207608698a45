"""From a call of ``RunJob`` to the end of its operation: an execution is recorded, started, followed, cancelled, hit by maintenance."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from google.cloud import run_v2

from harness.capabilities import Launch, Processes
from harness.cloud_run.environment import EXECUTION_SUFFIX_LENGTH
from harness.emulator.failures import ApiError, failed_precondition
from harness.emulator.operations import Operation
from harness.emulator.run.engine import Engine
from harness.emulator.run.launches import LaunchPlace, launch_of
from harness.emulator.run.log_forwarding import LogForwarding
from harness.emulator.run.messages import execution_message, failure_text
from harness.emulator.run.mounts import mounts_of
from harness.emulator.run.names import RunName
from harness.emulator.run.records import ExecutionRecord, JobRecord, TaskRecord
from harness.emulator.world import World
from harness.history import Event

MAINTENANCE_MESSAGE = "Container instance preemption initiated by the platform due to underlying hardware maintenance."
MAINTENANCE_REASON = "INSTANCE_PREEMPTED"
"""Source: the guide on GPU jobs and maintenance. Assumed: the shape of the log entry; it carries a label that says so."""

ORDER_S_MAX = 10.0
"""A thread of an execution obeys within milliseconds, but for the moments in which it starts or ends processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """How the platform is played.

    Attributes:
        grace_s: Between SIGTERM and SIGKILL. Source: https://docs.cloud.google.com/run/docs/container-contract (10 s)
        entrypoints: What images run that are given no command.
    """

    grace_s: float = 10.0
    entrypoints: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Executor:
    """Makes executions of jobs and keeps their records.

    Attributes:
        executions: All that there are, by their names.
        lock: Held by whoever reads or changes a record; never while something is waited for.
    """

    def __init__(self, world: World, platform: Platform, lock: threading.RLock) -> None:
        self.executions: dict[str, ExecutionRecord] = {}
        self.lock = lock
        self._world = world
        self._platform = platform
        self._engine = Engine(world.clock)

    def draft(self, job: JobRecord, template: run_v2.Job) -> ExecutionRecord:
        """An execution that could be started; nothing is kept of it, and nothing is made for it."""
        now = self._world.clock.utc()
        run_id = self._free_run_id(job.name.job)
        name = replace(job.name, execution=f"{job.name.job}-{run_id[-EXECUTION_SUFFIX_LENGTH:]}")
        tasks = [TaskRecord(index=index, created=now) for index in range(template.template.task_count)]
        return ExecutionRecord(name=name, run_id=run_id, template=template, created=now, updated=now, tasks=tasks)

    def start(self, record: ExecutionRecord) -> Operation:
        """Begin a drafted execution; returns the operation of ``RunJob``, which ends with it.

        Raises:
            ApiError: As ``mounts_of`` and ``launch_of``.
        """
        launch = self._launch(record)
        name = str(record.name)
        record.operation = self._world.operations.begin(
            record.name.parent, family="run", target=name, kind="run", metadata=lambda: self._message(record)
        )
        with self.lock:
            self.executions[name] = record
        log = LogForwarding(launch.logs_dir / "entries.jsonl", record.name, created=record.created, log=self._world.log)
        self._engine.start(name, launch, _Follower(self, record, log))
        return record.operation

    def cancel(self, record: ExecutionRecord) -> Operation:
        """Try nothing again, end what runs; returns an operation that ends when all has.

        Raises:
            ApiError: FAILED_PRECONDITION when the execution is over.
        """
        with self.lock:
            if record.is_over:
                raise failed_precondition(f"Execution '{record.name}' has already completed.")
            record.is_cancelling = True
            record.touch(self._world.clock.utc())
        operation = self._world.operations.begin(
            record.name.parent, family="run", target=str(record.name), kind="cancel", metadata=lambda: self._message(record)
        )
        self._engine.order(str(record.name), lambda target: target.cancel())
        return operation

    def maintain(self, record: ExecutionRecord, task: int) -> tuple[int, int]:
        """Take the instance of a task away as the platform does for maintenance; returns the attempt and how many processes were told.

        Raises:
            ApiError: FAILED_PRECONDITION when no attempt of the task runs.
        """
        with self.lock:
            attempt = record.tasks[task].attempts - 1 if 0 <= task < len(record.tasks) else -1
        victim = Processes(task=task, attempt=attempt)
        asked = self._engine.order(
            str(record.name),
            lambda target: target.terminate(victim, cause="platform", message=MAINTENANCE_MESSAGE, reason=MAINTENANCE_REASON),
        )
        try:
            return attempt, len(asked.result(ORDER_S_MAX))
        except LookupError as error:
            raise failed_precondition(f"no attempt of task {task} of '{record.name}' runs: {error}") from error

    def forget(self, record: ExecutionRecord) -> None:
        """Remove an execution that is over.

        Raises:
            ApiError: FAILED_PRECONDITION when it is not. Assumed: it is not known what the service does with one that runs.
        """
        with self.lock:
            if not record.is_over:
                raise failed_precondition(f"Execution '{record.name}' is still running; cancel it before it is deleted.")
            self.executions.pop(str(record.name), None)

    def of_job(self, job: RunName) -> list[ExecutionRecord]:
        """The executions of a job, the oldest first."""
        with self.lock:
            return [record for record in self.executions.values() if record.name.job_name() == str(job)]

    def end(self, record: ExecutionRecord, problem: str) -> None:
        """An execution is over: its operations end, once its record says so."""
        with self.lock:
            record.end(self._world.clock.utc(), problem=problem)
            message = execution_message(record)
        error = None if record.succeeded else ApiError("CANCELLED" if record.is_cancelling else "ABORTED", failure_text(record))
        for operation in self._world.operations.below(record.name.parent, family="run"):
            if operation.target != str(record.name) or operation.is_done:
                continue
            if operation is record.operation and error is not None:
                self._world.operations.fail(operation, error)
            else:
                self._world.operations.finish(operation, message)

    def _launch(self, record: ExecutionRecord) -> Launch:
        record.created, epoch_s = self._world.clock.utc(), self._world.clock.monotonic_s()
        directory = self._world.root / "executions" / record.run_id
        place = LaunchPlace(
            run_id=record.run_id,
            directory=directory,
            mounts=mounts_of(record.template.template.template, self._world.buckets, scratch=directory),
            grace_s=self._platform.grace_s,
            epoch_s=epoch_s,
            entrypoints=self._platform.entrypoints,
        )
        return launch_of(record.template, record.name.job, place)

    def _message(self, record: ExecutionRecord) -> run_v2.Execution:
        with self.lock:
            return execution_message(record)

    def close(self) -> None:
        """End all that runs."""
        self._engine.close()

    def _free_run_id(self, job: str) -> str:
        """One whose last letters make a name that no execution of the job has."""
        while True:
            run_id = uuid.uuid4().hex
            suffix = f"/{job}-{run_id[-EXECUTION_SUFFIX_LENGTH:]}"
            with self.lock:
                if not any(name.endswith(suffix) for name in self.executions):
                    return run_id


class _Follower:
    """Hears of one execution, in its thread."""

    def __init__(self, executor: Executor, record: ExecutionRecord, log: LogForwarding) -> None:
        self._executor, self._record, self._log = executor, record, log

    def happened(self, events: Sequence[Event]) -> None:
        """See ``Listener``. The log comes first: who sees the end finds all that was said."""
        self._log.forward(events)
        with self._executor.lock:
            self._record.note(events)

    def ended(self, problem: str) -> None:
        """See ``Listener``."""
        try:
            if problem:
                self._log.tell_problem(problem)
        finally:
            self._executor.end(self._record, problem)
