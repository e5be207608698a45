"""The emulator: Google's services on two ports of loopback, over one world."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.clock import Clock, SystemClock
from harness.emulator.address import ANY_PORTS, Endpoints, Ports
from harness.emulator.compute.service import ComputeService
from harness.emulator.container.compute_groups import ComputeGroups
from harness.emulator.container.service import ContainerService
from harness.emulator.control import Control
from harness.emulator.logging.service import LoggingService
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.operations import Operations
from harness.emulator.project import Projects, ProjectState
from harness.emulator.run.executor import Platform
from harness.emulator.run.service import DEFAULT_PLATFORM, CloudRun
from harness.emulator.service import Service
from harness.emulator.storage.buckets import BucketSettings, StoredBuckets
from harness.emulator.storage.service import StorageService
from harness.emulator.wire.servers import Servers
from harness.emulator.world import World

EXAMPLE_PROJECT = "local-project"
"""The only project where nobody names another: no real one is meant by it."""

FIRST_PROJECT_NUMBER = 100_000_000_001
"""Project numbers have twelve digits."""


class Emulator:
    """Google's services, from its construction to ``close``; best used in a ``with``.

    What it keeps stays below ``root`` when it closes: buckets with their objects, and a directory for each execution. Buckets are there
    again for the next emulator on the same root; jobs, executions, operations and logs are not.

    Args:
        root: Where everything is kept; made where it is not there.
        clock: Moves operations, timeouts and graces.
        projects: Those that there are, by id, or with permissions and quotas of their own.
        buckets: Made in the first project, where they are not there.
        platform: How Cloud Run is played.
        ports: Where to listen.

    Raises:
        UsageError: When a port that is asked for cannot be had.

    Attributes:
        endpoints: Where it listens.
        world: What the services share: calls, injections, projects, operations.
        log: Where entries are.
        buckets: Where objects are.
        run: Cloud Run.
        compute: Compute Engine.
        container: Kubernetes Engine, whose nodes are instances of Compute Engine.
        services: All of them, and what speaks to the emulator itself.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock | None = None,
        projects: Sequence[ProjectState | str] = (EXAMPLE_PROJECT,),
        buckets: Iterable[str] = (),
        platform: Platform = DEFAULT_PLATFORM,
        ports: Ports = ANY_PORTS,
    ) -> None:
        clock = clock or SystemClock()
        root.mkdir(parents=True, exist_ok=True)
        known = _as_states(projects)
        self.log = LogEntryStore(clock)
        self.buckets = StoredBuckets(root / "buckets", clock)
        self.world = World(
            clock=clock, root=root, projects=Projects(known), log=self.log, buckets=self.buckets, operations=Operations(clock)
        )
        self._first = known[0]
        for bucket in buckets:
            self.make_bucket(bucket)
        self.run = CloudRun(self.world, platform)
        self.compute = ComputeService(self.world)
        self.container = ContainerService(self.world, ComputeGroups(self.world, self.compute.engine))
        self.services = self._services()
        self._servers = Servers(self.world, self.services, ports)
        self.endpoints: Endpoints = self._servers.endpoints

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End everything: waiters, calls, ports, and all that jobs have started; harmless a second time."""
        self._servers.close()

    def method_names(self) -> frozenset[str]:
        """The methods spoken over gRPC, as injections and the journal name them."""
        return frozenset(method.name.lstrip("/") for service in self.services for method in service.methods())

    def route_names(self) -> frozenset[str]:
        """The methods spoken over REST, as Google names them."""
        return frozenset(route.name for service in self.services for route in service.routes())

    def _services(self) -> Sequence[Service]:
        return (
            Control(self.world, self.run),
            self.run,
            LoggingService(self.world, self.log),
            StorageService(self.world, self.buckets),
            self.compute,
            self.container,
        )

    def make_bucket(self, name: str, labels: Mapping[str, str] = {}) -> None:
        """Make a bucket in the first project; one that is there has the labels besides its own.

        Raises:
            ApiError: When it cannot have that name, or another project has it.
        """
        project = self._first
        there = next((bucket for bucket in self.buckets.of_project(project.name) if bucket.name == name), None)
        if there is None:
            self.buckets.create(name, project=project.name, project_number=project.number, settings=BucketSettings(labels=dict(labels)))
        elif not labels.items() <= there.settings.labels.items():
            self.buckets.change(name, msgspec.structs.replace(there.settings, labels=there.settings.labels | dict(labels)))


def _as_states(projects: Sequence[ProjectState | str]) -> list[ProjectState]:
    if not projects:
        raise ValueError("projects is empty: the emulator needs one at least")
    return [
        project if isinstance(project, ProjectState) else ProjectState(name=project, number=FIRST_PROJECT_NUMBER + place)
        for place, project in enumerate(projects)
    ]
