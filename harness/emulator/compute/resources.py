"""Instances and operations as Compute Engine shows them.

Source: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances, …/zoneOperations
"""

from datetime import timedelta
from http import HTTPStatus

from harness.clock import Clock
from harness.emulator.compute.instances import Instance, to_text
from harness.emulator.compute.places import address
from harness.emulator.failures import ApiError
from harness.emulator.operations import Operation

Document = dict[str, object]


def instance_document(instance: Instance, host: str, clock: Clock) -> Document:
    """An instance: all that its maker has said, and over it what is so."""
    zone = instance.zone
    machine_type = instance.described.machine_type.rpartition("/")[2]
    resource_status: Document = {"scheduling": {}}
    if instance.stage.maintenance:
        resource_status["upcomingMaintenance"] = _maintenance(instance, clock)
    document: Document = {
        **instance.document,
        "kind": "compute#instance",
        "id": str(instance.identifier),
        "name": instance.name,
        "creationTimestamp": instance.created,
        "zone": address(host, zone.path),
        "selfLink": address(host, instance.path),
        "machineType": address(host, f"{zone.path}/machineTypes/{machine_type}"),
        "status": instance.stage.status,
        "scheduling": _scheduling(instance),
        "labels": instance.labels,
        "labelFingerprint": instance.label_fingerprint,
        "resourceStatus": resource_status,
        "lastStartTimestamp": instance.last_start,
        "lastStopTimestamp": instance.last_stop,
    }
    return {name: value for name, value in document.items() if value not in ("", {})}


def operation_document(operation: Operation, host: str) -> Document:
    """An operation; one that failed says so in its body, and its HTTP status is that of a success."""
    details = operation.metadata
    parent = operation.name.rpartition("/operations/")[0]
    document: Document = {
        "kind": "compute#operation",
        "id": str(details["id"]) if isinstance(details, dict) else "0",
        "name": operation.name.rpartition("/")[2],
        "zone": address(host, parent),
        "operationType": operation.kind,
        "targetLink": address(host, operation.target),
        "targetId": str(details["targetId"]) if isinstance(details, dict) else "0",
        "user": str(details["user"]) if isinstance(details, dict) else "",
        "status": "DONE" if operation.is_done else "RUNNING",
        "progress": 100 if operation.is_done else 0,
        "insertTime": to_text(operation.created),
        "startTime": to_text(operation.created),
        "selfLink": address(host, operation.name),
    }
    if operation.ended is not None:
        document["endTime"] = to_text(operation.ended)
    if operation.error is not None:
        document |= _error(operation.error)
    return document


def _error(error: ApiError) -> Document:
    status = 403 if error.reason == "QUOTA_EXCEEDED" else error.http_status
    return {
        "error": {"errors": [{"code": error.reason or error.code, "message": error.message}]},
        "httpErrorStatusCode": status,
        "httpErrorMessage": HTTPStatus(status).phrase.upper(),
    }


def _scheduling(instance: Instance) -> Document:
    described = instance.described
    return {
        "onHostMaintenance": "MIGRATE" if described.policy.migrates else "TERMINATE",
        "automaticRestart": described.policy.restarts,
        "preemptible": described.is_spot,
        "provisioningModel": "SPOT" if described.is_spot else described.scheduling.provisioning_model,
    }


def _maintenance(instance: Instance, clock: Clock) -> Document:
    """The windows of real ones are hours long; here one is what is left of the stage (assumed)."""
    left_s = max(0.0, instance.until_s - clock.monotonic_s())
    now = clock.utc()
    end = now + timedelta(seconds=left_s)
    return {
        "type": "SCHEDULED",
        "maintenanceStatus": instance.stage.maintenance,
        "canReschedule": False,
        "windowStartTime": to_text(end if instance.stage.maintenance == "PENDING" else now),
        "windowEndTime": to_text(end),
        "latestWindowStartTime": to_text(end),
    }
