"""Entries of Cloud Logging, made of what an export holds: each once, in the order of time.

Exports hold entries in any order, twice where two pages overlap, and late ones last. Entries of one log with the same timestamp and
``insertId`` are one entry, as Cloud Logging itself has it.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote

import msgspec

from harness.incidents.exports import Document, Malformed, documents_of
from harness.incidents.timestamps import read_timestamp, write_timestamp
from harness.protocol.lines import LOG_LINE_BYTES_MAX

MALFORMED_KEPT_MAX = 100
"""Of those that are told with their place; all are counted."""

TOLD_EVERY = 10_000
"""Parts of an export, read in half a second."""

_DIGITS = re.compile(r"(\d{1,30})", re.ASCII)
_ALIASES = {
    "logName": "log_name",
    "insertId": "insert_id",
    "receiveTimestamp": "receive_timestamp",
    "textPayload": "text_payload",
    "jsonPayload": "json_payload",
    "protoPayload": "proto_payload",
}
"""As the Python client's messages spell what JSON writes in camel case."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A log entry.

    Attributes:
        t_ns: When it happened, nanoseconds since 1970.
        insert_id: Its id within the log; empty where the export has none.
        log: The id of the log: ``run.googleapis.com/stdout``.
        severity: ``DEFAULT`` where it has none.
        text: The line of text, of a structured entry its message; cut to the size that Cloud Logging grants.
        payload: The structured payload; empty where it is text.
        resource_type: Of the monitored resource, like ``cloud_run_job``.
        resource: Its labels.
        labels: The labels of the entry.
    """

    t_ns: int
    insert_id: str = ""
    log: str = ""
    severity: str = "DEFAULT"
    text: str = ""
    payload: dict[str, object] = {}
    resource_type: str = ""
    resource: dict[str, str] = {}
    labels: dict[str, str] = {}

    @property
    def at(self) -> str:
        """Its timestamp."""
        return write_timestamp(self.t_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was read.

    Attributes:
        entries: Each once, by time.
        duplicates: How many more times some of them stood there.
        malformed_count: Parts that are no entries.
        malformed_kinds: The same without those that stand there again, letter by letter.
        malformed: The first of them.
    """

    entries: tuple[Entry, ...]
    duplicates: int = 0
    malformed_count: int = 0
    malformed_kinds: int = 0
    malformed: tuple[Malformed, ...] = ()


def read_export(data: bytes, *, tell: Callable[[int], None] = lambda _count: None) -> Export:
    """The entries of an export; ``tell`` is told now and then how many parts of it were read."""
    return collect(_told(documents_of(data), tell))


def read_values(values: Iterable[dict[str, object]]) -> Export:
    """Entries that come as objects, one by one."""
    return collect(Document(value, f"entry {number}") for number, value in enumerate(values, start=1))


def collect(documents: Iterable[Document | Malformed]) -> Export:
    """Read documents as entries, put them in order, and leave each once."""
    entries: list[Entry] = []
    malformed: list[Malformed] = []
    kinds: set[int] = set()
    count = repeated = 0
    before: dict[str, object] | None = None
    for document in documents:
        if isinstance(document, Document) and document.value is before:
            repeated += 1
            continue
        found = document if isinstance(document, Malformed) else _read(document)
        before = document.value if isinstance(document, Document) and isinstance(found, Entry) else None
        if isinstance(found, Entry):
            entries.append(found)
            continue
        count += 1
        kinds.add(hash(repr(document.value) if isinstance(document, Document) else (found.problem, found.sample)))
        if len(malformed) < MALFORMED_KEPT_MAX:
            malformed.append(found)
    once = list(_once(sorted(entries, key=lambda entry: (order_of(entry), repr(entry)))))
    return Export(
        entries=tuple(once),
        duplicates=len(entries) - len(once) + repeated,
        malformed_count=count,
        malformed_kinds=len(kinds),
        malformed=tuple(malformed),
    )


def _told(documents: Iterable[Document | Malformed], tell: Callable[[int], None]) -> Iterator[Document | Malformed]:
    for number, document in enumerate(documents, start=1):
        if number % TOLD_EVERY == 0:
            tell(number)
        yield document


def _read(document: Document) -> Entry | Malformed:
    try:
        return read_entry(document.value)
    except ValueError as error:
        return Malformed(place=document.place, problem=str(error), sample=_text(document.value.get("insertId"))[:100])


def read_entry(document: Mapping[str, object]) -> Entry:
    """An entry, as JSON has it; fields of another type than theirs are as if they were not there.

    Raises:
        ValueError: When nothing tells when it happened: then it can be placed nowhere.
    """
    resource = _mapping(document.get("resource"))
    structured = _field(document, "jsonPayload")
    if not isinstance(structured, Mapping):
        structured = _field(document, "protoPayload")
    payload = _mapping(structured)
    text = _field(document, "textPayload")
    return Entry(
        t_ns=_moment(document),
        insert_id=_text(_field(document, "insertId")),
        log=_log_id(_text(_field(document, "logName"))),
        severity=_text(document.get("severity")) or "DEFAULT",
        text=(text if isinstance(text, str) else _message(payload))[:LOG_LINE_BYTES_MAX],
        payload=payload,
        resource_type=_text(resource.get("type")),
        resource=_texts(resource.get("labels")),
        labels=_texts(document.get("labels")),
    )


def _field(document: Mapping[str, object], name: str) -> object:
    return document.get(name, document.get(_ALIASES[name]))


def _moment(document: Mapping[str, object]) -> int:
    """When it happened; where that cannot be read, when it was received."""
    problem = "it has no timestamp"
    for value in (document.get("timestamp"), _field(document, "receiveTimestamp")):
        if isinstance(value, str):
            try:
                return read_timestamp(value)
            except ValueError as error:
                problem = str(error)
    raise ValueError(problem)


def _log_id(name: str) -> str:
    """``projects/p/logs/run.googleapis.com%2Fstdout`` is log ``run.googleapis.com/stdout``."""
    return unquote(name.partition("/logs/")[2] or name)


def _message(payload: Mapping[str, object]) -> str:
    """What a person reads of a structured entry: its message, of an audit entry its status, else all of it."""
    for value in (payload.get("message"), payload.get("MESSAGE"), _mapping(payload.get("status")).get("message")):
        if isinstance(value, str) and value:
            return value
    return msgspec.json.encode(payload).decode() if payload and "@type" not in payload else _text(payload.get("methodName"))


def _mapping(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> dict[str, str]:
    return {name: _text(each) for name, each in _mapping(value).items() if isinstance(each, str | int)}


def _text(value: object) -> str:
    """A text; a number in its place, as some exporters write it, is its digits."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def order_of(entry: Entry) -> tuple[object, ...]:
    """By time; at one moment by id, numbers in it by their value; then by content, so that the order in the file never counts."""
    parts = _DIGITS.split(entry.insert_id)
    natural = tuple((index % 2, int(part) if index % 2 else part) for index, part in enumerate(parts))
    return entry.t_ns, natural, entry.log, entry.text


def _once(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Each once. Without an id only what is equal in everything is the same."""
    known: set[tuple[object, ...]] = set()
    for entry in entries:
        key = (entry.t_ns, entry.log, entry.insert_id) if entry.insert_id else (entry.t_ns, repr(entry))
        if key not in known:
            known.add(key)
            yield entry
