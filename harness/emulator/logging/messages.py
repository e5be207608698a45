"""Log entries between their JSON form, in which they are kept, and the messages of google.logging.v2."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from google.cloud.audit import audit_log_pb2  # type: ignore[import-untyped] # generated; once imported, its type is known in payloads
from google.cloud.logging_v2.types import LogEntry
from google.protobuf import json_format, struct_pb2

from harness.emulator.failures import ApiError, invalid_argument
from harness.emulator.logging.query.values import SEVERITIES, parse_moment

AUDIT_LOG = f"type.googleapis.com/{audit_log_pb2.AuditLog.DESCRIPTOR.full_name}"
STRUCT = f"type.googleapis.com/{struct_pb2.Struct.DESCRIPTOR.full_name}"

_LINE_FIELDS = frozenset({"logName", "resource", "labels", "severity", "insertId", "timestamp", "receiveTimestamp", "textPayload"})

_EXACT_MAX = 2**53
"""Doubles hold every whole number below."""

Message = TypeVar("Message")


def to_message(entry: Mapping[str, Any]) -> Any:
    """An entry as a protobuf message; a ``protoPayload`` of a type not known here becomes a ``google.protobuf.Struct`` of its fields."""
    if entry.keys() <= _LINE_FIELDS and entry.get("severity", "DEFAULT") in SEVERITIES:
        return _line(entry)
    return _any_message(entry)


def _line(entry: Mapping[str, Any]) -> Any:
    """A line of text, as nearly all are: five times as fast as what can read any entry."""
    moments = {name: parse_moment(entry.get(name, "")) for name in ("timestamp", "receiveTimestamp") if name in entry}
    if any(moment is None for moment in moments.values()):
        return _any_message(entry)
    resource = entry.get("resource", {})
    message = LogEntry.pb(LogEntry())
    message.log_name, message.insert_id = entry.get("logName", ""), entry.get("insertId", "")
    if "textPayload" in entry:
        message.text_payload = entry["textPayload"]
    message.severity = SEVERITIES[entry.get("severity", "DEFAULT")]
    message.labels.update(entry.get("labels", {}))
    if "resource" in entry:
        message.resource.SetInParent()
        message.resource.type = resource.get("type", "")
        message.resource.labels.update(resource.get("labels", {}))
    if "timestamp" in moments:
        message.timestamp.FromNanoseconds(moments["timestamp"])
    if "receiveTimestamp" in moments:
        message.receive_timestamp.FromNanoseconds(moments["receiveTimestamp"])
    return message


def _any_message(entry: Mapping[str, Any]) -> Any:
    try:
        return json_format.ParseDict(entry, _new(), ignore_unknown_fields=True)
    except json_format.ParseError:
        payload = entry.get("protoPayload")
        if not isinstance(payload, Mapping) or payload.get("@type") == AUDIT_LOG:
            raise
        return json_format.ParseDict({**entry, "protoPayload": {"@type": STRUCT, "value": payload}}, _new(), ignore_unknown_fields=True)


def to_entry(message: Any) -> dict[str, Any]:
    """A protobuf message in the JSON form.

    Raises:
        ApiError: INVALID_ARGUMENT when it has none: a number that JSON has not, a payload of a type that is not known.
    """
    try:
        entry: dict[str, Any] = _with_integers(json_format.MessageToDict(message))
    except (json_format.Error, TypeError) as error:
        raise invalid_argument("", f"Log entry cannot be read: {error}") from error
    return entry


def parse_request(kind: type[Message], body: bytes) -> Message:
    """The body of a request over REST as the message of its method.

    Raises:
        ApiError: INVALID_ARGUMENT when it is none.
    """
    request = kind()
    try:
        fields = msgspec.json.decode(body or b"{}", type=dict[str, Any])
        json_format.ParseDict(fields, kind.pb(request))  # type: ignore[attr-defined] # proto-plus
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise _bad_body(error) from error
    return request


def _with_integers(value: Any) -> Any:
    """Numbers of a Struct are all doubles; whole ones are written without a fraction, as Google's JSON has them."""
    if isinstance(value, dict):
        return {name: _with_integers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_integers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_MAX else value


def _bad_body(error: Exception) -> ApiError:
    return invalid_argument("", f"Invalid JSON payload received. {str(error).splitlines()[0]}")


def _new() -> Any:
    return LogEntry.pb(LogEntry())
