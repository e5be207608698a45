"""Long operations of three services, waited for to their end: Cloud Run's (google.longrunning), Kubernetes Engine's, Compute Engine's."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from harness.targets.gcp.calling import Caller, Request, Send
from harness.targets.gcp.failures import CallError, Failure, OperationLostError, OperationPendingError, ResourceMissingError, class_of
from harness.targets.gcp.secrets import redact

T = TypeVar("T")

POLLED_FIRST_S = 0.5
POLLED_LONGEST_S = 10.0
"""An operation of seconds is seen at once, one of an hour does not eat the quota of reads."""

RPC_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""By number. Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto."""


class OperationState(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a look at an operation shows.

    Attributes:
        is_done: Whether it has ended.
        result: What it made; None where the service gives nothing, or it failed.
        failure: How it failed.
        progress: For a person.
    """

    is_done: bool
    result: T | None = None
    failure: Failure | None = None
    progress: str = ""


def wait_for(
    caller: Caller,
    request: Request,
    poll: Send[OperationState[T]],
    *,
    deadline_s: float,
    settled: Callable[[], OperationState[T]] | None = None,
    tell: Callable[[str], None] | None = None,
) -> T | None:
    """Wait until an operation has ended, and return what it made.

    Args:
        caller: Does the calls.
        request: About the operation: its full name is the resource.
        poll: Looks at it once.
        deadline_s: How long it may take.
        settled: Tells from the resource itself what became of an operation that nobody knows any more.
        tell: Told of progress, when that changes.

    Raises:
        OperationPendingError: It has not ended in time; it goes on.
        OperationLostError: Nobody knows it any more, and its resource does not tell.
        CallError: It failed, as its own error says; or it could not be looked at.
    """
    end_s = caller.clock.monotonic_s() + deadline_s
    pause_s, told = POLLED_FIRST_S, ""
    while True:
        left_s = end_s - caller.clock.monotonic_s()
        if left_s <= 0:
            raise _of(OperationPendingError, request, "DEADLINE_EXCEEDED", f"it has not ended after {deadline_s:g} s")
        state = _look(caller, request, poll, left_s=left_s, settled=settled)
        if state.is_done:
            return _ended(request, state)
        if tell is not None and state.progress != told:
            told = state.progress
            tell(told)
        caller.clock.sleep(min(pause_s, max(0.0, end_s - caller.clock.monotonic_s())))
        pause_s = min(POLLED_LONGEST_S, pause_s * 2)


def failure_of_status(code: int, message: str) -> Failure:
    """A ``google.rpc.Status`` in an operation, as a failure."""
    name = RPC_CODES[code] if 0 < code < len(RPC_CODES) else "UNKNOWN"
    return Failure(code=name, message=redact(message))


def _look(
    caller: Caller,
    request: Request,
    poll: Send[OperationState[T]],
    *,
    left_s: float,
    settled: Callable[[], OperationState[T]] | None,
) -> OperationState[T]:
    try:
        return caller.call(request, poll, deadline_s=left_s)
    except ResourceMissingError as error:
        state = settled() if settled is not None else None
        if state is None or not state.is_done:
            raise _of(OperationLostError, request, "NOT_FOUND", error.failure.message) from error
        return state


def _ended(request: Request, state: OperationState[T]) -> T | None:
    if state.failure is not None:
        raise class_of(state.failure)(service=request.service, method=request.method, resource=request.resource, failure=state.failure)
    return state.result


def _of(kind: type[CallError], request: Request, code: str, message: str) -> CallError:
    failure = Failure(code=code, message=message)
    return kind(service=request.service, method=request.method, resource=request.resource, failure=failure)
