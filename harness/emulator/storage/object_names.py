"""Names of buckets and objects: which Google refuses, and which no file below a directory can have.

Source: https://docs.cloud.google.com/storage/docs/objects#naming, https://docs.cloud.google.com/storage/docs/buckets#naming
"""

import re

from harness.emulator.failures import ApiError
from harness.emulator.storage.refusals import invalid

NAME_BYTES_MAX = 1024
"""Of an object's name in UTF-8."""

SEGMENT_BYTES_MAX = 255
"""Of one name in a directory: Linux's limit, not Google's."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")


def check_bucket_name(name: str) -> None:
    """Refuse a name that no bucket has; what passes is a plain name of a directory.

    Raises:
        ApiError: 400.
    """
    if not _BUCKET.fullmatch(name) or ".." in name or "google" in name:
        raise invalid(f"Invalid bucket name: '{name}'")


def split_name(name: str) -> tuple[str, ...]:
    """The names of directories and, last, of the file that an object is; last is empty for a folder's placeholder (``a/``).

    Raises:
        ApiError: 400, when Google has no such object, or when no file could be it.
    """
    if not name:
        raise invalid("Invalid object name")
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise invalid("Invalid object name: not valid UTF-8") from None
    if len(encoded) > NAME_BYTES_MAX or name in (".", "..") or "\r" in name or "\n" in name:
        raise invalid(f"Invalid object name: '{name[:80]}'")
    segments = tuple(name.split("/"))
    problem = _problem(segments)
    if problem:
        raise unstorable(name, problem)
    return segments


def unstorable(name: str, problem: str) -> ApiError:
    """Google has such objects, but here objects are files."""
    return invalid(f"the emulator keeps objects as files and cannot keep '{name[:80]}': {problem}; use another name")


def is_storable(name: str) -> bool:
    """Whether ``split_name`` takes it."""
    try:
        split_name(name)
    except ApiError:
        return False
    return True


def _problem(segments: tuple[str, ...]) -> str:
    if "\0" in "".join(segments):
        return "a NUL is in it"
    for number, segment in enumerate(segments):
        is_folder_mark = not segment and 0 < number == len(segments) - 1
        if not segment and not is_folder_mark:
            return "an empty part is between two slashes or before the first"
        if segment in (".", ".."):
            return f"'{segment}' is a part of it"
        if len(segment.encode()) > SEGMENT_BYTES_MAX:
            return f"a part of it is longer than {SEGMENT_BYTES_MAX} bytes"
    return ""
