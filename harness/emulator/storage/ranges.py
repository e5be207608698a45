"""Ranges of bytes, in the headers ``Range`` of downloads and ``Content-Range`` of uploads.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/parameters#range, …/docs/performing-resumable-uploads
"""

import re
from dataclasses import dataclass

from harness.emulator.storage.refusals import invalid, range_not_satisfiable

_WANTED = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
_BROUGHT = re.compile(r"bytes (?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19}|\*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a piece of an upload says of itself.

    Attributes:
        first: The place of its first byte; None: it brings no byte and asks what is there.
        last: Of its last byte.
        total: Of the whole object; None: not known yet.
    """

    first: int | None
    last: int | None
    total: int | None


def read_wanted(header: str, size: int) -> tuple[int, int] | None:
    """The first and last byte that a download wants; None when it wants all, or says it in a form that HTTP lets us ignore.

    Raises:
        ApiError: 416 when the object has none of them.
    """
    match = _WANTED.fullmatch(header.replace(" ", ""))
    if match is None or match.groups() == ("", ""):
        return None
    first_text, last_text = match.groups()
    if not first_text:
        first, last = max(0, size - int(last_text)), size - 1
    else:
        first, last = int(first_text), min(int(last_text), size - 1) if last_text else size - 1
        if last_text and int(last_text) < first:
            return None
    if first >= size:
        raise range_not_satisfiable()
    return first, last


def read_brought(header: str) -> Brought:
    """What a piece of an upload brings.

    Raises:
        ApiError: 400 when the header is none.
    """
    match = _BROUGHT.fullmatch(header.strip())
    if match is None:
        raise invalid(f"Failed to parse Content-Range header: '{header[:80]}'")
    first, last, total = match.groups()
    brought = Brought(first=int(first) if first else None, last=int(last) if last else None, total=None if total == "*" else int(total))
    if brought.first is not None and brought.last is not None:
        is_behind = brought.total is not None and brought.last >= brought.total
        if brought.last < brought.first or is_behind:
            raise invalid(f"Invalid Content-Range header: '{header[:80]}'")
    return brought
