"""Masks credentials in what a run tells, at the one place where it leaves the target: before the history, the report, the terminal."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import msgspec

from harness.history import Event, LogLine
from harness.targets.gcp.private_keys import KeyLines
from harness.targets.gcp.secrets import Secrets, redact_document

PAYLOADS = ("textPayload", "jsonPayload")
"""Of a log entry: what its source has written. Source: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry."""

TEXTS = frozenset({"text", "reason", "detail", "evidence"})
"""Fields of events that quote somebody: a job, a platform, a service. All others are numbers, names, places and digests."""

Told = TypeVar("Told", bound=Event)


class Mask:
    """Of one run; what it has masked before decides what a line of a log is."""

    def __init__(self, secrets: Secrets) -> None:
        self._keys = KeyLines(secrets)

    def of(self, events: Iterable[Event]) -> list[Event]:
        """The same events, without credentials in what they quote; in the order in which they are told."""
        return [self._masked(event) for event in events]

    def _masked(self, event: Told) -> Told:
        quoted = {name: value for name in TEXTS if isinstance(value := getattr(event, name, None), str) and value}
        changed = {name: masked for name, value in quoted.items() if (masked := self._keys.redact(_source(event, name), value)) != value}
        if not changed:
            return event
        if isinstance(event, LogLine) and "text" in changed:
            return msgspec.structs.replace(event, **changed, is_masked=True)
        return msgspec.structs.replace(event, **changed)


class EntryMask:
    """Of the entries of one log, as they are written down whole."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets, self._keys = secrets, KeyLines(secrets)

    def line_of(self, source: Hashable, entry: Mapping[str, object]) -> str:
        """The next entry of a source as a line of JSON, without credentials."""
        masked = {name: self._told(source, value) if name in PAYLOADS else value for name, value in entry.items()}
        return self._secrets.redact(msgspec.json.encode(redact_document(masked, self._secrets)).decode())

    def _told(self, source: Hashable, value: object) -> object:
        if isinstance(value, str):
            return self._keys.redact(source, value)
        if isinstance(value, Mapping):
            return {name: self._told(source, inner) for name, inner in value.items()}
        return [self._told(source, inner) for inner in value] if isinstance(value, list | tuple) else value


def _source(event: Event, field: str) -> Hashable:
    """Who tells it, line by line; what an event says by itself has no next line."""
    if isinstance(event, LogLine) and field == "text":
        return event.task, event.attempt, event.stream
    return object()
