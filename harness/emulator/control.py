"""Routes below ``/_emulator/v1/``: what a user says to the emulator itself. They are not journalled, nor hit by faults."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from harness.emulator.control_documents import FaultDocument, Maintenance, ProjectDocument, TokenDocument
from harness.emulator.failures import invalid_argument, not_found
from harness.emulator.run.service import CloudRun
from harness.emulator.service import HttpRequest, HttpResponse, Method, Route
from harness.emulator.world import World

ROOT = "/_emulator/v1"

Document = TypeVar("Document", bound=msgspec.Struct)


class Control:
    """What its user may do to the emulator.

    ``POST maintenance``: the platform takes a task's instance, with SIGTERM, the grace and SIGKILL, as for GPU jobs.
    ``GET|POST|DELETE injections``: faults of the services. ``GET calls``: all calls so far, ``?writes=true`` for those that were to change
    something. ``GET state``: projects, executions and operations. ``POST projects``: permissions and quotas. ``POST tokens``: expiry.
    """

    def __init__(self, world: World, run: CloudRun) -> None:
        self._world, self._run = world, run

    def methods(self) -> Sequence[Method]:
        """Over gRPC there is nothing to say."""
        return ()

    def routes(self) -> Sequence[Route]:
        """See ``Service``."""
        table = (
            ("POST", "maintenance", self._maintain),
            ("GET", "injections", self._tell_injections),
            ("POST", "injections", self._inject),
            ("DELETE", "injections", self._clear_injections),
            ("GET", "calls", self._tell_calls),
            ("GET", "state", self._tell_state),
            ("POST", "projects", self._change_project),
            ("POST", "tokens", self._change_token),
        )
        return [
            Route(verb=verb, pattern=f"{ROOT}/{what}", name=f"emulator.{what}.{verb.lower()}", handle=handle, is_control=True)
            for verb, what, handle in table
        ]

    def close(self) -> None:
        """It has started nothing."""

    def _maintain(self, request: HttpRequest) -> HttpResponse:
        wanted = _decode(request, Maintenance)
        attempt, processes = self._run.maintain(wanted.execution, wanted.task)
        return _answer({"execution": wanted.execution, "task": wanted.task, "attempt": attempt, "processes": processes})

    def _tell_injections(self, request: HttpRequest) -> HttpResponse:
        del request
        return _answer({"injections": [FaultDocument.of(fault, matched) for fault, matched in self._world.injections.all()]})

    def _inject(self, request: HttpRequest) -> HttpResponse:
        document = _decode(request, FaultDocument)
        try:
            self._world.injections.add(document.fault())
        except ValueError as error:
            raise invalid_argument("", str(error)) from error
        return _answer(document)

    def _clear_injections(self, request: HttpRequest) -> HttpResponse:
        del request
        self._world.injections.clear()
        return _answer({})

    def _tell_calls(self, request: HttpRequest) -> HttpResponse:
        calls = self._world.calls.writes() if request.query_value("writes") == "true" else self._world.calls.all()
        return _answer({"calls": calls})

    def _tell_state(self, request: HttpRequest) -> HttpResponse:
        del request
        return _answer(
            {
                "projects": [
                    {
                        "name": project.name,
                        "number": project.number,
                        "granted": None if project.granted is None else sorted(project.granted),
                        "quotas": project.quotas,
                    }
                    for project in self._world.projects
                ],
                "executions": [
                    {
                        "name": str(record.name),
                        "is_over": record.is_over,
                        "tasks": [{"index": task.index, "state": task.state, "attempts": task.attempts} for task in record.tasks],
                    }
                    for record in self._run.executions()
                ],
                "operations": [
                    {"name": operation.name, "family": operation.family, "target": operation.target, "is_done": operation.is_done}
                    for operation in self._world.operations.all()
                ],
            }
        )

    def _change_project(self, request: HttpRequest) -> HttpResponse:
        wanted = _decode(request, ProjectDocument)
        project = self._world.projects.find(wanted.name)
        if project is None:
            raise not_found(f"projects/{wanted.name}")
        if not isinstance(wanted.granted, msgspec.UnsetType):
            project.granted = None if wanted.granted is None else frozenset(wanted.granted)
        if not isinstance(wanted.quotas, msgspec.UnsetType):
            project.quotas = dict(wanted.quotas)
        return _answer({})

    def _change_token(self, request: HttpRequest) -> HttpResponse:
        wanted = _decode(request, TokenDocument)
        (self._world.callers.expire if wanted.expired else self._world.callers.renew)(wanted.token)
        return _answer({})


def _decode(request: HttpRequest, kind: type[Document]) -> Document:
    try:
        return msgspec.json.decode(request.body, type=kind)
    except msgspec.MsgspecError as error:
        raise invalid_argument("", str(error)) from error


def _answer(document: object) -> HttpResponse:
    return HttpResponse(headers={"Content-Type": "application/json"}, body=msgspec.json.encode(document))
