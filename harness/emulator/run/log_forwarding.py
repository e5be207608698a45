"""Log entries of an execution on their way to Cloud Logging: those of the local target, with the execution's own project and place.

Each gets the moment of its line, to the microsecond, and an insert id that sorts as the lines came: Cloud Logging orders entries of one
moment by it.
"""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from harness.cloud_run.log_entries import PROJECT
from harness.emulator.logging.notices import lost_notice
from harness.emulator.run.names import RunName
from harness.emulator.world import LogEntryDict, LogStore
from harness.history import Event, LogLine, ObservationLost


class LogForwarding:
    """Reads what was written since the last time, and hands it on."""

    def __init__(self, path: Path, name: RunName, *, created: datetime, log: LogStore) -> None:
        self._path, self._name, self._created, self._log = path, name, created, log
        self._offset = 0
        self._count = 0
        self._last = created

    def forward(self, events: Sequence[Event]) -> None:
        """Hand on the entries of the lines among the events, which are in the file by now, and say what of the lines is not."""
        lines = [event for event in events if isinstance(event, LogLine)]
        if lines:
            written = self._read()
            self._log.append([self._rewritten(entry, line) for entry, line in zip(written, lines, strict=True)])
        for lost in events:
            if isinstance(lost, ObservationLost) and lost.what == "logs":
                notice = lost_notice(self._name.project, self._name.execution, count=lost.count, why=lost.detail)
                self._log.append([self._stamped(notice, self._created + timedelta(seconds=lost.t_s))])

    def tell_problem(self, problem: str) -> None:
        """Say why nothing could be run, as the platform would in its own log; the words of the service are assumed."""
        labels = {"run.googleapis.com/execution_name": self._name.execution, "container_name": f"{self._name.job}-1"}
        entry: dict[str, object] = {
            "logName": f"projects/{self._name.project}/logs/run.googleapis.com%2Fvarlog%2Fsystem",
            "resource": self._resource(),
            "labels": labels,
            "severity": "ERROR",
            "textPayload": problem,
        }
        self._log.append([self._stamped(entry, self._last)])

    def _read(self) -> list[dict[str, object]]:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        return [msgspec.json.decode(line, type=dict[str, object]) for line in data.splitlines()]

    def _rewritten(self, entry: dict[str, object], line: LogLine) -> LogEntryDict:
        self._last = self._created + timedelta(seconds=line.t_s)
        log_id = str(entry["logName"]).removeprefix(f"projects/{PROJECT}/")
        payload = entry.get("protoPayload")
        changed: dict[str, object] = {
            **entry,
            "logName": f"projects/{self._name.project}/{log_id}",
            "resource": self._resource(),
        }
        if payload is not None:
            text = msgspec.json.encode(payload).replace(f"namespaces/{PROJECT}/".encode(), f"namespaces/{self._name.project}/".encode())
            text = text.replace(f'"namespace":"{PROJECT}"'.encode(), f'"namespace":"{self._name.project}"'.encode())
            changed["protoPayload"] = msgspec.json.decode(text)
        return self._stamped(changed, self._last)

    def _resource(self) -> dict[str, object]:
        labels = {"job_name": self._name.job, "project_id": self._name.project, "location": self._name.location}
        return {"type": "cloud_run_job", "labels": labels}

    def _stamped(self, entry: dict[str, object], moment: datetime) -> LogEntryDict:
        self._count += 1
        stamp = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {**entry, "insertId": f"{self._name.execution}-{self._count:09d}", "timestamp": stamp, "receiveTimestamp": stamp}
