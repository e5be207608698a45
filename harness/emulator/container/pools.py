"""Node pools: what they are to be, the instances that they have, and what keeps them from having all."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from google.cloud import container_v1
from google.rpc import code_pb2

from harness.emulator.compute.machines import Accelerator
from harness.emulator.container.groups import InstanceGroups, NodeGroup
from harness.emulator.container.names import Name
from harness.emulator.failures import ApiError

Status = container_v1.NodePool.Status
Condition = container_v1.StatusCondition

_CODES = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": Condition.Code.GCE_STOCKOUT,
    "QUOTA_EXCEEDED": Condition.Code.GCE_QUOTA_EXCEEDED,
}
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_STRIDE = 1_234_577
"""A prime that divides no power of 36: its multiples meet all ends of four letters before one comes again."""
_GROUP_NAME_MAX = 40
"""Characters of cluster and pool in the name of a group, so that an instance's name keeps to its 63."""


@dataclass(slots=True, kw_only=True)
class Pool:
    """A node pool.

    Attributes:
        name: Its whole name.
        message: As it is shown; its status is kept here too.
        zones: Where its nodes are.
        size: How many nodes there are to be in each zone.
        born_s: When each node was made, on the monotonic clock.
        held_back: How many nodes are missing.
    """

    name: Name
    message: container_v1.NodePool
    zones: Sequence[str]
    size: int
    born_s: dict[str, float] = field(default_factory=dict)
    held_back: int = 0

    @property
    def is_queued(self) -> bool:
        """Whether its nodes come only when they are asked for together, and go together."""
        return bool(self.message.queued_provisioning.enabled)

    @property
    def lifetime_s(self) -> float:
        """How long a node lives; infinity: no end."""
        lifetime = self.message.config.max_run_duration
        return lifetime.total_seconds() if lifetime else float("inf")

    @property
    def is_settled(self) -> bool:
        """Whether no operation works on it."""
        return self.message.status in (Status.RUNNING, Status.RUNNING_WITH_ERROR, Status.ERROR)

    @property
    def etag(self) -> str:
        """Changes with the pool."""
        return hashlib.sha256(container_v1.NodePool.serialize(self.message)).hexdigest()[:16]

    def groups(self) -> list[NodeGroup]:
        """Its nodes by zone."""
        config = self.message.config
        accelerators = tuple(
            Accelerator(accelerator_type=found.accelerator_type, accelerator_count=found.accelerator_count) for found in config.accelerators
        )
        labels = {
            "goog-gke-node": "",
            "goog-k8s-cluster-location": self.name.location,
            "goog-k8s-cluster-name": self.name.cluster,
            "goog-k8s-node-pool-name": self.name.pool,
        }
        return [
            NodeGroup(
                project=self.name.project,
                zone=zone,
                name=f"{group_prefix(self.name, zone)}-grp",
                machine_type=config.machine_type,
                accelerators=accelerators,
                labels={**dict(config.resource_labels), **labels},
                is_spot=config.spot or config.preemptible or config.flex_start,
            )
            for zone in self.zones
        ]

    def reconcile(self, groups: InstanceGroups, now_s: float) -> list[ApiError]:
        """Make what is missing and remove what is too much; returns what kept nodes from being made, and sets status and conditions."""
        errors: list[ApiError] = []
        self.held_back = 0
        for group in self.groups():
            errors += self._reconcile(group, groups, now_s)
        self._tell(errors)
        return errors

    def empty(self, groups: InstanceGroups) -> None:
        """Remove all nodes."""
        self.size = 0
        self.reconcile(groups, 0.0)

    def end_lives(self, groups: InstanceGroups, now_s: float) -> None:
        """Remove the nodes whose life is over; those of a queued pool came together, and nobody makes them anew."""
        over = [instance for instance, born_s in self.born_s.items() if born_s + self.lifetime_s <= now_s]
        for instance in over:
            for group in self.groups():
                groups.remove(group, instance)
            del self.born_s[instance]
        if over and self.is_queued:
            self.size = 0

    def _reconcile(self, group: NodeGroup, groups: InstanceGroups, now_s: float) -> list[ApiError]:
        wanted = [node_name(self.name, group.zone, number) for number in range(self.size)]
        there = groups.instances(group)
        for instance in sorted(there - set(wanted)):
            groups.remove(group, instance)
            self.born_s.pop(instance, None)
        missing = [instance for instance in wanted if instance not in there]
        for place, instance in enumerate(missing):
            try:
                groups.make(group, instance)
            except ApiError as error:
                self.held_back += len(missing) - place
                return [_told(error, instance, wanted=self.size, running=self.size - len(missing) + place)]
            self.born_s[instance] = now_s
        return []

    def _tell(self, errors: Sequence[ApiError]) -> None:
        self.message.conditions = conditions_of(errors)
        self.message.status_message = errors[0].message if errors else ""
        is_usable = self.held_back < self.size * len(self.zones)
        self.message.status = Status(Status.RUNNING if not errors else Status.RUNNING_WITH_ERROR if is_usable else Status.ERROR)


def conditions_of(errors: Sequence[ApiError]) -> list[Condition]:
    """Errors of instances as conditions; the canonical code is assumed."""
    return [
        Condition(
            code=_CODES.get(error.reason, Condition.Code.UNKNOWN),
            message=error.message,
            canonical_code=code_pb2.Code.Value(error.code),
        )
        for error in errors
    ]


def group_prefix(name: Name, zone: str) -> str:
    """What the names of a group and its instances begin with."""
    digest = hashlib.sha256(f"{name.path}/{zone}".encode()).hexdigest()[:8]
    return f"{f'gke-{name.cluster}-{name.pool}'[:_GROUP_NAME_MAX].rstrip('-')}-{digest}"


def node_name(name: Name, zone: str, number: int) -> str:
    """The name of a node; Google draws its four letters, here they are the same each time and differ for all nodes of a pool."""
    place, letters = (number * _STRIDE) % 36**4, ""
    for _ in range(4):
        place, letter = divmod(place, 36)
        letters += _LETTERS[letter]
    return f"{group_prefix(name, zone)}-{letters}"


def _told(error: ApiError, instance: str, *, wanted: int, running: int) -> ApiError:
    """The error of an instance as that of its group. Source: messages quoted in public issues, but for the time that was waited."""
    reason = {"ZONE_RESOURCE_POOL_EXHAUSTED": "GCE_STOCKOUT", "QUOTA_EXCEEDED": "GCE_QUOTA_EXCEEDED"}.get(error.reason, error.reason)
    message = (
        f"Google Compute Engine: Not all instances running in IGM after 35m0s. Expected {wanted}, running {running}, transitioning "
        f"{wanted - running}. Current errors: [{reason}]: Instance '{instance}' creation failed: {error.message}"
    )
    return ApiError(error.code, message, reason=error.reason, domain=error.domain)
