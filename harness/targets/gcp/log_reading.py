"""The log of an execution: entries of Cloud Logging as lines of the history, and pages of them.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry, https://docs.cloud.google.com/run/docs/logging
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import quote, unquote

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.lines import LOG_LINE_BYTES_MAX
from harness.targets.gcp.calling import CALL_DEADLINE_S, Caller, Page, Request
from harness.targets.gcp.failures import Failure, InvalidCallError, PagesError

if TYPE_CHECKING:
    from google.cloud.logging_v2 import types as logging_types

    from harness.targets.gcp.connection import Clients

SERVICE = "logging.googleapis.com"

EXECUTION_LABEL = "run.googleapis.com/execution_name"
TASK_LABEL = "run.googleapis.com/task_index"
ATTEMPT_LABEL = "run.googleapis.com/task_attempt"
PLAYED_LABEL = "harness/played"
"""On lines that the harness itself writes in the platform's place, with what it plays."""

PLAYED_LOG = "harness"
"""The log that such lines stand in."""

PAGE_ENTRIES = 1000
"""Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list (page size)."""

LIVE_ENTRIES_MAX = 200_000
"""Of an execution whose log is read for an incident: at 40 pages a minute that takes five minutes."""

RESTARTS_MAX = 3
"""A token that is refused again and again before anything more was read is no token that has expired."""

Stream = Literal["stdout", "stderr", "system", "audit"]

Document = dict[str, object]

Fetch = Callable[[str, str, float], Page[Document]]
"""One page of entries, by query and token, and the seconds that it may last."""

_STREAMS: Mapping[str, Stream] = {
    "run.googleapis.com/stdout": "stdout",
    "run.googleapis.com/stderr": "stderr",
    "run.googleapis.com/varlog/system": "system",
    "run.googleapis.com//var/log/system": "system",
    "run.googleapis.com/var/log/system": "system",
    "cloudaudit.googleapis.com/system_event": "audit",
}
"""The platform's own log has had more than one name. Source: public exports of Cloud Run job logs."""

EMULATOR_LOG, LOST_LABEL = "harness-emulator", "harness/lost"
"""Where an emulator says that entries of an execution are lost, and the label that says how many."""

