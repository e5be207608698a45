"""The instances behind a node pool: what Kubernetes Engine wants of Compute Engine, and a stand-in where that is not wired."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.emulator.compute.machines import Accelerator, usage_of
from harness.emulator.failures import ApiError, stockout


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The nodes of a pool in one zone.

    Attributes:
        project: Its id.
        zone: Like ``us-east5-b``.
        name: Of the instance group: ``gke-CLUSTER-POOL-HASH-grp``.
        machine_type: Like ``ct6e-standard-4t``.
        accelerators: That are attached besides.
        labels: Of the instances.
        is_spot: Whether its machines count against quotas for preemptible ones: Spot, preemptible, flex-start.
    """

    project: str
    zone: str
    name: str
    machine_type: str
    accelerators: tuple[Accelerator, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    is_spot: bool = False

    @property
    def region(self) -> str:
        """Where the zone lies."""
        return self.zone.rpartition("-")[0]

    def usage(self) -> Counter[str]:
        """What one node uses of quotas."""
        return usage_of(self.machine_type, self.accelerators, is_spot=self.is_spot)


class InstanceGroups(Protocol):
    """Makes and removes instances. Called from many threads, one at a time."""

    def make(self, group: NodeGroup, instance: str) -> None:
        """Make an instance, or start it again where it is stopped.

        Raises:
            ApiError: RESOURCE_EXHAUSTED when the zone has no machine, or the project no quota.
        """
        ...

    def remove(self, group: NodeGroup, instance: str) -> None:
        """Remove an instance, if it is there."""
        ...

    def instances(self, group: NodeGroup) -> frozenset[str]:
        """Those that there are; stopped ones are none."""
        ...

    def used(self, project: str, region: str) -> Mapping[str, int]:
        """What is in use of the quotas of a region."""
        ...


class NamedInstances:
    """Instances in name only, with zones that may have none left."""

    def __init__(self) -> None:
        self._instances: dict[tuple[str, str], tuple[NodeGroup, str]] = {}
        self._exhausted: set[str] = set()

    def exhaust(self, zone: str) -> None:
        """The zone has no machine from now on."""
        self._exhausted.add(zone)

    def refill(self, zone: str) -> None:
        """It has some again."""
        self._exhausted.discard(zone)

    def lose(self, instance: str) -> None:
        """An instance is gone, as by a host error; its group makes it anew."""
        self._instances = {key: found for key, found in self._instances.items() if found[1] != instance}

    def make(self, group: NodeGroup, instance: str) -> None:
        """See ``InstanceGroups``."""
        zone = f"projects/{group.project}/zones/{group.zone}"
        if group.zone in self._exhausted:
            error: ApiError = stockout(zone)
            raise error
        self._instances[zone, instance] = group, instance

    def remove(self, group: NodeGroup, instance: str) -> None:
        """See ``InstanceGroups``."""
        self._instances.pop((f"projects/{group.project}/zones/{group.zone}", instance), None)

    def instances(self, group: NodeGroup) -> frozenset[str]:
        """See ``InstanceGroups``."""
        return frozenset(instance for found, instance in self._instances.values() if found.name == group.name and found.zone == group.zone)

    def used(self, project: str, region: str) -> Mapping[str, int]:
        """See ``InstanceGroups``."""
        used: Counter[str] = Counter()
        for group, _ in self._instances.values():
            if (group.project, group.region) == (project, region):
                used += group.usage()
        return used
