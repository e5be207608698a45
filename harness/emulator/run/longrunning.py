"""``google.longrunning.Operations`` of Cloud Run.

Source: https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.operations (get, list, wait, delete; no cancel)
"""

from collections.abc import Sequence
from typing import Any

from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from harness.emulator.failures import ApiError, invalid_argument, not_found
from harness.emulator.operations import Operation
from harness.emulator.pages import page_of
from harness.emulator.service import CallContext, Method
from harness.emulator.wire.grpc_wire import plain_message, status_of
from harness.emulator.world import World

FAMILY = "run"
PAGE_MAX = 1000
WAIT_S_MAX = 600.0
"""A caller that names no time gets an answer at last."""


def operation_message(operation: Operation) -> operations_pb2.Operation:
    """An operation as the service's message; what it is about is told as it is now."""
    message = operations_pb2.Operation(name=operation.name, done=operation.is_done)
    metadata = operation.metadata() if callable(operation.metadata) else operation.metadata
    if metadata is not None:
        _pack(message.metadata, metadata)
    if operation.error is not None:
        message.error.CopyFrom(status_of(operation.error))
    elif operation.is_done:
        _pack(message.response, operation.response)
    return message


class OperationMethods:
    """Get, list, wait for and delete operations."""

    def __init__(self, world: World) -> None:
        self._world = world

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        service = "/google.longrunning.Operations/"
        return (
            Method(name=f"{service}GetOperation", request=operations_pb2.GetOperationRequest, handle=self.get),
            Method(name=f"{service}ListOperations", request=operations_pb2.ListOperationsRequest, handle=self.list),
            Method(name=f"{service}WaitOperation", request=operations_pb2.WaitOperationRequest, handle=self.wait),
            Method(name=f"{service}DeleteOperation", request=operations_pb2.DeleteOperationRequest, handle=self.delete, is_write=True),
            Method(name=f"{service}CancelOperation", request=operations_pb2.CancelOperationRequest, handle=self.cancel, is_write=True),
        )

    def get(self, request: operations_pb2.GetOperationRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``GetOperation``."""
        del context
        return operation_message(self._find(request.name, "run.operations.get"))

    def list(self, request: operations_pb2.ListOperationsRequest, context: CallContext) -> operations_pb2.ListOperationsResponse:
        """See ``ListOperations``. A filter is not covered."""
        self._world.projects.require("run.operations.list", request.name)
        if request.filter:
            raise ApiError("UNIMPLEMENTED", "the emulator takes no filter of operations")
        found = self._world.operations.below(request.name.removesuffix("/operations"), family=FAMILY)
        page, token = page_of(
            found,
            key=lambda operation: operation.name,
            size=request.page_size,
            token=request.page_token,
            size_max=PAGE_MAX,
            is_partial=context.is_partial,
        )
        return operations_pb2.ListOperationsResponse(operations=map(operation_message, page), next_page_token=token)

    def wait(self, request: operations_pb2.WaitOperationRequest, context: CallContext) -> operations_pb2.Operation:
        """See ``WaitOperation``: the operation as it is when it has ended, or when the time is over."""
        operation = self._find(request.name, "run.operations.get")
        timeout_s = request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else WAIT_S_MAX
        if timeout_s < 0:
            raise invalid_argument("timeout", f"{timeout_s:g} s is below 0")
        self._world.operations.wait(operation, min(timeout_s, WAIT_S_MAX), is_active=context.is_active)
        return operation_message(operation)

    def delete(self, request: operations_pb2.DeleteOperationRequest, context: CallContext) -> empty_pb2.Empty:
        """See ``DeleteOperation``: it is forgotten, and what it does goes on."""
        del context
        self._world.operations.delete(self._find(request.name, "run.operations.delete"))
        return empty_pb2.Empty()

    def cancel(self, request: operations_pb2.CancelOperationRequest, context: CallContext) -> empty_pb2.Empty:
        """See ``CancelOperation``: the service does not offer it; an execution is cancelled by its own name."""
        del context
        self._find(request.name, "run.operations.get")
        raise ApiError("UNIMPLEMENTED", "Cloud Run does not cancel operations: cancel the execution")

    def _find(self, name: str, permission: str) -> Operation:
        self._world.projects.require(permission, name)
        operation = self._world.operations.find(name)
        if operation is None or operation.family != FAMILY:
            raise not_found(name)
        return operation


def _pack(box: Any, message: object) -> None:
    box.Pack(plain_message(message))
