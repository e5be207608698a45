"""Bodies of HTTP requests, and errors as JSON, as Google's REST services write them.

Source: https://docs.cloud.google.com/apis/design/errors#http_mapping, https://docs.cloud.google.com/storage/docs/json_api/v1/status-codes
"""

import re
from collections.abc import Mapping
from typing import BinaryIO

import msgspec

from harness.emulator.failures import ApiError, invalid_argument
from harness.emulator.service import HttpResponse

BODY_BYTES_MAX = 256 << 20
"""An upload comes in pieces of some megabytes; a checkpoint of the workloads here is far smaller."""

_LENGTH = re.compile(r"\d{1,19}", re.ASCII)
_CHUNK_LENGTH = re.compile(rb"[0-9a-fA-F]{1,16}")
"""Digits alone, as RFC 9112 has them (6.2, 7.1): Python reads signs too, and a read of -1 bytes ends with the connection."""

LOCAL_NAMES = ("", "127.0.0.1", "localhost", "[::1]")
"""How a program of this machine names it; a request without a host comes from no browser."""

_REASONS = {
    "NOT_FOUND": "notFound",
    "ALREADY_EXISTS": "conflict",
    "ABORTED": "conflict",
    "PERMISSION_DENIED": "forbidden",
    "UNAUTHENTICATED": "authError",
    "RESOURCE_EXHAUSTED": "rateLimitExceeded",
    "INVALID_ARGUMENT": "invalid",
    "FAILED_PRECONDITION": "failedPrecondition",
    "OUT_OF_RANGE": "requestedRangeNotSatisfiable",
    "UNIMPLEMENTED": "notImplemented",
}


def read_body(stream: BinaryIO, headers: Mapping[str, str]) -> bytes:
    """The whole body of a request, chunks put together; header names are in small letters.

    Raises:
        ApiError: INVALID_ARGUMENT when it is too large, or its length is none.
    """
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _read_chunks(stream)
    text = headers.get("content-length", "0")
    if _LENGTH.fullmatch(text) is None:
        raise invalid_argument("Content-Length", f"{text!r} is no length")
    return _read(stream, int(text))


def error_response(error: ApiError) -> HttpResponse:
    """An error as Google's REST services write it."""
    is_error_info = error.reason.isupper()
    reason = error.reason if error.reason and not is_error_info else _REASONS.get(error.code, "backendError")
    if error.reason in ("QUOTA_EXCEEDED", "ZONE_RESOURCE_POOL_EXHAUSTED"):
        reason = "quotaExceeded" if error.reason == "QUOTA_EXCEEDED" else error.reason
    body: dict[str, object] = {
        "code": error.http_status,
        "message": error.message,
        "errors": [{"message": error.message, "domain": "global", "reason": reason}],
        "status": error.code,
    }
    details: list[dict[str, object]] = []
    if is_error_info:
        info = {"reason": error.reason, "domain": error.domain, "metadata": dict(error.metadata)}
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info})
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    if error.retry_after_s:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{error.retry_after_s:g}s"})
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    if details:
        body["details"] = details
    return HttpResponse(status=error.http_status, headers=headers, body=msgspec.json.encode({"error": body}))


def _read(stream: BinaryIO, length: int) -> bytes:
    if length > BODY_BYTES_MAX:
        raise invalid_argument("body", f"{length} bytes; the emulator takes {BODY_BYTES_MAX} in one request")
    data = stream.read(length)
    if len(data) < length:
        raise ConnectionResetError(f"the body ended after {len(data)} of {length} bytes")
    return data


def _read_chunks(stream: BinaryIO) -> bytes:
    body = bytearray()
    while True:
        line = stream.readline(64).partition(b";")[0].strip()
        if _CHUNK_LENGTH.fullmatch(line) is None:
            raise invalid_argument("Transfer-Encoding", f"{line!r} is no length of a chunk")
        size = int(line, 16)
        if size == 0:
            while stream.readline(8192).strip():
                pass  # trailers
            return bytes(body)
        if len(body) + size > BODY_BYTES_MAX:
            raise invalid_argument("body", f"more than {BODY_BYTES_MAX} bytes in one request")
        body += _read(stream, size)
        stream.readline(8)


def require_local(headers: Mapping[str, str]) -> None:
    """See that no page of a browser asks, for a page of any site could: by its origin, or by a name of its own for loopback.

    Raises:
        ApiError: PERMISSION_DENIED.
    """
    host = headers.get("host", "").lower().removesuffix(".")
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    if "origin" in headers or name not in LOCAL_NAMES:
        raise ApiError("PERMISSION_DENIED", "the emulator answers programs of this machine, not pages of a browser", reason="forbidden")
