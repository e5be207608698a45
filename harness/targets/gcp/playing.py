"""Lines of the platform that our faults bring: written to the harness's own log of the project, and marked as played.

The agent plays what the platform does inside a container, and no service can be made to log as if it had done so itself. So the line
stands in a log of its own, ``projects/P/logs/harness``, with the labels of the execution, and a label that says what it plays. A real line
of the platform is read where the platform writes it.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write
"""

import json
from typing import TYPE_CHECKING

from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.calling import Caller, Effect, Request
from harness.targets.gcp.log_reading import ATTEMPT_LABEL, EXECUTION_LABEL, PLAYED_LABEL, PLAYED_LOG, SERVICE, TASK_LABEL
from harness.targets.gcp.place import Place

if TYPE_CHECKING:
    from harness.targets.gcp.connection import Clients


class PlayedLines:
    """Writes them for one execution."""

    def __init__(self, clients: "Clients", caller: Caller, *, place: Place, job: str, execution: str) -> None:
        self._clients, self._caller, self._place = clients, caller, place
        self._job, self._execution = job, execution
        self._count = 0

    def write(self, key: AttemptKey, text: str, *, plays: str, reason: str = "", severity: str = "WARNING") -> None:
        """Write a line about an attempt; its time is when Cloud Logging gets it, by the clock of the other entries.

        Raises:
            CallError: When it cannot be written.
        """
        from google.cloud.logging_v2 import types

        self._count += 1
        labels = {
            EXECUTION_LABEL: self._execution,
            TASK_LABEL: str(key.task),
            ATTEMPT_LABEL: str(key.attempt),
            PLAYED_LABEL: plays,
            **({"reason": reason} if reason else {}),
        }
        name = f"projects/{self._place.project}/logs/{PLAYED_LOG}"
        where = {"job_name": self._job, "project_id": self._place.project, "location": self._place.region}
        document = {
            "logName": name,
            "resource": {"type": "cloud_run_job", "labels": where},
            "severity": severity,
            "insertId": f"{self._execution}-played-{self._count}",
            "labels": labels,
            "textPayload": text,
        }
        entry = types.LogEntry.from_json(json.dumps(document))
        self._caller.call(
            Request(service=SERVICE, method="entries.write", resource=name, effect=Effect.IDEMPOTENT),
            lambda timeout_s: self._clients.logging.write_log_entries(entries=[entry], timeout=timeout_s, retry=None),
        )
