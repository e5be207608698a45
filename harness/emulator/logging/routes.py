"""Cloud Logging v2 over REST, as ``google.cloud.logging.Client`` speaks it without gRPC.

Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest
"""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec
from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogsRequest, WriteLogEntriesRequest

from harness.emulator.failures import invalid_argument
from harness.emulator.logging.listing import Page
from harness.emulator.logging.messages import parse_request
from harness.emulator.service import HttpRequest, HttpResponse, Route

_JSON = {"Content-Type": "application/json; charset=UTF-8"}


class LogCalls(Protocol):
    """What the service does, whatever the wire."""

    def write(self, request: WriteLogEntriesRequest) -> None:
        """Write entries."""
        ...

    def list_page(self, request: ListLogEntriesRequest, *, is_partial: bool) -> Page:
        """A page of entries."""
        ...

    def list_log_names(self, request: ListLogsRequest, *, is_partial: bool) -> tuple[list[str], str]:
        """A page of names."""
        ...

    def delete(self, log_name: str) -> None:
        """Delete a log."""
        ...


def make_routes(service: LogCalls) -> Sequence[Route]:
    """The routes of the service."""

    def write(request: HttpRequest) -> HttpResponse:
        service.write(parse_request(WriteLogEntriesRequest, request.body))
        return _answer({})

    def list_entries(request: HttpRequest) -> HttpResponse:
        page = service.list_page(parse_request(ListLogEntriesRequest, request.body), is_partial=request.context.is_partial)
        return _answer(_without_empty({"entries": [msgspec.Raw(found.encoded) for found in page.deliveries]}, page.next_page_token))

    def list_logs(request: HttpRequest) -> HttpResponse:
        asked = ListLogsRequest(
            parent=f"projects/{request.parameters['project']}",
            resource_names=list(request.query.get("resourceNames", ())),
            page_size=_number(request.query_value("pageSize", "0")),
            page_token=request.query_value("pageToken"),
        )
        names, token = service.list_log_names(asked, is_partial=request.context.is_partial)
        return _answer(_without_empty({"logNames": names}, token))

    def delete_log(request: HttpRequest) -> HttpResponse:
        service.delete(f"projects/{request.parameters['project']}/logs/{quote(request.parameters['log'], safe='')}")
        return _answer({})

    return [
        Route(verb="POST", pattern="/v2/entries:write", name="logging.entries.write", handle=write, is_write=True),
        Route(verb="POST", pattern="/v2/entries:list", name="logging.entries.list", handle=list_entries),
        Route(verb="GET", pattern="/v2/projects/{project}/logs", name="logging.logs.list", handle=list_logs),
        Route(verb="DELETE", pattern="/v2/projects/{project}/logs/{log}", name="logging.logs.delete", handle=delete_log, is_write=True),
    ]


def _answer(body: dict[str, object]) -> HttpResponse:
    return HttpResponse(headers=_JSON, body=msgspec.json.encode(body))


def _without_empty(body: dict[str, object], next_page_token: str) -> dict[str, object]:
    """JSON of a message leaves out what is empty."""
    return {name: value for name, value in {**body, "nextPageToken": next_page_token}.items() if value}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise invalid_argument("pageSize", f"{text[:100]!r} is no number") from error
