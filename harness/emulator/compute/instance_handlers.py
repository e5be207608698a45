"""Instances: get, list, make, remove, and what is done to them.

Source: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from harness.emulator.compute.handling import PROJECT, ZONE, Premises, host_of, json_response, list_response, page_of_documents
from harness.emulator.compute.instances import Described, Document, Instance
from harness.emulator.compute.places import check_instance_name
from harness.emulator.compute.refusals import invalid_field
from harness.emulator.compute.resources import instance_document
from harness.emulator.operations import Operation
from harness.emulator.service import HttpRequest, HttpResponse, Route

Shape = TypeVar("Shape")

INSTANCES = f"{ZONE}/instances"
INSTANCE = f"{INSTANCES}/{{instance}}"


class SetLabels(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of ``setLabels``."""

    labels: dict[str, str] = {}
    label_fingerprint: str = ""


class TestPermissions(msgspec.Struct, frozen=True, kw_only=True):
    """The body of ``testIamPermissions``."""

    __test__ = False  # no test, whatever its name
    permissions: tuple[str, ...] = ()


class InstanceHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._engine = premises.engine

    def routes(self) -> Sequence[Route]:
        """What is served."""
        engine = self._engine
        acts: tuple[tuple[str, str, Callable[[Instance], Operation]], ...] = (
            ("reset", "compute.instances.reset", engine.reset),
            ("stop", "compute.instances.stop", engine.stop),
            ("simulateMaintenanceEvent", "compute.instances.simulateMaintenanceEvent", engine.simulate_maintenance),
        )
        return (
            Route(verb="GET", pattern=f"{PROJECT}/aggregated/instances", name="compute.instances.aggregatedList", handle=self.aggregate),
            Route(verb="GET", pattern=INSTANCES, name="compute.instances.list", handle=self.list),
            Route(verb="POST", pattern=INSTANCES, name="compute.instances.insert", handle=self.insert, is_write=True),
            Route(verb="GET", pattern=INSTANCE, name="compute.instances.get", handle=self.get),
            Route(verb="DELETE", pattern=INSTANCE, name="compute.instances.delete", handle=self.delete, is_write=True),
            *(
                Route(verb="POST", pattern=f"{INSTANCE}/{verb}", name=name, handle=self._acting(name, act), is_write=True)
                for verb, name, act in acts
            ),
            Route(verb="POST", pattern=f"{INSTANCE}/start", name="compute.instances.start", handle=self.start, is_write=True),
            Route(verb="POST", pattern=f"{INSTANCE}/setLabels", name="compute.instances.setLabels", handle=self.set_labels, is_write=True),
            Route(
                verb="POST",
                pattern=f"{INSTANCE}/testIamPermissions",
                name="compute.instances.testIamPermissions",
                handle=self.test_permissions,
            ),
        )

    def get(self, request: HttpRequest) -> HttpResponse:
        """One instance."""
        return json_response(self._document(self._premises.instance(request, "compute.instances.get"), request))

    def list(self, request: HttpRequest) -> HttpResponse:
        """The instances of a zone."""
        zone = self._premises.zone(request, "compute.instances.list")
        found = [self._document(instance, request) for instance in self._engine.instances if instance.zone == zone]
        return list_response(request, "compute#instanceList", found)

    def aggregate(self, request: HttpRequest) -> HttpResponse:
        """The instances of all zones, by zone."""
        project = self._premises.project(request, "compute.instances.list")
        found = [self._document(instance, request) for instance in self._engine.instances if instance.zone.project == project.name]
        page, token = page_of_documents(request, found)
        by_zone = groupby(page, key=lambda document: "zones/" + str(document["zone"]).rpartition("/")[2])
        items = {zone: {"instances": list(documents)} for zone, documents in by_zone}
        document: Document = {
            "kind": "compute#instanceAggregatedList",
            "id": f"projects/{project.name}/aggregated/instances",
            "items": items,
        }
        return json_response(document | ({"nextPageToken": token} if token else {}))

    def insert(self, request: HttpRequest) -> HttpResponse:
        """Make one."""
        zone = self._premises.zone(request, "compute.instances.create")
        document = _decode(request, Document)
        described = _decode(request, Described)
        check_instance_name(described.name)
        if not described.machine_type:
            raise invalid_field("resource.machineType", "", "The field is required.")
        project = self._premises.project(request, "compute.instances.create")
        return self._premises.operate(request, lambda: self._engine.insert(project, zone, described, document))

    def delete(self, request: HttpRequest) -> HttpResponse:
        """Remove one; a request that comes again is answered although it is gone."""
        self._premises.zone(request, "compute.instances.delete")
        return self._premises.operate(request, lambda: self._engine.delete(self._premises.instance(request, "compute.instances.delete")))

    def start(self, request: HttpRequest) -> HttpResponse:
        """Start one."""
        project = self._premises.project(request, "compute.instances.start")
        instance = self._premises.instance(request, "compute.instances.start")
        return self._premises.operate(request, lambda: self._engine.start(project, instance))

    def set_labels(self, request: HttpRequest) -> HttpResponse:
        """Replace the labels of one."""
        instance = self._premises.instance(request, "compute.instances.setLabels")
        asked = _decode(request, SetLabels)
        return self._premises.operate(request, lambda: self._engine.set_labels(instance, asked.labels, asked.label_fingerprint))

    def test_permissions(self, request: HttpRequest) -> HttpResponse:
        """Those of the named permissions that the caller has; of an instance that is not there it has none (assumed)."""
        state = self._premises.world.projects.find(request.parameters["project"])
        asked = _decode(request, TestPermissions).permissions
        held = [permission for permission in asked if state is not None and state.has(permission)]
        return json_response({"permissions": held} if held else {})

    def _acting(self, permission: str, act: Callable[[Instance], Operation]) -> Callable[[HttpRequest], HttpResponse]:
        def handle(request: HttpRequest) -> HttpResponse:
            instance = self._premises.instance(request, permission)
            return self._premises.operate(request, lambda: act(instance))

        return handle

    def _document(self, instance: Instance, request: HttpRequest) -> Document:
        return instance_document(instance, host_of(request), self._premises.world.clock)


def _decode(request: HttpRequest, kind: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(request.body or b"{}", type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise invalid_field("resource", request.body[:40].decode(errors="replace"), str(error)) from error
