"""One page of a listing: prefixes, delimiters, offsets and page tokens over names in the order of their bytes.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects/list
"""

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.emulator.storage.refusals import invalid

RESULTS_MAX = 1000
"""On a page: Google gives no more, whatever is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What is asked for.

    Attributes:
        prefix: Only names that begin so.
        delimiter: Names with it after the prefix are told as one prefix.
        start_offset: Only names from it on.
        end_offset: Only names before it.
        page_token: Where the last page ended; empty: the first page.
        results_max: Names and prefixes on a page.
        tells_trailing_delimiter: Whether names that end in their only delimiter are told as objects too.
    """

    prefix: str = ""
    delimiter: str = ""
    start_offset: str = ""
    end_offset: str = ""
    page_token: str = ""
    results_max: int = RESULTS_MAX
    tells_trailing_delimiter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page.

    Attributes:
        names: Of objects.
        prefixes: What stands for names that share it.
        next_token: For the rest; empty: there is none.
    """

    names: tuple[str, ...]
    prefixes: tuple[str, ...]
    next_token: str


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    is_prefix: bool

    @property
    def place(self) -> tuple[bytes, bool]:
        return self.text.encode(), self.is_prefix


def list_page(names: Iterable[str], query: ListQuery) -> Page:
    """The page of all ``names`` that a query asks for.

    Raises:
        ApiError: 400 when its token is none of ours or the number of results is none.
    """
    if query.results_max < 1:
        raise invalid(f"Invalid value for maxResults: {query.results_max}")
    after = _read_token(query.page_token)
    entries = {entry for name in names if _is_wanted(name, query) for entry in _entries(name, query)}
    rest = sorted((entry for entry in entries if after is None or entry.place > after), key=lambda entry: entry.place)
    count = min(query.results_max, RESULTS_MAX)
    page = rest[:count]
    return Page(
        names=tuple(entry.text for entry in page if not entry.is_prefix),
        prefixes=tuple(entry.text for entry in page if entry.is_prefix),
        next_token=_write_token(page[-1]) if len(rest) > count else "",
    )


def _is_wanted(name: str, query: ListQuery) -> bool:
    if not name.startswith(query.prefix):
        return False
    place = name.encode()
    return place >= query.start_offset.encode() and not (query.end_offset and place >= query.end_offset.encode())


def _entries(name: str, query: ListQuery) -> Iterator[_Entry]:
    end = name.find(query.delimiter, len(query.prefix)) if query.delimiter else -1
    if end < 0:
        yield _Entry(name, is_prefix=False)
        return
    prefix = name[: end + len(query.delimiter)]
    yield _Entry(prefix, is_prefix=True)
    if prefix == name and query.tells_trailing_delimiter:
        yield _Entry(name, is_prefix=False)


def _write_token(entry: _Entry) -> str:
    return base64.urlsafe_b64encode((b"p" if entry.is_prefix else b"n") + entry.text.encode()).decode()


def _read_token(token: str) -> tuple[bytes, bool] | None:
    if not token:
        return None
    try:
        data = base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if data[:1] not in (b"p", b"n"):
        raise invalid("Invalid pageToken")
    return data[1:], data[:1] == b"p"
