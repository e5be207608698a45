"""Cloud Logging v2 on both wires."""

from collections.abc import Iterator, Sequence
from typing import Any

from google.cloud.logging_v2.types import (
    DeleteLogRequest,
    ListLogEntriesRequest,
    ListLogEntriesResponse,
    ListLogsRequest,
    ListLogsResponse,
    TailLogEntriesRequest,
    TailLogEntriesResponse,
    WriteLogEntriesRequest,
    WriteLogEntriesResponse,
)
from google.protobuf import empty_pb2, json_format

from harness.emulator.failures import ApiError, not_found
from harness.emulator.logging.admission import Defaults, admit
from harness.emulator.logging.listing import Page, Query, list_entries, parent_of, readable_projects
from harness.emulator.logging.messages import to_message
from harness.emulator.logging.routes import make_routes
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.logging.tailing import tail
from harness.emulator.pages import page_of
from harness.emulator.service import CallContext, Method, Route
from harness.emulator.world import World

LOGS_SIZE_MAX = 1000
_PREFIX = "/google.logging.v2.LoggingServiceV2/"


class LoggingService:
    """Cloud Logging v2.

    Not emulated: the errors of single entries in ``WriteLogEntriesPartialErrors``; the first of them is the answer.

    Args:
        world: What the services share.
        store: Where entries are: the same as ``world.log``.
    """

    def __init__(self, world: World, store: LogEntryStore) -> None:
        self._world = world
        self._store = store

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        return [
            Method(
                name=f"{_PREFIX}WriteLogEntries",
                request=WriteLogEntriesRequest,
                handle=self._write,
                is_write=True,
                resource=lambda request: str(request.log_name or next((entry.log_name for entry in request.entries), "")),
            ),
            Method(
                name=f"{_PREFIX}ListLogEntries",
                request=ListLogEntriesRequest,
                handle=self._list,
                resource=lambda request: ",".join(request.resource_names),
            ),
            Method(
                name=f"{_PREFIX}ListLogs",
                request=ListLogsRequest,
                handle=self._list_logs,
                resource=lambda request: str(request.parent),
            ),
            Method(
                name=f"{_PREFIX}DeleteLog",
                request=DeleteLogRequest,
                handle=self._delete_log,
                is_write=True,
                resource=lambda request: str(request.log_name),
            ),
            Method(name=f"{_PREFIX}TailLogEntries", request=TailLogEntriesRequest, handle=self._tail, streams=True),
        ]

    def routes(self) -> Sequence[Route]:
        """See ``Service``."""
        return make_routes(self)

    def close(self) -> None:
        """See ``Service``; followers end when the emulator closes."""

    def write(self, request: WriteLogEntriesRequest) -> None:
        """Write entries: all, or with ``partial_success`` those that can be.

        Raises:
            ApiError: That of the first entry which cannot be written.
        """
        plain: Any = WriteLogEntriesRequest.pb(request)
        resource = json_format.MessageToDict(plain.resource) if plain.HasField("resource") else {}
        defaults = Defaults(log_name=plain.log_name, resource=resource, labels=dict(plain.labels))
        entries, refused = admit(plain.entries, defaults, self._world.projects)
        if (not refused or plain.partial_success) and not plain.dry_run:
            self._store.append(entries)
        for error in refused.values():
            raise error

    def list_page(self, request: ListLogEntriesRequest, *, is_partial: bool) -> Page:
        """A page of entries.

        Raises:
            ApiError: See ``list_entries``.
        """
        query = Query(
            resource_names=tuple(request.resource_names),
            filter=request.filter,
            order_by=request.order_by,
            page_size=request.page_size,
            page_token=request.page_token,
            is_partial=is_partial,
        )
        return list_entries(self._store, self._world.projects, query)

    def list_log_names(self, request: ListLogsRequest, *, is_partial: bool) -> tuple[list[str], str]:
        """A page of the names of logs that have entries.

        Raises:
            ApiError: See ``readable_projects`` and ``page_of``.
        """
        parents = [name for name in (request.parent, *request.resource_names) if name]
        names = {log for project in readable_projects(self._world.projects, parents) for log in self._store.log_names(project)}
        size = max(request.page_size, 0)  # "Non-positive values are ignored"
        return page_of(
            sorted(names), key=str, size=size, token=request.page_token, size_max=LOGS_SIZE_MAX, size_default=50, is_partial=is_partial
        )

    def delete(self, log_name: str) -> None:
        """Delete all entries of a log.

        Raises:
            ApiError: NOT_FOUND when it has none.
        """
        self._world.projects.require("logging.logs.delete", parent_of(log_name))
        if not self._store.delete_log(log_name):
            error: ApiError = not_found(log_name)
            raise error

    def _write(self, request: WriteLogEntriesRequest, context: CallContext) -> WriteLogEntriesResponse:  # noqa: ARG002
        self.write(request)
        return WriteLogEntriesResponse()

    def _list(self, request: ListLogEntriesRequest, context: CallContext) -> ListLogEntriesResponse:
        page = self.list_page(request, is_partial=context.is_partial)
        response = ListLogEntriesResponse(next_page_token=page.next_page_token)
        plain: Any = ListLogEntriesResponse.pb(response)
        plain.entries.extend(to_message(delivery.entry()) for delivery in page.deliveries)
        return response

    def _list_logs(self, request: ListLogsRequest, context: CallContext) -> ListLogsResponse:
        names, token = self.list_log_names(request, is_partial=context.is_partial)
        return ListLogsResponse(log_names=names, next_page_token=token)

    def _delete_log(self, request: DeleteLogRequest, context: CallContext) -> Any:  # noqa: ARG002
        self.delete(request.log_name)
        return empty_pb2.Empty()

    def _tail(self, requests: Iterator[TailLogEntriesRequest], context: CallContext) -> Iterator[TailLogEntriesResponse]:
        return tail(self._world, self._store, requests, context)
