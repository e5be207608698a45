"""What a call of a Google API can fail with, as errors that say what to do.

::

    BrokenHarnessError
    └── CallError                    a call did not do what it was asked
        ├── PermissionMissingError   PERMISSION_DENIED
        ├── CredentialsError         UNAUTHENTICATED, or no credentials at all
        ├── ServiceDisabledError     the API is not enabled in the project
        ├── ResourceMissingError     NOT_FOUND
        ├── ResourceExistsError      ALREADY_EXISTS
        ├── QuotaExceededError       RESOURCE_EXHAUSTED or 403, for a quota and not for a rate
        ├── StockoutError            the zone has no such machine now
        ├── PreconditionError        FAILED_PRECONDITION, 412
        ├── ConflictError            ABORTED: somebody else changed it at the same time
        ├── InvalidCallError         INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED
        ├── UnreachableError         UNAVAILABLE and rates, after all retries
    │   └── EmulatorLostError    an emulator's process is gone: asked once
        ├── DeadlineError            the time for the call was over
        │   └── OperationPendingError
        ├── OperationLostError       a long operation that nobody knows any more
        ├── PagesError               pages that do not end
        └── ServiceFailureError      INTERNAL, UNKNOWN, DATA_LOSS, CANCELLED

None of them holds the client's own exception: that one holds the request, and the request holds the token.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from harness.errors import BrokenHarnessError

AMBIGUOUS_CODES = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED", "DATA_LOSS"})
"""After these the work may have been done all the same: the answer was lost, not the request.

Source: https://grpc.io/docs/guides/status-codes (UNAVAILABLE and DEADLINE_EXCEEDED say nothing of the work; the others break mid-way).
"""


EMULATOR_GONE = "EMULATOR_GONE"
"""A reason of ours, not of Google's: nobody listens where an emulator was."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt of a call, read from whatever the client raised; texts are redacted.

    Attributes:
        code: A name of google.rpc.Code.
        message: As the service gave it.
        reason: ``ErrorInfo.reason``, or ``errors[].reason`` of a JSON error.
        metadata: ``ErrorInfo.metadata``.
        http_status: 0 for gRPC.
        retry_after_s: What the service asked for (``RetryInfo``, ``Retry-After``); negative: nothing.
        is_quota: An allocation is used up: waiting a moment does not help.
        is_stockout: The zone has no such machine.
        is_unsent: It is certain that the request never left.
        original: Class and text of what was raised, for a person who looks into it.
    """

    code: str
    message: str
    reason: str = ""
    metadata: Mapping[str, str] = {}
    http_status: int = 0
    retry_after_s: float = -1.0
    is_quota: bool = False
    is_stockout: bool = False
    is_unsent: bool = False
    original: str = ""

    @property
    def is_ambiguous(self) -> bool:
        """Whether the work may have been done."""
        return self.code in AMBIGUOUS_CODES and not self.is_unsent


class OriginalError(Exception):
    """Stands for what a client raised, in the chain of an error: its text, without its request."""


class CallError(BrokenHarnessError):
    """A call did not do what it was asked.

    Attributes:
        service: Like ``run.googleapis.com``.
        method: Like ``Jobs.RunJob``.
        resource: Its full name.
        failure: What came back last.
        attempts: How often it was sent.
        may_be_done: Whether an attempt got no answer, so that nobody knows if it did its work.
    """

    advice: ClassVar[str] = "look up the code in the API's reference"

    def __init__(self, *, service: str, method: str, resource: str, failure: Failure, attempts: int = 1, may_be_done: bool = False) -> None:
        self.service, self.method, self.resource = service, method, resource
        self.failure, self.attempts, self.may_be_done = failure, attempts, may_be_done
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        reason = f", {failure.reason}" if failure.reason else ""
        unknown = "; an attempt whose answer was lost may have done it" if may_be_done else ""
        super().__init__(f"{service} {method} of {resource}: {failure.code}{reason}{tries}: {failure.message}{unknown}; {self._advice()}")

    @property
    def code(self) -> str:
        """A name of google.rpc.Code."""
        return self.failure.code

    def _advice(self) -> str:
        return self.advice


class PermissionMissingError(CallError):
    """The caller may not; ``permission`` is empty where the service does not say which."""

    @property
    def permission(self) -> str:
        """Like ``run.jobs.run``."""
        return self.failure.metadata.get("permission", "")

    def _advice(self) -> str:
        return f"grant {self.permission or 'the permission'} on it to the account that runs the harness, or name another resource"


class CredentialsError(CallError):
    """Nobody believes who we are."""

    advice = "renew Application Default Credentials: `gcloud auth application-default login`, or the service account's key"


class ServiceDisabledError(CallError):
    """The API is not enabled in the project."""

    def _advice(self) -> str:
        return f"enable it: `gcloud services enable {self.failure.metadata.get('service', self.service)}` in that project"


class ResourceMissingError(CallError):
    """It is not there."""

    advice = "correct the name, or see who deleted it"


class ResourceExistsError(CallError):
    """It is there already."""

    advice = "adopt it, remove it, or name another"


class QuotaExceededError(CallError):
    """A quota is used up."""

    advice = "ask for more quota, or free some; waiting does not help"


class StockoutError(CallError):
    """The zone has no such machine now."""

    advice = "try another zone, or later"


class PreconditionError(CallError):
    """What was required of the resource does not hold (generation, etag, state)."""

    advice = "it was changed by somebody else, or is not in a state that allows this; look at it, then plan again"


class ConflictError(CallError):
    """Somebody else changed it at the same time."""

    advice = "see who else works on it, then try again"


class InvalidCallError(CallError):
    """The request itself is refused."""

    advice = "correct the value that it names"


class UnreachableError(CallError):
    """The service did not answer, or took no more requests, in all attempts."""

    advice = "try again later; https://status.cloud.google.com tells of outages"


class EmulatorLostError(UnreachableError):
    """An emulator has gone, and all that it held with it."""

    advice = "see why it has ended, then start it again; nothing of what was done to it is left"


class DeadlineError(CallError):
    """The time for the call was over."""

    advice = "try again, or give it more time"


class OperationPendingError(DeadlineError):
    """A long operation has not ended in the time it was given; it goes on without us."""

    advice = "it goes on without us; look at the operation before anything is done again"


class OperationLostError(CallError):
    """Nobody knows the long operation any more, nor does its resource tell how it ended."""

    advice = "look at the resource itself"


class PagesError(CallError):
    """A list does not end: a page's token comes twice, or there are too many pages."""

    advice = "this is a defect of the service or of a proxy before it"


