"""A page of entries: what a query asks for, and where the next page goes on."""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness.emulator.failures import ApiError, invalid_argument, permission_denied, unimplemented
from harness.emulator.logging.deliveries import Delivery, Key
from harness.emulator.logging.query import Expression, FilterError, find_subjects, find_time_bounds, matches, parse_filter
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.project import Projects, project_of

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 1000
RESOURCES_MAX = 100
"""Source of the three: the comments of ``ListLogEntriesRequest`` in google.logging.v2."""

PAGE_BYTES_MAX = 3 << 20
"""A page of large entries ends before it: a gRPC channel that was told nothing else takes messages of 4 MiB."""

SCANNED_MAX = 50_000
"""Entries looked at for one page. Behind them it ends, even an empty one, with a token: so may Google's, and clients must go on."""

_ORDERS = {"": False, "timestamp": False, "timestamp asc": False, "timestamp desc": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a request for entries asks.

    Attributes:
        resource_names: The parents, like ``projects/P``.
        filter: In the Logging query language.
        order_by: Empty, ``timestamp asc`` or ``timestamp desc``.
        page_size: 0: not said.
        page_token: From the page before; empty for the first.
        is_partial: Whether the page is to end early.
    """

    resource_names: Sequence[str]
    filter: str = ""
    order_by: str = ""
    page_size: int = 0
    page_token: str = ""
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order, and the token of the next page; empty after the last."""

    deliveries: list[Delivery]
    next_page_token: str


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """What a page token holds: of which query it is, and the last entry that was looked at."""

    query: str
    moment_ns: int
    insert_id: str
    number: int


def list_entries(store: LogEntryStore, projects: Projects, query: Query) -> Page:
    """A page.

    Raises:
        ApiError: INVALID_ARGUMENT for a filter, an order, a size or a token that is none; PERMISSION_DENIED for a project not to be read.
    """
    names = readable_projects(projects, query.resource_names)
    expression = read_filter(query.filter)
    if (is_descending := _ORDERS.get(" ".join(query.order_by.split()))) is None:
        raise invalid_argument("order_by", f"{query.order_by[:100]!r} is not supported: 'timestamp asc' or 'timestamp desc'")
    if not 0 <= query.page_size <= PAGE_SIZE_MAX:
        raise invalid_argument("page_size", f"{query.page_size} is not between 0 and {PAGE_SIZE_MAX}")
    size = query.page_size or PAGE_SIZE_DEFAULT
    found = store.scan(
        names, find_time_bounds(expression), after=_place(query), is_descending=is_descending, subjects=find_subjects(expression)
    )
    taken: list[Delivery] = []
    room = PAGE_BYTES_MAX
    for scanned, delivery in enumerate(found, 1):
        if matches(expression, delivery.entry()):
            room -= len(delivery.encoded)
            if len(taken) == size or (taken and room < 0):  # there is one more: only then there is a next page
                return _cut(query, Page(taken, _token(query, taken[-1].key)))
            taken.append(delivery)
        if scanned >= SCANNED_MAX:
            return _cut(query, Page(taken, _token(query, delivery.key)))
    return _cut(query, Page(taken, ""))


def readable_projects(projects: Projects, resource_names: Sequence[str]) -> frozenset[str]:
    """The projects of the parents of a query, by their ids.

    Raises:
        ApiError: When there is none, too many, or one that may not be read.
    """
    if not resource_names:
        raise invalid_argument("resource_names", "at least one is required")
    if len(resource_names) > RESOURCES_MAX:
        raise invalid_argument("resource_names", f"{len(resource_names)} are more than {RESOURCES_MAX}")
    found: set[str] = set()
    for name in resource_names:
        kind, _, rest = name.partition("/")
        if kind in ("organizations", "folders", "billingAccounts"):
            raise permission_denied("logging.logEntries.list", name)
        if kind != "projects" or not rest:
            raise invalid_argument("resource_names", f"{name[:200]!r} is no parent of logs: projects/[PROJECT_ID]")
        if "/" in rest:
            raise unimplemented(f"a view of a log bucket ({name[:200]})")
        state = projects.require("logging.logEntries.list", name)
        found |= {state.name, str(state.number)}
    return frozenset(found)


def read_filter(text: str) -> Expression:
    """The tree of a filter.

    Raises:
        ApiError: INVALID_ARGUMENT with the place when it cannot be read.
    """
    try:
        return parse_filter(text)
    except FilterError as error:
        raise ApiError("INVALID_ARGUMENT", str(error), reason="badRequest") from error


def _cut(query: Query, page: Page) -> Page:
    if not query.is_partial or len(page.deliveries) < 2:
        return page
    kept = page.deliveries[: len(page.deliveries) // 2]
    return Page(kept, _token(query, kept[-1].key))


def _digest(query: Query) -> str:
    asked = "\0".join([*sorted(query.resource_names), query.filter, query.order_by])
    return hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()[:16]


def _token(query: Query, key: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_Place(_digest(query), *key))).decode()


def _place(query: Query) -> Key | None:
    if not query.page_token:
        return None
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(query.page_token.encode()), type=_Place)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise invalid_argument("page_token", "The provided page token is invalid.") from error
    if place.query != _digest(query):
        raise invalid_argument("page_token", "page_token does not match the other fields of the request")
    return place.moment_ns, place.insert_id, place.number


def parent_of(log_name: str) -> str:
    """The parent of a log."""
    return f"projects/{project_of(log_name)}"
