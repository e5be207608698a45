"""Node pools whose nodes are instances of the emulated Compute Engine."""

from collections.abc import Mapping

import msgspec

from harness.emulator.compute.engine import Engine
from harness.emulator.compute.instances import Described, Document
from harness.emulator.compute.places import Zone
from harness.emulator.compute.quotas import used_in
from harness.emulator.container.groups import NodeGroup
from harness.emulator.failures import ApiError, permission_denied, quota_exceeded
from harness.emulator.project import ProjectState
from harness.emulator.world import World

_GONE = ("TERMINATED", "STOPPING", "SUSPENDED")


class ComputeGroups:
    """See ``InstanceGroups``: what is done to such an instance by its own API, its group makes good.

    Args:
        world: What the services share.
        engine: Of Compute Engine.
    """

    def __init__(self, world: World, engine: Engine) -> None:
        self._world = world
        self._engine = engine

    def make(self, group: NodeGroup, instance: str) -> None:
        """See ``InstanceGroups``.

        Raises:
            ApiError: RESOURCE_EXHAUSTED when the zone has no machine, or the project no quota.
        """
        zone = _zone(group)
        project = self._project(group)
        found = self._engine.instances.find(zone, instance)
        if found is not None and found.stage.status == "STOPPING":
            return  # it must have ended before it can be there again; its group looks once more
        self._engine.instances.stock.require(zone)
        self._require_quota(project, group)
        if found is not None:
            self._engine.start(project, found)
            return
        document = _document(group, instance)
        self._engine.insert(project, zone, msgspec.convert(document, Described), document)

    def remove(self, group: NodeGroup, instance: str) -> None:
        """See ``InstanceGroups``."""
        found = self._engine.instances.find(_zone(group), instance)
        if found is not None and not found.described.deletion_protection:
            self._engine.delete(found)

    def instances(self, group: NodeGroup) -> frozenset[str]:
        """See ``InstanceGroups``."""
        return frozenset(
            found.name
            for found in self._engine.instances
            if found.zone == _zone(group) and found.labels.get("goog-k8s-group") == group.name and found.stage.status not in _GONE
        )

    def used(self, project: str, region: str) -> Mapping[str, int]:
        """See ``InstanceGroups``."""
        return used_in(self._engine.instances, project, region)

    def _project(self, group: NodeGroup) -> ProjectState:
        found = self._world.projects.find(group.project)
        if found is None:
            error: ApiError = permission_denied("compute.instances.create", f"projects/{group.project}")
            raise error
        return found

    def _require_quota(self, project: ProjectState, group: NodeGroup) -> None:
        used = self.used(project.name, group.region)
        for quota, more in sorted(group.usage().items()):
            limit = project.quotas.get(quota)
            if limit is not None and used.get(quota, 0) + more > limit:
                raise quota_exceeded(quota, limit=limit, place=f"region {group.region}")


def _zone(group: NodeGroup) -> Zone:
    return Zone(project=group.project, name=group.zone)


def _document(group: NodeGroup, instance: str) -> Document:
    accelerators = [
        {"acceleratorType": found.accelerator_type, "acceleratorCount": found.accelerator_count} for found in group.accelerators
    ]
    return {
        "name": instance,
        "machineType": f"zones/{group.zone}/machineTypes/{group.machine_type}",
        "labels": {**group.labels, "goog-k8s-group": group.name},
        "guestAccelerators": accelerators,
        "scheduling": {"provisioningModel": "SPOT" if group.is_spot else "STANDARD", "automaticRestart": not group.is_spot},
    }