class ServiceFailureError(CallError):
    """The service broke."""

    advice = "try again later; if it stays, it is for the service's support"


CLASSES: Mapping[str, type[CallError]] = {
    "CANCELLED": ServiceFailureError,
    "UNKNOWN": ServiceFailureError,
    "INVALID_ARGUMENT": InvalidCallError,
    "DEADLINE_EXCEEDED": DeadlineError,
    "NOT_FOUND": ResourceMissingError,
    "ALREADY_EXISTS": ResourceExistsError,
    "PERMISSION_DENIED": PermissionMissingError,
    "UNAUTHENTICATED": CredentialsError,
    "RESOURCE_EXHAUSTED": UnreachableError,
    "FAILED_PRECONDITION": PreconditionError,
    "ABORTED": ConflictError,
    "OUT_OF_RANGE": InvalidCallError,
    "UNIMPLEMENTED": InvalidCallError,
    "INTERNAL": ServiceFailureError,
    "UNAVAILABLE": UnreachableError,
    "DATA_LOSS": ServiceFailureError,
}
"""Every code of google.rpc.Code but OK."""


def class_of(failure: Failure) -> type[CallError]:
    """The error that a failure is raised as."""
    if failure.reason == EMULATOR_GONE:
        return EmulatorLostError
    if failure.is_stockout:
        return StockoutError
    if failure.is_quota:
        return QuotaExceededError
    if failure.reason in {"SERVICE_DISABLED", "accessNotConfigured"}:
        return ServiceDisabledError
    return CLASSES.get(failure.code, ServiceFailureError)
