"""What requests of the JSON API say, read and checked."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from harness.emulator.service import HttpRequest
from harness.emulator.storage.buckets import BucketSettings
from harness.emulator.storage.listing import RESULTS_MAX, ListQuery
from harness.emulator.storage.preconditions import Preconditions, read_number, read_preconditions
from harness.emulator.storage.records import ObjectMetadata
from harness.emulator.storage.refusals import invalid, not_covered

Document = dict[str, object]

_NOT_COVERED: Mapping[type[msgspec.Struct], Sequence[str]] = {
    BucketSettings: ("retentionPolicy", "defaultEventBasedHold", "lifecycle", "objectRetention", "autoclass", "encryption"),
    ObjectMetadata: ("temporaryHold", "eventBasedHold", "retention", "kmsKeyName"),
}
"""What decides how long objects are kept, or how: a caller who sets it relies on it, so it is refused rather than dropped."""
Shape = TypeVar("Shape", ObjectMetadata, BucketSettings)


def host_of(request: HttpRequest) -> str:
    """Where the caller reaches us: where links lead."""
    return request.headers.get("host", "")


def conditions_of(request: HttpRequest, *, source: bool = False) -> Preconditions:
    """The preconditions of a request.

    Raises:
        ApiError: 400.
    """
    return read_preconditions(request.query_value, source=source)


def generation_of(request: HttpRequest, parameter: str = "generation") -> int | None:
    """The generation that a request names; None: whatever is live.

    Raises:
        ApiError: 400.
    """
    return read_number(parameter, request.query_value(parameter))


def list_query_of(request: HttpRequest) -> ListQuery:
    """The page that a request asks for.

    Raises:
        ApiError: 400, or 501 for a glob and for objects that are not live.
    """
    for parameter in ("matchGlob", "filter"):
        if request.query_value(parameter):
            raise not_covered(f"{parameter} of a listing")
    require_live(request)
    wanted = read_number("maxResults", request.query_value("maxResults"))
    return ListQuery(
        prefix=request.query_value("prefix"),
        delimiter=request.query_value("delimiter"),
        start_offset=request.query_value("startOffset"),
        end_offset=request.query_value("endOffset"),
        page_token=request.query_value("pageToken"),
        results_max=RESULTS_MAX if wanted is None else wanted,
        tells_trailing_delimiter=request.query_value("includeTrailingDelimiter").lower() == "true",
    )


def require_live(request: HttpRequest) -> None:
    """See that live objects are asked for.

    Raises:
        ApiError: 501 for those that were deleted softly.
    """
    if request.query_value("softDeleted").lower() == "true":
        raise not_covered("objects that were deleted softly")


def document_of(data: bytes) -> Document:
    """A JSON object; an empty body is an empty one.

    Raises:
        ApiError: 400.
    """
    if not data:
        return {}
    try:
        return msgspec.json.decode(data, type=Document)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise invalid(f"Parse Error: {error}") from error


def shape_of(document: Mapping[str, object], kind: type[Shape]) -> Shape:
    """What a caller may set, out of a document; the rest of it is not looked at.

    Raises:
        ApiError: 400 when a value has the wrong type, 501 for what would have to be obeyed and is not.
    """
    _require_covered(document, kind)
    try:
        return msgspec.convert({name: value for name, value in document.items() if value is not None}, type=kind)
    except msgspec.ValidationError as error:
        raise invalid(f"Invalid value: {error}") from error


def _require_covered(document: Mapping[str, object], kind: type[msgspec.Struct]) -> None:
    whose = "buckets" if kind is BucketSettings else "objects"
    for name in _NOT_COVERED[kind]:
        if document.get(name):
            raise not_covered(f"{name} of {whose}")
    soft = document.get("softDeletePolicy")
    if isinstance(soft, dict) and str(soft.get("retentionDurationSeconds", "0")) != "0":
        raise not_covered(f"softDeletePolicy of {whose}: what is deleted is gone at once")


def merge(current: Shape, change: Mapping[str, object]) -> Shape:
    """What a caller has set before, changed as PATCH does: what is null is taken away, at every depth.

    Raises:
        ApiError: 400 when a value has the wrong type.
    """
    return shape_of(_merge(msgspec.to_builtins(current), change), type(current))


def _merge(current: Mapping[str, object], change: Mapping[str, object]) -> Document:
    merged = dict(current)
    for name, value in change.items():
        before = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = value
    return merged
