"""What the platform says in the log, in its words.

Source: texts and severities as in public exports of Cloud Run job logs; those of a success and of a cancel are assumed (see ``fidelity``).
"""

from collections.abc import Sequence

from harness.cloud_run.execution import Execution, Task
from harness.cloud_run.log_entries import ExecutionEnd
from harness.history import AttemptExited, ExecutionFinished, LogLine
from harness.protocol.attempt_key import AttemptKey

_OK, _CANCELLED, _ABORTED = 0, 1, 10
"""Codes of ``google.rpc.Code``; failed executions are seen with 9 and with 10."""


def timeout_line(key: AttemptKey, t_s: float, timeout_s: float) -> LogLine:
    """The attempt has used up its time."""
    seconds = int(timeout_s) if timeout_s == int(timeout_s) else timeout_s
    text = f"Terminating task because it has reached the maximum timeout of {seconds} seconds."
    return LogLine(t_s=t_s, task=key.task, attempt=key.attempt, stream="system", text=text, severity="ERROR")


def memory_line(*, limit_mib: int, used_mib: int) -> str:
    """The kernel has killed for want of memory: what the attempt may use (0: all there is), and the most that it did (0: not known).

    Source: https://docs.cloud.google.com/run/docs/troubleshooting (memory limit exceeded)
    """
    used = f" with {used_mib} MiB used" if used_mib else ""
    if not limit_mib:
        return f"The machine has run out of memory{used}."
    advice = "Consider increasing the memory limit, see https://cloud.google.com/run/docs/configuring/memory-limits"
    return f"Memory limit of {limit_mib} MiB exceeded{used}. {advice}"


def describe_exit(key: AttemptKey, code: int, why: str = "") -> str:
    """How an attempt ended, by the wait status as ``subprocess`` writes it, and what the platform said of it."""
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return f"{how} in attempt {key.attempt}" + (f": {why}" if why else "")


def container_lines(exited: AttemptExited, t_s: float, message: tuple[str, str] | None) -> list[LogLine]:
    """The end of an attempt: first why the platform took it away, where it said so, then how the container ended.

    The guide shows the maintenance line after the job's own last lines, so it comes when those have been read.
    """
    task, attempt = exited.task, exited.attempt
    lines: list[LogLine] = []
    if message is not None:
        text, reason = message
        lines.append(LogLine(t_s=t_s, task=task, attempt=attempt, stream="system", text=text, severity="WARNING", reason=reason))
    text = f"Container terminated on signal {exited.signal}." if exited.signal else f"Container called exit({exited.exit_code})."
    severity = "INFO" if exited.exit_code == 0 else "WARNING"
    return [*lines, LogLine(t_s=t_s, task=task, attempt=attempt, stream="system", text=text, severity=severity)]


def execution_end(name: str, execution: Execution, finished: ExecutionFinished) -> ExecutionEnd:
    """The audit entry at the end of an execution."""
    retried_attempt = max((task.attempts for task in execution.tasks), default=1) - 2
    if finished.cancelled:
        message, code, reason = f"Execution {name} has been cancelled.", _CANCELLED, "Cancelled"
    elif finished.failed:
        message = f"Execution {name} has failed to complete, {finished.succeeded}/{len(execution.tasks)} tasks were a success."
        code, reason = _ABORTED, "NonZeroExitCode"
    else:
        message, code, reason = f"Execution {name} has completed successfully.", _OK, ""
    return ExecutionEnd(
        message=message,
        code=code,
        reason=reason,
        task_message=_task_message(name, execution.tasks) if finished.failed else "",
        finished=finished,
        retried_attempt=max(retried_attempt, -1),
    )


def execution_end_line(end: ExecutionEnd, t_s: float) -> LogLine:
    """The same as a line of the log."""
    return LogLine(t_s=t_s, stream="audit", text=end.message, severity="ERROR" if end.code else "INFO")


def _task_message(name: str, tasks: Sequence[Task]) -> str:
    failed = next(task for task in tasks if task.state == "failed")
    return f"Task {name}-task{failed.index} failed with message: The container exited with an error."
