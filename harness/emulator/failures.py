"""Errors of Google's services, in their own words; the wires translate them to gRPC statuses and to JSON bodies.

Source: https://docs.cloud.google.com/apis/design/errors, https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
"""

from collections.abc import Mapping
from types import MappingProxyType

NO_METADATA: Mapping[str, str] = MappingProxyType({})

CODES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "OK": (0, 200),
        "CANCELLED": (1, 499),
        "UNKNOWN": (2, 500),
        "INVALID_ARGUMENT": (3, 400),
        "DEADLINE_EXCEEDED": (4, 504),
        "NOT_FOUND": (5, 404),
        "ALREADY_EXISTS": (6, 409),
        "PERMISSION_DENIED": (7, 403),
        "RESOURCE_EXHAUSTED": (8, 429),
        "FAILED_PRECONDITION": (9, 400),
        "ABORTED": (10, 409),
        "OUT_OF_RANGE": (11, 400),
        "UNIMPLEMENTED": (12, 501),
        "INTERNAL": (13, 500),
        "UNAVAILABLE": (14, 503),
        "DATA_LOSS": (15, 500),
        "UNAUTHENTICATED": (16, 401),
    }
)
"""The number of each code of ``google.rpc.Code``, and the HTTP status that goes with it."""


class ApiError(Exception):
    """An answer that is no success.

    Attributes:
        code: Name of a ``google.rpc.Code``.
        message: What the service says.
        reason: ``ErrorInfo.reason`` where it is written in capitals, else the ``reason`` of a JSON error, like ``conditionNotMet``.
        domain: Of the reason, like ``run.googleapis.com``.
        metadata: Of the reason.
        retry_after_s: When to come back; 0: not said.
        http_status: Where REST uses another status than the code's own: 412 for a precondition of Cloud Storage; 0: the code's.

    Raises:
        ValueError: When there is no such code.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        reason: str = "",
        domain: str = "googleapis.com",
        metadata: Mapping[str, str] = NO_METADATA,
        retry_after_s: float = 0,
        http_status: int = 0,
    ) -> None:
        if code not in CODES:
            raise ValueError(f"code is {code!r}: one of {', '.join(CODES)}")
        self.code, self.message, self.reason, self.domain = code, message, reason, domain
        self.metadata, self.retry_after_s = metadata, retry_after_s
        self.number = CODES[code][0]
        self.http_status = http_status or CODES[code][1]
        super().__init__(f"{code}: {message}")


def not_found(resource: str) -> ApiError:
    """Source: Cloud Run Admin API v2, as its client shows it."""
    return ApiError("NOT_FOUND", f"Resource '{resource}' was not found", reason="notFound")


def already_exists(resource: str) -> ApiError:
    """Something of that name is there."""
    return ApiError("ALREADY_EXISTS", f"Resource '{resource}' already exists.", reason="alreadyExists")


def permission_denied(permission: str, resource: str) -> ApiError:
    """The caller lacks a permission, or the project is not there: Google does not say which."""
    return ApiError(
        "PERMISSION_DENIED",
        f"Permission '{permission}' denied on resource '{resource}' (or it may not exist).",
        reason="IAM_PERMISSION_DENIED",
        domain="iam.googleapis.com",
        metadata={"permission": permission, "resource": resource},
    )


def quota_exceeded(quota: str, *, limit: float, place: str = "", service: str = "compute.googleapis.com") -> ApiError:
    """A quota of the project is used up; it is no load that passes. Two spaces stand before ``Limit``, as in Google's text."""
    where = f" in {place}" if place else ""
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"Quota '{quota}' exceeded.  Limit: {limit:.1f}{where}.",
        reason="QUOTA_EXCEEDED",
        domain=service,
        metadata={"quota_metric": quota, "quota_limit_value": f"{limit:g}", "quota_location": place, "service": service},
    )


def rate_limited(service: str, *, retry_after_s: float = 0) -> ApiError:
    """Too many requests at once; it passes."""
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{service}'.",
        reason="RATE_LIMIT_EXCEEDED",
        domain=service,
        metadata={"service": service},
        retry_after_s=retry_after_s,
    )


def stockout(zone: str) -> ApiError:
    """The zone has no machine of the kind left; ``zone`` is ``projects/P/zones/Z``."""
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"The zone '{zone}' does not have enough resources available to fulfill the request. Try a different zone, or try again later.",
        reason="ZONE_RESOURCE_POOL_EXHAUSTED",
        domain="compute.googleapis.com",
        metadata={"zone": zone},
        http_status=503,
    )


def failed_precondition(message: str, *, reason: str = "") -> ApiError:
    """The resource is in no state for the request."""
    return ApiError("FAILED_PRECONDITION", message, reason=reason)


def aborted(message: str) -> ApiError:
    """Somebody else has changed the resource meanwhile."""
    return ApiError("ABORTED", message, reason="aborted")


def invalid_argument(field: str, problem: str) -> ApiError:
    """A field has no possible value."""
    return ApiError("INVALID_ARGUMENT", f"{field}: {problem}" if field else problem, reason="invalid")


def deadline_exceeded(message: str = "Deadline Exceeded") -> ApiError:
    """The service was too slow."""
    return ApiError("DEADLINE_EXCEEDED", message)


def unavailable(message: str = "The service is currently unavailable.", *, retry_after_s: float = 0) -> ApiError:
    """It passes."""
    return ApiError("UNAVAILABLE", message, reason="backendError", retry_after_s=retry_after_s)


def unauthenticated() -> ApiError:
    """The access token is no longer good."""
    return ApiError(
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication "
        "credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
        reason="ACCESS_TOKEN_EXPIRED",
        metadata={"service": "googleapis.com"},
    )


def unimplemented(what: str) -> ApiError:
    """The emulator does not cover it."""
    return ApiError("UNIMPLEMENTED", f"{what} is not covered by the emulator")