_QUIET_LOGS = (*(name for name, stream in _STREAMS.items() if stream in ("system", "audit")), PLAYED_LOG, EMULATOR_LOG)
"""Logs that jobs do not write to, and which stay short whatever they print. Nothing keeps a job from it whose account may write logs
(``logging.logEntries.create``): the name of a log is the writer's to choose, its labels too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySeen:
    """An entry, as a line.

    Attributes:
        key: Whose line it is; task 0, attempt 0 where it is of the execution as a whole.
        stream: Where it stood.
        text: What it says.
        at: Its own time, by Google's clock; None where it has none that can be read.
        severity, reason: As it says.
        is_played: Whether the harness wrote it in the platform's place.
        was_cut: Whether it was longer than a line may be.
        lost_count: How many entries it says are lost.
    """

    key: AttemptKey
    stream: Stream
    text: str
    at: datetime | None = None
    severity: str = "DEFAULT"
    reason: str = ""
    is_played: bool = False
    was_cut: bool = False
    lost_count: int = 0


class LongLogError(BrokenHarnessError):
    """A log is longer than what is read of it."""

    def __init__(self, entries_max: int) -> None:
        super().__init__(
            f"the execution has more than {entries_max} log entries, which is what is read of one; export the part that matters, with "
            "`gcloud logging read`, and give the file"
        )


def filter_for(project: str, execution: str, *, since: datetime | None = None, is_quiet: bool = False) -> str:
    """The query for an execution's entries: by its own name, for another execution of the job has the same job name.

    With ``is_quiet`` those of logs that jobs do not write to.
    """
    parts = [f'labels."{EXECUTION_LABEL}"="{execution}"']
    audited = f'protoPayload.resourceName="namespaces/{project}/executions/{execution}"'
    query = f"({parts[0]} OR {audited})"
    if is_quiet:
        names = " OR ".join(f'logName="projects/{project}/logs/{quote(log, safe="")}"' for log in _QUIET_LOGS)
        query = f"{query} AND ({names})"
    return query if since is None else f'{query} AND timestamp>="{since.astimezone(UTC).isoformat().replace("+00:00", "Z")}"'


def read_entry(entry: Mapping[str, object]) -> EntrySeen | None:
    """An entry in its JSON shape as a line; None where it is of no log that is known here."""
    labels = _mapping(entry.get("labels"))
    log = log_of(entry)
    is_played = log == PLAYED_LOG and PLAYED_LABEL in labels
    stream: Stream | None = "system" if is_played or log == EMULATOR_LOG else _STREAMS.get(log)
    if stream is None:
        return None
    text, was_cut = _cut(_text_of(entry))
    return EntrySeen(
        key=AttemptKey(_index(labels.get(TASK_LABEL)), _index(labels.get(ATTEMPT_LABEL))),
        stream=stream,
        text=text,
        at=read_time(str(entry.get("timestamp", ""))),
        severity=str(entry.get("severity", "DEFAULT")),
        reason=str(labels.get("reason", "")),
        is_played=is_played,
        was_cut=was_cut,
        lost_count=_count(labels.get(LOST_LABEL)) if log == EMULATOR_LOG else 0,
    )


def is_quiet(entry: Mapping[str, object]) -> bool:
    """Whether it stands in a log that jobs do not write to."""
    return log_of(entry) in _QUIET_LOGS


def log_of(entry: Mapping[str, object]) -> str:
    """The name of the log that an entry stands in, however it is escaped."""
    return unquote(str(entry.get("logName", "")).partition("/logs/")[2])


def read_time(text: str) -> datetime | None:
    """A time of Google's: nine digits of a second, or none."""
    whole, dot, fraction = text.rstrip("Z").partition(".")
    try:
        return datetime.fromisoformat(f"{whole}.{fraction[:6].ljust(6, '0')}" if dot else whole).replace(tzinfo=UTC)
    except ValueError:
        return None


class Reading:
    """One reading of what a query finds, in the order of the times, page by page, for as long as that takes.

    A token that is not taken any more, as one that has expired while nobody read on, is no end: the reading goes on from the last moment
    that it has reached, whose entries come again.

    Args:
        fetch: Gets pages.
        query_from: The query for what is there from a moment on; None: from the beginning.
        since: That moment.

    Attributes:
        is_over: Whether the last page was read.
    """

    def __init__(self, fetch: Fetch, query_from: Callable[[datetime | None], str], since: datetime | None = None) -> None:
        self._fetch, self._query_from = fetch, query_from
        self._reached = since
        self._restarts = 0
        self.is_over = False
        self._query, self._token, self._seen = query_from(since), "", {""}

    def next_page(self, deadline_s: float = CALL_DEADLINE_S) -> Sequence[Document]:
        """The entries of the next page; one that could not be had is the next one again.

        Raises:
            PagesError: When a token comes twice.
            CallError: When it cannot be had.
        """
        try:
            page = self._fetch(self._query, self._token, deadline_s)
        except InvalidCallError:
            if not self._token or self._restarts >= RESTARTS_MAX:
                raise
            self._restarts += 1
            self._query, self._token, self._seen = self._query_from(self._reached), "", {""}
            return self.next_page(deadline_s)
        if page.token in self._seen and page.token:
            failure = Failure(code="INTERNAL", message=f"the page after {len(self._seen)} pages is one that was there before")
            raise PagesError(service=SERVICE, method="entries.list", resource=self._query, failure=failure)
        self._seen.add(page.token)
        self._token, self.is_over = page.token, not page.token
        self._note(page.items)
        return page.items

    def _note(self, entries: Sequence[Document]) -> None:
        times = [at for entry in entries if (at := read_time(str(entry.get("timestamp", "")))) is not None]
        newest = max(times, default=self._reached)
        if newest is not None and (self._reached is None or newest > self._reached):
            self._reached, self._restarts = newest, 0


