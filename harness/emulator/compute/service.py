"""Compute Engine's REST API v1 for instances that exist in name."""

from collections.abc import Sequence

from harness.emulator.compute.control_handlers import ControlHandlers
from harness.emulator.compute.courses import Durations
from harness.emulator.compute.engine import Engine
from harness.emulator.compute.handling import Premises
from harness.emulator.compute.instance_handlers import InstanceHandlers
from harness.emulator.compute.place_handlers import PlaceHandlers
from harness.emulator.service import Method, Route
from harness.emulator.world import World


class ComputeService:
    """Compute Engine.

    Not covered: disks, networks, images, groups and templates, metadata servers, regional and global operations, lists of zones, regions
    and machine types. Nothing runs on an instance.

    The client's own way to wait, ``InstancesClient.stop(…).result()``, asks a second client that it makes by itself for the operation, and
    that one knows only Google's address: with the emulator, ask a ``ZoneOperationsClient`` that was made for it.

    Attributes:
        engine: Acts on instances; for tests and other services.
    """

    def __init__(self, world: World, durations: Durations | None = None) -> None:
        self.engine = Engine(world, durations or Durations())
        premises = Premises(world=world, engine=self.engine)
        self._handlers = (InstanceHandlers(premises), PlaceHandlers(premises), ControlHandlers(premises))

    def methods(self) -> Sequence[Method]:
        """Over gRPC it speaks nothing."""
        return ()

    def routes(self) -> Sequence[Route]:
        """The REST API."""
        return tuple(route for handlers in self._handlers for route in handlers.routes())

    def close(self) -> None:
        """Nothing runs."""
