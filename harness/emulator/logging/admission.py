"""Which entries of a request are let in, and why others are not."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from harness.emulator.failures import ApiError, invalid_argument, permission_denied
from harness.emulator.logging.messages import to_entry
from harness.emulator.project import Projects, project_of

ENTRY_BYTES_MAX = 256 << 10
"""Source: https://docs.cloud.google.com/logging/quotas ("Size of a LogEntry")"""

_LOG_NAME = re.compile(r"projects/[^/]+/logs/([^/]+)")
_LOG_ID = re.compile(r"[A-Za-z0-9/_.-]{1,511}")
_OTHER_PARENT = re.compile(r"(?:organizations|folders|billingAccounts)/[^/]+/logs/.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a request gives to entries that do not say.

    Attributes:
        log_name: Their log; empty: none.
        resource: In its JSON form; empty: none.
        labels: Added to those of each entry, which win.
    """

    log_name: str = ""
    resource: Mapping[str, Any]
    labels: Mapping[str, str]


def admit(messages: Sequence[Any], defaults: Defaults, projects: Projects) -> tuple[list[dict[str, Any]], dict[int, ApiError]]:
    """The entries that are let in, in their JSON form, and the errors of the others by their place in the request."""
    admitted: list[dict[str, Any]] = []
    refused: dict[int, ApiError] = {}
    for place, message in enumerate(messages):
        try:
            admitted.append(_admit(message, defaults, projects))
        except ApiError as error:
            refused[place] = error
    return admitted, refused


def _admit(message: Any, defaults: Defaults, projects: Projects) -> dict[str, Any]:
    size = message.ByteSize()
    if size > ENTRY_BYTES_MAX:
        raise invalid_argument("", f"Log entry with size {_told(size)} exceeds maximum size of {_told(ENTRY_BYTES_MAX)}")
    entry = to_entry(message)
    log_name = entry.setdefault("logName", defaults.log_name)
    _check_log_name(log_name)
    projects.require("logging.logEntries.create", f"projects/{project_of(log_name)}")
    if "resource" not in entry and not defaults.resource:
        raise invalid_argument("", "Log entry has no resource: give one to the entry or to the request")  # its words are assumed
    entry.setdefault("resource", dict(defaults.resource))
    if labels := {**defaults.labels, **entry.get("labels", {})}:
        entry["labels"] = labels
    return entry


def _check_log_name(log_name: str) -> None:
    if _OTHER_PARENT.fullmatch(log_name):
        raise permission_denied("logging.logEntries.create", log_name.partition("/logs/")[0])
    found = _LOG_NAME.fullmatch(log_name)
    if found is None or not _LOG_ID.fullmatch(unquote(found[1])):
        raise invalid_argument("log_name", f"{log_name[:200]!r} is no name of a log: projects/[PROJECT_ID]/logs/[LOG_ID]")


def _told(size: int) -> str:
    """A size in Google's form: ``549.3K``, ``6.23M``. Source: messages quoted in public issues."""
    return f"{size / 1024:.1f}K" if size < 1 << 20 else f"{size / (1 << 20):.2f}M"
