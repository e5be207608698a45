"""What no caller of Compute Engine can do: take machines out of stock, and let the platform strike an instance."""

from collections.abc import Sequence

import msgspec

from harness.emulator.compute.handling import Premises, json_response
from harness.emulator.compute.places import Zone, check_zone
from harness.emulator.compute.refusals import invalid_field
from harness.emulator.service import HttpRequest, HttpResponse, Route

CONTROL = "/_emulator/v1/compute"
EVENTS = ("hostError", "preempted")


class StockChange(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a zone has machines from now on."""

    available: bool


class ControlHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises

    def routes(self) -> Sequence[Route]:
        """What is served."""
        return (
            Route(
                verb="POST",
                pattern=f"{CONTROL}/zones/{{zone}}/stock",
                name="emulator.compute.stock",
                handle=self.change_stock,
                is_control=True,
            ),
            Route(
                verb="POST",
                pattern=f"{CONTROL}/projects/{{project}}/zones/{{zone}}/instances/{{instance}}/{{event}}",
                name="emulator.compute.event",
                handle=self.strike,
                is_control=True,
            ),
        )

    def change_stock(self, request: HttpRequest) -> HttpResponse:
        """``{"available": false}``: a zone has no machine left."""
        check_zone(request.parameters["zone"])
        try:
            change = msgspec.json.decode(request.body, type=StockChange)
        except msgspec.MsgspecError as error:
            raise invalid_field("available", request.body[:40].decode(errors="replace"), str(error)) from error
        stock = self._premises.engine.instances.stock
        (stock.refill if change.available else stock.exhaust)(request.parameters["zone"])
        return json_response({})

    def strike(self, request: HttpRequest) -> HttpResponse:
        """``…/hostError`` or ``…/preempted``."""
        event = request.parameters["event"]
        if event not in EVENTS:
            raise invalid_field("event", event, f"Must be one of {', '.join(EVENTS)}")
        check_zone(request.parameters["zone"])
        zone = Zone(project=request.parameters["project"], name=request.parameters["zone"])
        self._premises.engine.befall(self._premises.engine.instances.get(zone, request.parameters["instance"]), event)
        return json_response({})
