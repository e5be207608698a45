"""Logs for tests, entry by entry, in the shapes of Cloud Logging."""

import json
from collections.abc import Iterable
from pathlib import Path

from harness.incidents import Incident, JobWords, incident_of, read_export, timeline_of
from harness.incidents.timeline import Timeline
from harness.incidents.timestamps import write_timestamp

EXPORTS = Path(__file__).parent / "exports"
BEGIN_NS = 1_772_000_000 * 1_000_000_000
SIGTERM = "Received SIGTERM signal from platform. Initiating graceful shutdown..."
PREEMPTED = "Container instance preemption initiated by the platform due to underlying hardware maintenance."

Document = dict[str, object]


class Log:
    """Entries of one execution of a Cloud Run job."""

    def __init__(self, execution: str = "train-x7k2p") -> None:
        self.execution = execution
        self.entries: list[Document] = []

    def line(self, t_s: float, text: str, *, attempt: int = 0, task: int = 0, log: str = "stdout") -> "Log":
        """A line of an attempt."""
        labels = {
            "run.googleapis.com/execution_name": self.execution,
            "run.googleapis.com/task_index": str(task),
            "run.googleapis.com/task_attempt": str(attempt),
        }
        return self.add(t_s, f"run.googleapis.com%2F{log}", labels, textPayload=text)

    def lines(self, t_s: float, *texts: str, attempt: int = 0, task: int = 0) -> "Log":
        """Lines, a second apart."""
        for number, text in enumerate(texts):
            self.line(t_s + number, text, attempt=attempt, task=task)
        return self

    def platform(self, t_s: float, text: str, *, attempt: int = 0, task: int = 0) -> "Log":
        """A line of the platform."""
        return self.line(t_s, text, attempt=attempt, task=task, log="varlog%2Fsystem")

    def end(self, t_s: float, **counts: int) -> "Log":
        """The end of the execution, by its counts."""
        status = {"conditions": [{"type": "Completed", "status": "True" if counts.get("succeeded") else "False"}]}
        payload = {
            "methodName": "/Jobs.RunJob",
            "resourceName": f"namespaces/p/executions/{self.execution}",
            "status": {} if counts.get("succeeded") else {"code": 10, "message": "it failed"},
            "response": {"status": {**status, **{f"{name}Count": count for name, count in counts.items()}}},
        }
        return self.add(t_s, "cloudaudit.googleapis.com%2Fsystem_event", {}, protoPayload=payload)

    def add(self, t_s: float, log: str, labels: dict[str, str], **fields: object) -> "Log":
        """Any entry."""
        self.entries.append(
            {
                "insertId": f"{self.execution}-{len(self.entries)}",
                "logName": f"projects/p/logs/{log}",
                "timestamp": write_timestamp(BEGIN_NS + round(t_s * 1e9)),
                "resource": {"type": "cloud_run_job", "labels": {"job_name": "train", "project_id": "p", "location": "r"}},
                "labels": labels,
                **fields,
            }
        )
        return self

    def timeline(self, words: JobWords | None = None) -> Timeline:
        """As it is read."""
        return timeline_of(read_export(as_lines(self.entries)), words or JobWords())

    def incident(self, words: JobWords | None = None) -> Incident:
        """As it is diagnosed."""
        return diagnosed(as_lines(self.entries), words)


def as_lines(entries: Iterable[object]) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def diagnosed(data: bytes, words: JobWords | None = None, *, name: str = "") -> Incident:
    """The incident of an export."""
    export = read_export(data)
    return incident_of(export, timeline_of(export, words or JobWords(), name=name))


def kinds(incident: Incident) -> dict[str, str]:
    """What was found, with its outcome."""
    return {diagnosis.kind: str(diagnosis.outcome) for diagnosis in incident.diagnoses}
