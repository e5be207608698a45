"""What the emulator says in a log of its own: that entries of an execution are not there any more, or never came.

No service of Google's says so.
"""

from collections.abc import Mapping

LOG_ID = "harness-emulator"
"""The log that such entries stand in."""

LOST_LABEL = "harness/lost"
"""How many entries are lost, as far as the emulator knows."""

EXECUTION_LABEL = "run.googleapis.com/execution_name"


def lost_notice(project: str, execution: str, *, count: int, why: str, labels: Mapping[str, str] | None = None) -> dict[str, object]:
    """The entry, in its JSON form, that tells of entries that are lost."""
    return {
        "logName": f"projects/{project}/logs/{LOG_ID}",
        "resource": {"type": "cloud_run_job", "labels": {"project_id": project}},
        "labels": {**(labels or {}), EXECUTION_LABEL: execution, LOST_LABEL: str(count)},
        "severity": "WARNING",
        "textPayload": f"{count} entries of execution {execution} are lost: {why}",
    }
