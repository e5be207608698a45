"""Reads what Google's clients raise: gRPC statuses with their details, JSON errors over HTTP, connections that break."""

import json
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import cast

from harness.clock import Clock
from harness.targets.gcp.failures import CLASSES, Failure
from harness.targets.gcp.secrets import Secrets

HTTP_CODES: Mapping[int, str] = {
    304: "FAILED_PRECONDITION",
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    412: "FAILED_PRECONDITION",
    416: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The code that a bare HTTP status stands for, where the body does not say (a proxy's page).

Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto; 304, 408, 410, 412, 416 and 502 by their meaning.
"""

RATE_REASONS = frozenset({"RATE_LIMIT_EXCEEDED", "rateLimitExceeded", "userRateLimitExceeded", "RESOURCE_OPERATION_RATE_EXCEEDED"})
QUOTA_REASONS = frozenset({"QUOTA_EXCEEDED", "quotaExceeded", "GCE_QUOTA_EXCEEDED", "limitExceeded"})
EXISTS_REASONS = frozenset({"alreadyExists", "ALREADY_EXISTS", "resourceAlreadyExists", "duplicate"})

QUOTA_TEXT = re.compile(
    r"quota '[^']*' exceeded|insufficient (?:regional |global )?quota|quota exceeded|exceeded (?:your )?(?:current )?quota", re.IGNORECASE
)
RATE_TEXT = re.compile(r"per (?:second|minute|hour|\d+ seconds)|requests per|rate limit|too many requests", re.IGNORECASE)

STOCKOUT_TEXT = re.compile(
    r"ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|(?:does not have enough|not enough) resources available"
    r"|is currently unavailable in the \S+ zone"
)
"""Source: texts of Compute operations and node pools. "resource pool exhausted" alone is said of external addresses, too."""

PERMISSION_TEXT = re.compile(r"[Pp]ermission '?(?P<one>[a-z][\w]*\.[\w]+\.[\w]+)|does not have (?P<two>[a-z]\w*\.\w+\.\w+) access")

MESSAGE_LENGTH_MAX = 2000
"""A proxy answers with whole pages."""


def call_errors() -> tuple[type[Exception], ...]:
    """What a call through a client can raise; a defect of ours is not among them."""
    import google.auth.exceptions
    import grpc
    import requests
    import urllib3
    from google.api_core import exceptions
    from google.cloud.storage import exceptions as storage
    from google.protobuf import json_format

    return (
        exceptions.GoogleAPIError,
        json_format.ParseError,  # of Compute's client: an answer that is no JSON, or not of its shape
        google.auth.exceptions.GoogleAuthError,
        grpc.RpcError,
        requests.RequestException,
        storage.DataCorruption,
        storage.InvalidResponse,
        urllib3.exceptions.HTTPError,  # of a download that breaks off: the client reads its body past requests
        ConnectionError,
        TimeoutError,
    )


def read_failure(error: Exception, secrets: Secrets, clock: Clock) -> Failure:
    """What a client raised, as a failure. Nothing of the request is kept."""
    import google.auth.exceptions
    import grpc
    import requests
    import urllib3
    from google.api_core import exceptions
    from google.cloud.storage import exceptions as storage

    if isinstance(error, storage.InvalidResponse):
        error = exceptions.from_http_response(error.response)  # type: ignore[no-untyped-call]
    if isinstance(error, grpc.RpcError):
        error = exceptions.from_grpc_error(error)  # type: ignore[no-untyped-call]
    if isinstance(error, exceptions.GoogleAPICallError):
        return _read_status(error, secrets, clock)
    text = _told(error, secrets)
    if isinstance(error, storage.DataCorruption):
        return Failure(code="DATA_LOSS", message=text, original=_original(error, secrets))
    if isinstance(error, google.auth.exceptions.TransportError):
        return Failure(code="UNAVAILABLE", message=text, is_unsent=True, original=_original(error, secrets))
    if isinstance(error, google.auth.exceptions.GoogleAuthError):
        return Failure(code="UNAUTHENTICATED", message=text, is_unsent=True, original=_original(error, secrets))
    if isinstance(error, requests.Timeout | TimeoutError | exceptions.RetryError | urllib3.exceptions.TimeoutError):
        return Failure(code="DEADLINE_EXCEEDED", message=text, original=_original(error, secrets))
    is_unsent = isinstance(error, ConnectionRefusedError | requests.exceptions.ConnectTimeout) or "NewConnectionError" in repr(error)
    return Failure(code="UNAVAILABLE", message=text, is_unsent=is_unsent, original=_original(error, secrets))


def _read_status(error: Exception, secrets: Secrets, clock: Clock) -> Failure:
    """One that came with a status, by gRPC or HTTP."""
    from google.api_core.exceptions import GoogleAPICallError

    assert isinstance(error, GoogleAPICallError)
    body = _body(error)
    reason, metadata = _reason(error, body)
    message = secrets.redact(str(error.message or error))[:MESSAGE_LENGTH_MAX]
    http_status = int(getattr(error.response, "status_code", 0) or 0)
    code = _code(error, body, reason)
    retry_after_s = _retry_after_s(error, clock)
    metadata = {secrets.redact(key): secrets.redact(value) for key, value in metadata.items()}
    permission = PERMISSION_TEXT.search(message)
    if code == "PERMISSION_DENIED" and permission and "permission" not in metadata:
        metadata["permission"] = permission["one"] or permission["two"]
    is_rate = reason in RATE_REASONS
    return Failure(
        code="RESOURCE_EXHAUSTED" if is_rate else code,
        message=message,
        reason=secrets.redact(reason),
        metadata=metadata,
        http_status=http_status,
        retry_after_s=retry_after_s,
        is_quota=not is_rate and _is_quota(code, reason, message, asks_for_patience=retry_after_s >= 0),
        is_stockout=is_stockout_text(f"{reason} {message}"),
        original=_original(error, secrets),
    )


def is_stockout_text(text: str) -> bool:
    """Whether a message says that the zone has no such machine now."""
    return bool(STOCKOUT_TEXT.search(text))


def is_quota_text(text: str) -> bool:
    """Whether a message says that an allocation is used up, rather than a rate."""
    return bool(QUOTA_TEXT.search(text)) and not RATE_TEXT.search(text)


def _is_quota(code: str, reason: str, message: str, *, asks_for_patience: bool) -> bool:
    """Whether an allocation is used up rather than a rate: of the latter a service says "per minute", or when to come again."""
    if code not in {"RESOURCE_EXHAUSTED", "PERMISSION_DENIED"}:
        return False
    if reason in QUOTA_REASONS:
        return True
    return is_quota_text(message) and not asks_for_patience


def _code(error: Exception, body: Mapping[str, object], reason: str) -> str:
    from google.api_core.exceptions import GoogleAPICallError

    assert isinstance(error, GoogleAPICallError)
    named = str(body.get("status", ""))
    if named in CLASSES:
        return named
    if error.code == 409 and reason in EXISTS_REASONS:
        return "ALREADY_EXISTS"
    if not body and error.grpc_status_code is not None:
        return str(error.grpc_status_code.name)
    status = int(error.code or 0)
    default = "INTERNAL" if status >= 500 else "FAILED_PRECONDITION" if status else "UNKNOWN"
    return HTTP_CODES.get(status, default)


def _body(error: Exception) -> Mapping[str, object]:
    """``error`` of a JSON answer; empty for gRPC, and for what is no JSON."""
    response = getattr(error, "response", None)
    content = getattr(response, "content", None)
    if not isinstance(content, bytes):
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    inner = found.get("error") if isinstance(found, dict) else None
    return cast("Mapping[str, object]", inner) if isinstance(inner, dict) else {}


def _reason(error: Exception, body: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """``ErrorInfo``'s reason and metadata, else the first reason of a JSON error."""
    reason, metadata = getattr(error, "reason", None), getattr(error, "metadata", None)
    told = {str(key): str(value) for key, value in dict(metadata or {}).items()}
    if reason:
        return str(reason), told
    for detail in _dicts(body.get("details")):
        if str(detail.get("@type", "")).endswith("google.rpc.ErrorInfo"):
            found = detail.get("metadata")
            return str(detail.get("reason", "")), {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}
    for each in _dicts(body.get("errors")):
        return str(each.get("reason", "")), told
    return "", told


def _dicts(value: object) -> Iterator[Mapping[str, object]]:
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _retry_after_s(error: Exception, clock: Clock) -> float:
    """Seconds that the service asks us to wait; negative: it does not say."""
    for detail in getattr(error, "details", None) or ():
        delay = getattr(detail, "retry_delay", None)
        if delay is not None:
            return float(delay.seconds) + float(delay.nanos) / 1e9
    headers = getattr(getattr(error, "response", None), "headers", None)
    asked = headers.get("Retry-After", "") if headers is not None and hasattr(headers, "get") else ""
    if not asked:
        return -1.0
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(str(asked)) - clock.utc()).total_seconds())
    except (TypeError, ValueError):
        return -1.0


def _told(error: Exception, secrets: Secrets) -> str:
    return secrets.redact(" ".join(str(error).split()) or type(error).__name__)[:MESSAGE_LENGTH_MAX]


def _original(error: Exception, secrets: Secrets) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}: {_told(error, secrets)}"
