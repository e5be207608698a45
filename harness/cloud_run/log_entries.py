"""The log of an execution in the shapes of Cloud Logging, one JSON entry a line: queries and readers of exports can be tried on it.

The shapes are those of public exports, but for the entry of a maintenance event: it is assumed and carries ``ASSUMED_LABEL``.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry, https://docs.cloud.google.com/run/docs/logging
"""

import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from harness.errors import StoreError
from harness.history import ExecutionFinished, LogLine

PROJECT = "local"
LOCATION = "local"
ASSUMED_LABEL = "harness/assumed"

_LOG_IDS = {
    "stdout": "run.googleapis.com%2Fstdout",
    "stderr": "run.googleapis.com%2Fstderr",
    "system": "run.googleapis.com%2Fvarlog%2Fsystem",
    "audit": "cloudaudit.googleapis.com%2Fsystem_event",
}

_EPOCH_TEXT_LENGTH = len("2026-01-01T00:00:00.000000")


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    labels: dict[str, str]
    type: str = "cloud_run_job"


class _Status(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    code: int = 0
    message: str = ""


class _Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _ExecutionStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    conditions: Sequence[_Condition]
    succeeded_count: int
    failed_count: int
    cancelled_count: int
    retried_count: int


class _ExecutionResponse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: dict[str, str]
    status: _ExecutionStatus
    api_version: str = "run.googleapis.com/v1"
    kind: str = "Execution"


class _AuditLog(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"type_url": "@type", "service_name": "serviceName", "method_name": "methodName", "resource_name": "resourceName"},
):
    resource_name: str
    status: _Status
    response: _ExecutionResponse
    type_url: str = "type.googleapis.com/google.cloud.audit.AuditLog"
    service_name: str = "run.googleapis.com"
    method_name: str = "/Jobs.RunJob"


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    insert_id: str
    log_name: str
    resource: _Resource
    labels: dict[str, str]
    timestamp: str
    receive_timestamp: str
    severity: str = "DEFAULT"
    text_payload: str | None = None
    json_payload: msgspec.Raw | None = None
    proto_payload: _AuditLog | None = None


class ExecutionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What the entry at the end of an execution says.

    Attributes:
        message: The sentence that an operator reads; also the text of the log line.
        code: As ``google.rpc.Code``: 0, 1 when cancelled, 10 when failed.
        reason: Of the condition ``Completed``.
        task_message: The sentence about the first task that failed.
        finished: The counts.
        retried_attempt: The last attempt after which a task was tried again; -1 when none was.
    """

    message: str
    code: int
    reason: str
    task_message: str
    finished: ExecutionFinished
    retried_attempt: int = -1


class LogEntries:
    """Appends the entries of one execution to a file.

    Attributes:
        execution: Its name.

    Raises:
        StoreError: When the file cannot be opened or written.
    """

    def __init__(self, path: Path, *, job: str, execution: str) -> None:
        self._path = path
        self._job = job
        self.execution = execution
        self._resource = _Resource(labels={"job_name": job, "project_id": PROJECT, "location": LOCATION})
        self._count = 0
        self._encoder = msgspec.json.Encoder()
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=path, attempted="open the log entries", reason=error.strerror or str(error)) from error

    def append(self, lines: Sequence[LogLine], now: datetime, end: ExecutionEnd | None = None) -> None:
        """Write lines; ``end`` is the content of the audit line among them."""
        if not lines or self._descriptor < 0:
            return
        data = memoryview(self._encoder.encode_lines([self._to_entry(line, now, end) for line in lines]))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self.close()
            raise StoreError(path=self._path, attempted="append to the log entries", reason=error.strerror or str(error)) from error

    def close(self) -> None:
        """Close the file; nothing is written after."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _to_entry(self, line: LogLine, now: datetime, end: ExecutionEnd | None) -> _Entry:
        self._count += 1
        stamp = now.isoformat(timespec="microseconds")[:_EPOCH_TEXT_LENGTH] + "Z"
        is_structured = line.stream in ("stdout", "stderr") and _is_json_object(line.text)
        is_audit = line.stream == "audit" and end is not None
        return _Entry(
            insert_id=f"{self.execution}-{self._count}",
            log_name=f"projects/{PROJECT}/logs/{_LOG_IDS[line.stream]}",
            resource=self._resource,
            labels=self._labels(line),
            timestamp=stamp,
            receive_timestamp=stamp,
            severity=line.severity,
            text_payload=None if is_structured or is_audit else line.text,
            json_payload=msgspec.Raw(line.text.encode()) if is_structured else None,
            proto_payload=self._audit_log(end) if is_audit and end is not None else None,
        )

    def _labels(self, line: LogLine) -> dict[str, str]:
        labels = {"run.googleapis.com/execution_name": self.execution}
        if line.stream == "audit":
            return labels
        instance = hashlib.sha256(f"{self.execution}/{line.task}/{line.attempt}".encode()).hexdigest()
        labels |= {
            "instanceId": instance,
            "run.googleapis.com/task_index": str(line.task),
            "run.googleapis.com/task_attempt": str(line.attempt),
        }
        if line.stream == "system":
            labels["container_name"] = f"{self._job}-1"
        if line.reason:
            labels |= {
                "reason": line.reason,
                ASSUMED_LABEL: "no public sample of this entry is known; text and reason are those of the guide",
            }
        return labels

    def _audit_log(self, end: ExecutionEnd) -> _AuditLog:
        status = _ExecutionStatus(
            conditions=_conditions(end),
            succeeded_count=end.finished.succeeded,
            failed_count=end.finished.failed,
            cancelled_count=end.finished.cancelled,
            retried_count=end.finished.retried,
        )
        return _AuditLog(
            resource_name=f"namespaces/{PROJECT}/executions/{self.execution}",
            status=_Status(code=end.code, message=end.message),
            response=_ExecutionResponse(metadata={"name": self.execution, "namespace": PROJECT}, status=status),
        )


def _conditions(end: ExecutionEnd) -> list[_Condition]:
    completed = _Condition(type="Completed", status="False" if end.code else "True", reason=end.reason, message=end.task_message)
    others = [_Condition(type=name, status="True") for name in ("ResourcesAvailable", "Started", "ContainerReady")]
    if end.retried_attempt < 0:
        return [completed, *others]
    message = f"System will retry after 0:00:00 from lastTransitionTime for attempt {end.retried_attempt}."
    return [completed, *others, _Condition(type="Retry", status="True", reason="ImmediateRetry", message=message)]


def _is_json_object(text: str) -> bool:
    """Cloud Run takes a line that is a JSON object for structured; anything else is text."""
    if not text.startswith("{"):
        return False
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
