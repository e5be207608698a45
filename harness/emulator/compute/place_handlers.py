"""Operations of zones, and the projects, regions and zones that have quotas and instances.

Source: https://docs.cloud.google.com/compute/docs/reference/rest/v1/zoneOperations, …/regions, …/projects
"""

from collections.abc import Sequence

from harness.emulator.compute.handling import PROJECT, ZONE, Premises, host_of, json_response, list_response
from harness.emulator.compute.places import address, check_region
from harness.emulator.compute.quotas import quota_documents, used_in
from harness.emulator.compute.refusals import not_found
from harness.emulator.compute.resources import operation_document
from harness.emulator.operations import Operation
from harness.emulator.service import HttpRequest, HttpResponse, Route

WAIT_S_MAX = 120.0
"""Of one ``wait``: Google answers after at most two minutes, done or not."""

OPERATIONS = f"{ZONE}/operations"


class PlaceHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises

    def routes(self) -> Sequence[Route]:
        """What is served."""
        return (
            Route(verb="GET", pattern=OPERATIONS, name="compute.zoneOperations.list", handle=self.list_operations),
            Route(verb="GET", pattern=f"{OPERATIONS}/{{operation}}", name="compute.zoneOperations.get", handle=self.get_operation),
            Route(verb="POST", pattern=f"{OPERATIONS}/{{operation}}/wait", name="compute.zoneOperations.wait", handle=self.wait),
            Route(verb="GET", pattern=PROJECT, name="compute.projects.get", handle=self.get_project),
            Route(verb="GET", pattern=f"{PROJECT}/regions/{{region}}", name="compute.regions.get", handle=self.get_region),
        )

    def list_operations(self, request: HttpRequest) -> HttpResponse:
        """The operations of a zone, the platform's own included."""
        zone = self._premises.zone(request, "compute.zoneOperations.list")
        found = self._premises.world.operations.below(zone.path, family="compute")
        return list_response(request, "compute#operationList", [operation_document(operation, host_of(request)) for operation in found])

    def get_operation(self, request: HttpRequest) -> HttpResponse:
        """One operation."""
        return json_response(operation_document(self._operation(request), host_of(request)))

    def wait(self, request: HttpRequest) -> HttpResponse:
        """One operation, when it is done or after two minutes."""
        operation = self._operation(request)
        self._premises.world.operations.wait(operation, WAIT_S_MAX, is_active=request.context.is_active)
        return json_response(operation_document(operation, host_of(request)))

    def get_project(self, request: HttpRequest) -> HttpResponse:
        """The project, with its quotas over all regions."""
        project = self._premises.project(request, "compute.projects.get")
        used = used_in(self._premises.engine.instances, project.name)
        return json_response(
            {
                "kind": "compute#project",
                "id": str(project.number),
                "name": project.name,
                "selfLink": address(host_of(request), f"projects/{project.name}"),
                "quotas": quota_documents(project, used, is_global=True),
            }
        )

    def get_region(self, request: HttpRequest) -> HttpResponse:
        """A region, with its quotas."""
        project = self._premises.project(request, "compute.regions.get")
        region = request.parameters["region"]
        check_region(region)
        used = used_in(self._premises.engine.instances, project.name, region)
        return json_response(
            {
                "kind": "compute#region",
                "name": region,
                "status": "UP",
                "selfLink": address(host_of(request), f"projects/{project.name}/regions/{region}"),
                "quotas": quota_documents(project, used, is_global=False),
            }
        )

    def _operation(self, request: HttpRequest) -> Operation:
        zone = self._premises.zone(request, "compute.zoneOperations.get")
        name = f"{zone.path}/operations/{request.parameters['operation']}"
        found = self._premises.world.operations.find(name)
        if found is None or found.family != "compute":
            raise not_found(name)
        return found
