"""Looks at long operations of the three services, each in its own shape, for ``operations.wait_for``."""

from typing import TYPE_CHECKING

from harness.targets.gcp.calling import Caller, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.exceptions import is_quota_text, is_stockout_text
from harness.targets.gcp.failures import Failure
from harness.targets.gcp.operations import OperationState, failure_of_status, wait_for
from harness.targets.gcp.secrets import redact

if TYPE_CHECKING:
    from google.cloud.compute_v1 import Operation as ComputeOperation
    from google.cloud.container_v1 import Operation as ClusterOperation

COMPUTE_CODES = {
    "RESOURCE_NOT_FOUND": "NOT_FOUND",
    "RESOURCE_ALREADY_EXISTS": "ALREADY_EXISTS",
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": "FAILED_PRECONDITION",
    "RESOURCE_NOT_READY": "FAILED_PRECONDITION",
    "QUOTA_EXCEEDED": "RESOURCE_EXHAUSTED",
    "ZONE_RESOURCE_POOL_EXHAUSTED": "RESOURCE_EXHAUSTED",
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": "RESOURCE_EXHAUSTED",
}
"""Codes in a failed Compute operation; any other is INTERNAL. Source: https://cloud.google.com/compute/docs/troubleshooting."""


def await_cluster_operation(clients: Clients, caller: Caller, operation: "ClusterOperation", *, cluster: str, deadline_s: float) -> None:
    """Wait until an operation on a cluster has ended; ``cluster`` is its full name.

    Raises:
        CallError: When it failed, or did not end in time.
    """
    place = cluster.rpartition("/clusters/")[0]
    name = f"{place}/operations/{operation.name}"
    request = Request(service="container.googleapis.com", method="ClusterManager.GetOperation", resource=name)

    def poll(timeout_s: float) -> OperationState[None]:
        return cluster_state(clients.clusters.get_operation(request={"name": name}, retry=None, timeout=timeout_s))

    wait_for(caller, request, poll, deadline_s=deadline_s)


def await_zone_operation(clients: Clients, caller: Caller, operation: str, *, project: str, zone: str, deadline_s: float) -> None:
    """Wait until an operation of Compute Engine has ended.

    Raises:
        CallError: When it failed, or did not end in time.
    """
    name = f"projects/{project}/zones/{zone}/operations/{operation}"
    request = Request(service="compute.googleapis.com", method="zoneOperations.get", resource=name)
    asked = {"project": project, "zone": zone, "operation": operation}

    def poll(timeout_s: float) -> OperationState[None]:
        return compute_state(clients.zone_operations.get(request=asked, retry=None, timeout=timeout_s))

    wait_for(caller, request, poll, deadline_s=deadline_s)


def cluster_state(operation: "ClusterOperation") -> OperationState[None]:
    """An operation of Kubernetes Engine."""
    is_done = operation.status.name == "DONE"
    message = operation.error.message or operation.status_message
    failure = None
    if is_done and message:
        told = failure_of_status(operation.error.code, message)
        failure = Failure(code=told.code, message=told.message, is_quota=is_quota_text(message), is_stockout=is_stockout_text(message))
    return OperationState(is_done=is_done, failure=failure, progress=operation.status.name)


def compute_state(operation: "ComputeOperation") -> OperationState[None]:
    """An operation of Compute Engine."""
    errors = list(operation.error.errors)
    failure = None
    if errors:
        code, message = errors[0].code, redact("; ".join(error.message for error in errors))
        failure = Failure(
            code=COMPUTE_CODES.get(code, "INTERNAL"),
            message=message,
            reason=code,
            is_quota=code == "QUOTA_EXCEEDED",
            is_stockout=is_stockout_text(code),
        )
    is_done = operation.status.name == "DONE" if hasattr(operation.status, "name") else str(operation.status) == "DONE"
    return OperationState(is_done=is_done, failure=failure, progress=str(operation.progress))
