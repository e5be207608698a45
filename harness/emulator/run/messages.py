"""Executions and tasks as the service's messages.

Source: types and counts: https://docs.cloud.google.com/run/docs/reference/rpc/google.cloud.run.v2; conditions, reasons and their texts as
    in public exports of audit entries. Assumed: the texts of a timeout and of a success, and the code of a failed attempt.
"""

import hashlib
from datetime import datetime

from google.cloud import run_v2
from google.rpc import status_pb2

from harness.emulator.run.names import RunName
from harness.emulator.run.records import ExecutionRecord, TaskRecord

State = run_v2.Condition.State
ExecutionReason = run_v2.Condition.ExecutionReason

EXIT_TEXT = "The container exited with an error."
TIMEOUT_TEXT = "The configured timeout was reached."

_UNKNOWN = 2
"""Of ``google.rpc.Code``."""


def etag_of(*parts: object) -> str:
    """A fingerprint of a version, in quotation marks as the service gives it."""
    return f'"{hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:24]}"'


def execution_message(record: ExecutionRecord) -> run_v2.Execution:
    """An execution."""
    template = record.template.template
    return run_v2.Execution(
        name=str(record.name),
        uid=record.uid,
        creator=record.template.creator,
        generation=1,
        observed_generation=1,
        labels=template.labels,
        annotations=template.annotations,
        create_time=record.created,
        start_time=record.started,
        completion_time=record.completed,
        update_time=record.updated,
        launch_stage=record.template.launch_stage,
        job=record.name.job,
        parallelism=template.parallelism or template.task_count,
        task_count=template.task_count,
        template=template.template,
        reconciling=not record.is_over,
        conditions=_conditions(record),
        running_count=record.count("running"),
        succeeded_count=record.count("succeeded"),
        failed_count=record.count("failed"),
        cancelled_count=record.count("cancelled"),
        retried_count=record.retried_count,
        log_uri=_log_uri(record.name),
        etag=etag_of(record.uid, record.version),
    )


def reference(record: ExecutionRecord) -> run_v2.ExecutionReference:
    """What a job says of its last execution."""
    status = run_v2.ExecutionReference.CompletionStatus
    if not record.is_over:
        state = status.EXECUTION_RUNNING if record.started else status.EXECUTION_PENDING
    elif record.succeeded:
        state = status.EXECUTION_SUCCEEDED
    else:
        state = status.EXECUTION_CANCELLED if record.is_cancelling else status.EXECUTION_FAILED
    return run_v2.ExecutionReference(
        name=record.name.execution, create_time=record.created, completion_time=record.completed, completion_status=state
    )


def task_message(record: ExecutionRecord, task: TaskRecord) -> run_v2.Task:
    """A task."""
    template = record.template.template.template
    return run_v2.Task(
        name=f"{record.name}/tasks/{task_id(record, task)}",
        uid=task.uid,
        generation=1,
        observed_generation=1,
        labels=record.template.template.labels,
        annotations=record.template.template.annotations,
        create_time=task.created,
        scheduled_time=task.created,
        start_time=task.started,
        completion_time=task.completed,
        update_time=record.updated,
        job=record.name.job,
        execution=record.name.execution,
        containers=template.containers,
        volumes=template.volumes,
        max_retries=template.max_retries,
        timeout=template.timeout,
        service_account=template.service_account,
        execution_environment=template.execution_environment,
        reconciling=task.completed is None,
        conditions=[_task_completed(record, task), *_retry([task])],
        index=task.index,
        retried=task.retried,
        last_attempt_result=_last_result(task),
        node_selector=template.node_selector,
        gpu_zonal_redundancy_disabled=template.gpu_zonal_redundancy_disabled,
        log_uri=_log_uri(record.name),
        etag=etag_of(task.uid, record.version),
    )


def task_id(record: ExecutionRecord, task: TaskRecord) -> str:
    """The last segment of a task's name."""
    return f"{record.name.execution}-task{task.index}"


def failure_text(record: ExecutionRecord) -> str:
    """How the service says that an execution was no success; see ``harness.cloud_run.platform_lines``."""
    name = record.name.execution
    if record.is_cancelling:
        return f"Execution {name} has been cancelled."
    return f"Execution {name} has failed to complete, {record.count('succeeded')}/{len(record.tasks)} tasks were a success."


