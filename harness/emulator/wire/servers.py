"""Both servers over one world: what ``Emulator`` opens, and a test of a single service too."""

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.emulator.address import ANY_PORTS, Endpoints, Ports
from harness.emulator.service import Service
from harness.emulator.wire.grpc_wire import GrpcWire
from harness.emulator.wire.http_wire import HttpWire
from harness.emulator.world import World


class Servers:
    """Services spoken on two ports of loopback from construction to ``close``, which closes the services too.

    Attributes:
        endpoints: Where they listen.

    Raises:
        UsageError: When a port that is asked for cannot be had.
    """

    def __init__(self, world: World, services: Sequence[Service], ports: Ports = ANY_PORTS) -> None:
        with contextlib.ExitStack() as undo:
            for service in services:
                undo.callback(service.close)
            ports.require_free()
            grpc_wire = GrpcWire(world, [method for service in services for method in service.methods()], ports.grpc)
            undo.callback(grpc_wire.close)
            http_wire = HttpWire(world, [route for service in services for route in service.routes()], ports.http)
            undo.callback(http_wire.close)
            undo.callback(world.closing.set)  # comes first: whoever waits goes on
            self.endpoints = Endpoints(grpc=grpc_wire.address, http=http_wire.address)
            self._open = undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End calls, ports and services; harmless a second time."""
        self._open.close()
