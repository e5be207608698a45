"""What the platform writes into the log when it acts on an instance by itself.

Source: https://docs.cloud.google.com/logging/docs/audit/gce-audit-logging (system events); the sentences are assumed, and labelled so.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from harness.cloud_run.log_entries import ASSUMED_LABEL
from harness.emulator.compute import courses
from harness.emulator.compute.instances import Instance

_SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        courses.TERMINATED_FOR_MAINTENANCE: "Instance terminated during host maintenance.",
        courses.MIGRATED: "Instance migrated during Compute Engine maintenance.",
        courses.RESTARTED: "Instance automatically restarted by Compute Engine.",
        courses.HOST_ERROR: "Instance terminated by Compute Engine.",
        courses.PREEMPTED: "Instance was preempted.",
    }
)


def event_entry(instance: Instance, event: str, moment: datetime, operation: str) -> dict[str, object]:
    """The entry of the audit log of system events."""
    project = instance.zone.project
    stamp = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "insertId": operation,
        "logName": f"projects/{project}/logs/cloudaudit.googleapis.com%2Fsystem_event",
        "resource": {
            "type": "gce_instance",
            "labels": {"instance_id": str(instance.identifier), "project_id": project, "zone": instance.zone.name},
        },
        "labels": {ASSUMED_LABEL: "the sentence of the status is assumed"},
        "timestamp": stamp,
        "receiveTimestamp": stamp,
        "severity": "INFO",
        "operation": {"id": operation, "producer": event, "first": True, "last": True},
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "serviceName": "compute.googleapis.com",
            "methodName": event,
            "resourceName": instance.path,
            "authenticationInfo": {"principalEmail": "system@google.com"},
            "status": {"message": _SENTENCES[event]},
            "request": {"@type": f"type.googleapis.com/{event}"},
        },
    }
