"""What all handlers of Compute Engine share: permissions, places, pages, and requests that come twice."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.emulator.compute.engine import Engine
from harness.emulator.compute.filters import read_filter
from harness.emulator.compute.instances import Instance
from harness.emulator.compute.places import Zone, check_zone
from harness.emulator.compute.refusals import invalid_field, permission_required
from harness.emulator.compute.resources import Document, operation_document
from harness.emulator.operations import Operation
from harness.emulator.pages import page_of
from harness.emulator.project import ProjectState
from harness.emulator.service import HttpRequest, HttpResponse
from harness.emulator.world import World

RESULTS_MAX = 500
"""On a page."""

PROJECT = "/compute/v1/projects/{project}"
ZONE = f"{PROJECT}/zones/{{zone}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """Where handlers work."""

    world: World
    engine: Engine
    repeated: dict[tuple[str, str], Operation] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def project(self, request: HttpRequest, permission: str) -> ProjectState:
        """The project of a request, for a caller with a permission in it.

        Raises:
            ApiError: PERMISSION_DENIED.
        """
        name = request.parameters["project"]
        project = self.world.projects.find(name)
        if project is None or not project.has(permission):
            raise permission_required(permission, request.path.removeprefix("/compute/v1/"))
        return project

    def zone(self, request: HttpRequest, permission: str) -> Zone:
        """The zone of a request, likewise.

        Raises:
            ApiError: PERMISSION_DENIED, INVALID_ARGUMENT.
        """
        project = self.project(request, permission)
        check_zone(request.parameters["zone"])
        return Zone(project=project.name, name=request.parameters["zone"])

    def instance(self, request: HttpRequest, permission: str) -> Instance:
        """The instance of a request, likewise.

        Raises:
            ApiError: PERMISSION_DENIED, INVALID_ARGUMENT, NOT_FOUND.
        """
        return self.engine.instances.get(self.zone(request, permission), request.parameters["instance"])

    def operate(self, request: HttpRequest, act: Callable[[], Operation]) -> HttpResponse:
        """Do something once, also when the same ``requestId`` comes again; answer with its operation."""
        identifier = request.query_value("requestId")
        key = (request.path, identifier)
        with self.lock:
            operation = self.repeated.get(key) if identifier else None
            if operation is None:
                operation = act()
                if identifier:
                    self.repeated[key] = operation
        return json_response(operation_document(operation, host_of(request)))


def host_of(request: HttpRequest) -> str:
    """Where the caller reaches us."""
    return request.headers.get("host", "")


def json_response(document: Mapping[str, object]) -> HttpResponse:
    """An answer with a document."""
    return HttpResponse(headers={"Content-Type": "application/json; charset=UTF-8"}, body=msgspec.json.encode(document))


def list_response(request: HttpRequest, kind: str, documents: Sequence[Document]) -> HttpResponse:
    """One page of a list, filtered as the request wants it.

    Raises:
        ApiError: INVALID_ARGUMENT for a filter, size or token that cannot be.
    """
    page, token = page_of_documents(request, documents)
    return json_response(
        {"kind": kind, "id": request.path.removeprefix("/compute/v1/")} | _filled("items", page) | _filled("nextPageToken", token)
    )


def page_of_documents(request: HttpRequest, documents: Sequence[Document]) -> tuple[Sequence[Document], str]:
    """The documents of one page, and the token of the next.

    Raises:
        ApiError: As ``list_response``.
    """
    conditions = read_filter(request.query_value("filter"))
    size = request.query_value("maxResults", "0")
    if not (size.isascii() and size.isdecimal()) or len(size) > 9:
        raise invalid_field("maxResults", size[:20], "Must be a whole number")
    return page_of(
        [document for document in documents if all(condition.holds(document) for condition in conditions)],
        key=lambda document: str(document["selfLink"]),
        size=int(size),
        token=request.query_value("pageToken"),
        size_max=RESULTS_MAX,
    )


def _filled(name: str, value: object) -> Document:
    return {name: value} if value else {}