def _conditions(record: ExecutionRecord) -> list[run_v2.Condition]:
    ready = [
        run_v2.Condition(type_=kind, state=state, last_transition_time=moment)
        for kind, state, moment in (
            ("ResourcesAvailable", State.CONDITION_SUCCEEDED, record.created),
            ("ContainerReady", State.CONDITION_FAILED if record.problem else State.CONDITION_SUCCEEDED, record.created),
            ("Started", State.CONDITION_SUCCEEDED if record.started else State.CONDITION_PENDING, record.started or record.created),
        )
    ]
    return [_completed(record), *ready, *_retry(record.tasks)]


def _completed(record: ExecutionRecord) -> run_v2.Condition:
    if record.succeeded:
        return _condition("Completed", State.CONDITION_SUCCEEDED, record.completed)
    if not record.is_over:
        reason = ExecutionReason.CANCELLING if record.is_cancelling else None
        return _condition("Completed", State.CONDITION_RECONCILING, record.started or record.created, reason=reason)
    if record.is_cancelling:
        return _condition(
            "Completed", State.CONDITION_FAILED, record.completed, message=failure_text(record), reason=ExecutionReason.CANCELLED
        )
    failed = next(task for task in record.tasks if task.state == "failed")
    message = f"Task {task_id(record, failed)} failed with message: {record.problem or _exit_text(failed)}"
    return _condition("Completed", State.CONDITION_FAILED, record.completed, message=message, reason=ExecutionReason.NON_ZERO_EXIT_CODE)


def _task_completed(record: ExecutionRecord, task: TaskRecord) -> run_v2.Condition:
    match task.state:
        case "succeeded":
            return _condition("Completed", State.CONDITION_SUCCEEDED, task.completed)
        case "failed":
            text, reason = record.problem or _exit_text(task), ExecutionReason.NON_ZERO_EXIT_CODE
            return _condition("Completed", State.CONDITION_FAILED, task.completed, message=text, reason=reason)
        case "cancelled":
            return _condition("Completed", State.CONDITION_FAILED, task.completed, reason=ExecutionReason.CANCELLED)
        case "running":
            return _condition("Completed", State.CONDITION_RECONCILING, task.started)
        case _:
            return _condition("Completed", State.CONDITION_PENDING, task.created)


def _condition(kind: str, state: int, moment: datetime | None, *, message: str = "", reason: int | None = None) -> run_v2.Condition:
    condition = run_v2.Condition(type_=kind, state=state, message=message, last_transition_time=moment)
    if reason is not None:
        condition.execution_reason = ExecutionReason(reason)
    return condition


def _retry(tasks: list[TaskRecord]) -> list[run_v2.Condition]:
    """The last retry, when there was one."""
    retried = [task for task in tasks if task.retried_at is not None]
    if not retried:
        return []
    last = max(retried, key=lambda task: task.retried_at or task.created)
    return [
        run_v2.Condition(
            type_="Retry",
            state=State.CONDITION_SUCCEEDED,
            reason=run_v2.Condition.CommonReason.IMMEDIATE_RETRY,
            message=f"System will retry after 0:00:00 from lastTransitionTime for attempt {last.retried - 1}.",
            last_transition_time=last.retried_at,
        )
    ]


def _last_result(task: TaskRecord) -> run_v2.TaskAttemptResult | None:
    if task.last_exit is None:
        return None
    if task.last_exit.exit_code == 0:
        return run_v2.TaskAttemptResult()
    status = status_pb2.Status(code=_UNKNOWN, message=_exit_text(task))
    if task.last_exit.signal is not None:
        return run_v2.TaskAttemptResult(status=status, term_signal=task.last_exit.signal)
    return run_v2.TaskAttemptResult(status=status, exit_code=task.last_exit.exit_code)


def _exit_text(task: TaskRecord) -> str:
    return TIMEOUT_TEXT if task.is_timed_out else EXIT_TEXT


def _log_uri(name: RunName) -> str:
    """Where a console would show the log; there is none here, and the form is assumed."""
    query = f'resource.type="cloud_run_job" labels."run.googleapis.com/execution_name"="{name.execution}"'
    return f"https://console.cloud.google.com/logs/viewer?project={name.project}&advancedFilter={query}"