def entry_pages(clients: "Clients", caller: Caller, project: str) -> Fetch:
    """Pages of a project's entries in the order of their times, in their JSON shape."""

    def fetch(query: str, token: str, deadline_s: float) -> Page[Document]:
        from google.cloud.logging_v2 import types

        asked = types.ListLogEntriesRequest(
            resource_names=[f"projects/{project}"], filter=query, order_by="timestamp asc", page_size=PAGE_ENTRIES, page_token=token
        )

        def send(timeout_s: float) -> Page[Document]:
            page = next(clients.logging.list_log_entries(request=asked, timeout=timeout_s, retry=None).pages)
            return Page(items=[entry_dict(entry) for entry in page.entries], token=page.next_page_token)

        return caller.call(Request(service=SERVICE, method="entries.list", resource=f"projects/{project}"), send, deadline_s=deadline_s)

    return fetch


def list_entries(fetch: Fetch, query_from: Callable[[datetime | None], str], *, entries_max: int = LIVE_ENTRIES_MAX) -> Iterator[Document]:
    """The entries that a query finds, however many pages that takes; some may come again.

    Raises:
        LongLogError: When there are more than ``entries_max``.
        CallError: When they cannot be had.
    """
    reading = Reading(fetch, query_from)
    count = 0
    while not reading.is_over:
        page = reading.next_page()
        count += len(page)
        if count > entries_max:
            raise LongLogError(entries_max)
        yield from page


def entry_dict(message: "logging_types.LogEntry") -> dict[str, object]:
    """An entry as the JSON that an export holds; an audit entry's payload need not be known to this interpreter's descriptors."""
    from google.cloud.audit import audit_log_pb2  # type: ignore[import-untyped]  # noqa: F401  JSON of an audit entry needs its descriptor
    from google.cloud.logging_v2 import types
    from google.protobuf import json_format

    try:
        return cast("dict[str, object]", json_format.MessageToDict(types.LogEntry.pb(message)))
    except TypeError:  # a payload of a type that is not known here
        shown = types.LogEntry.pb(message)
        payload = shown.proto_payload.type_url
        shown.ClearField("proto_payload")
        return {**cast("dict[str, object]", json_format.MessageToDict(shown)), "protoPayload": {"@type": payload}}


def live_entries(*, project: str, execution: str) -> Iterator[dict[str, object]]:
    """All entries of an execution, in their JSON shape: for incidents that are looked into while the log is still there.

    Raises:
        TargetUnavailableError: When there are no clients or no credentials.
        LongLogError: When it is too long.
        CallError: When the log cannot be read.
    """
    import os

    from harness.clock import SystemClock
    from harness.targets.gcp.connection import connect
    from harness.targets.gcp.secrets import Secrets

    clock: Clock = SystemClock()
    secrets = Secrets()
    clients = connect(project, os.environ, secrets)
    try:
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        name = execution.rpartition("/")[2]
        yield from list_entries(entry_pages(clients, caller, project), lambda since: filter_for(project, name, since=since))
    finally:
        clients.close()


def _text_of(entry: Mapping[str, object]) -> str:
    if isinstance(entry.get("textPayload"), str):
        return str(entry["textPayload"]).removesuffix("\n")
    if isinstance(entry.get("jsonPayload"), Mapping):
        return json.dumps(entry["jsonPayload"], separators=(",", ":"), ensure_ascii=False)
    status = _mapping(_mapping(entry.get("protoPayload")).get("status"))
    return str(status.get("message", ""))


def _cut(text: str) -> tuple[str, bool]:
    data = text.encode("utf-8", "replace")
    if len(data) <= LOG_LINE_BYTES_MAX:
        return text, False
    return data[:LOG_LINE_BYTES_MAX].decode("utf-8", "ignore"), True


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _index(value: object) -> int:
    return _count(value, digits_max=6)


def _count(value: object, *, digits_max: int = 12) -> int:
    text = str(value) if value is not None else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits_max else 0
