"""What the emulator speaks of all that Google's clients can say, by the lists of methods that the clients bring with them."""

import importlib.resources
from collections.abc import Collection, Iterator

import msgspec
from google.longrunning import operations_pb2

CLIENTS = ("run_v2", "logging_v2", "container_v1", "compute_v1")
"""Packages below ``google.cloud`` that bring such a list; the client of Cloud Storage does not."""


class MethodCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """A method that a client has.

    Attributes:
        client: The package that has it, below ``google.cloud``.
        service: Like ``google.cloud.run.v2.Jobs``.
        method: Like ``RunJob``.
        is_covered: Whether the emulator speaks it.
    """

    client: str
    service: str
    method: str
    is_covered: bool


class UserCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """A public method of the client of Cloud Storage, called against the emulator.

    Attributes:
        method: Like ``Blob.reload``.
        calls: What it has called, in order, each once.
        problem: What came of it, where that was an error.
    """

    method: str
    calls: tuple[str, ...]
    problem: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """All of it.

    Attributes:
        methods: Of the clients that bring a list.
        storage: Of Cloud Storage, as they were called.
        untried: Public methods of that client that were not called.
        routes: What is spoken over REST, but for Compute Engine, whose client has no other way.
    """

    methods: tuple[MethodCoverage, ...]
    storage: tuple[UserCoverage, ...]
    untried: tuple[str, ...]
    routes: tuple[str, ...]


class _Client(msgspec.Struct):
    rpcs: dict[str, object]


class _Service(msgspec.Struct):
    clients: dict[str, _Client]


class _Metadata(msgspec.Struct, rename="camel"):
    proto_package: str
    services: dict[str, _Service]


def coverage_of(client: str, spoken: Collection[str]) -> Iterator[MethodCoverage]:
    """Every method of a client, and whether it is among those that are spoken.

    Args:
        client: A package below ``google.cloud``, like ``run_v2``.
        spoken: ``Emulator.method_names()`` and ``route_names()`` together.
    """
    text = importlib.resources.files(f"google.cloud.{client}").joinpath("gapic_metadata.json").read_bytes()
    metadata = msgspec.json.decode(text, type=_Metadata)
    for name, service in sorted(metadata.services.items()):
        for method in sorted({method for found in service.clients.values() for method in found.rpcs}):
            names = (f"{metadata.proto_package}.{name}/{method}", rest_name(metadata.proto_package, name, method))
            yield MethodCoverage(
                client=client, service=f"{metadata.proto_package}.{name}", method=method, is_covered=any(found in spoken for found in names)
            )


def operations_coverage(spoken: Collection[str]) -> Iterator[MethodCoverage]:
    """The same of long operations, which the clients of several services have besides."""
    service = operations_pb2.DESCRIPTOR.services_by_name["Operations"]
    for method in sorted(service.methods_by_name):
        yield MethodCoverage(
            client="run_v2", service=service.full_name, method=method, is_covered=f"{service.full_name}/{method}" in spoken
        )


def rest_name(package: str, service: str, method: str) -> str:
    """The name of a method over REST: ``compute.instances.simulateMaintenanceEvent``."""
    api = package.removeprefix("google.").removeprefix("cloud.").partition(".")[0]
    return f"{api}.{_lowered(service)}.{_lowered(method)}"


def _lowered(name: str) -> str:
    return name[:1].lower() + name[1:]
