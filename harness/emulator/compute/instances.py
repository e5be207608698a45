"""Instances and where each is in its course. Calls come from many threads; time is the emulator's clock."""

import base64
import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from harness.clock import Clock
from harness.emulator.compute.courses import Policy, Stage
from harness.emulator.compute.machines import Accelerator, usage_of
from harness.emulator.compute.places import Zone
from harness.emulator.compute.refusals import not_found
from harness.emulator.failures import ApiError, stockout

Document = dict[str, object]


class Scheduling(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the platform may treat an instance."""

    on_host_maintenance: str = ""
    automatic_restart: bool | None = None
    preemptible: bool = False
    provisioning_model: str = "STANDARD"
    instance_termination_action: str = "STOP"


class Described(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What matters of an instance that a caller describes; all else is kept and shown as it came."""

    name: str = ""
    machine_type: str = ""
    labels: dict[str, str] = {}
    scheduling: Scheduling = Scheduling()
    guest_accelerators: Sequence[Accelerator] = ()
    deletion_protection: bool = False

    @property
    def is_spot(self) -> bool:
        """Whether the platform may take it back."""
        return self.scheduling.preemptible or self.scheduling.provisioning_model == "SPOT"

    @property
    def used(self) -> Counter[str]:
        """What it uses of quotas."""
        return usage_of(self.machine_type, self.guest_accelerators, is_spot=self.is_spot)

    @property
    def policy(self) -> Policy:
        """How it is treated: with accelerators, and as Spot, it cannot be moved alive, whatever it wants."""
        has_accelerators = any(name.endswith("_GPUS") for name in self.used)
        migrates = not self.is_spot and not has_accelerators and self.scheduling.on_host_maintenance != "TERMINATE"
        restarts = self.scheduling.automatic_restart if self.scheduling.automatic_restart is not None else not self.is_spot
        return Policy(migrates=migrates, restarts=restarts, is_deleted=self.scheduling.instance_termination_action == "DELETE")


@dataclass(slots=True, kw_only=True)
class Instance:
    """One instance.

    Attributes:
        zone: Where it is.
        identifier: Its number, new for each one of a name.
        described: What matters of what its maker has said.
        document: All that its maker has said.
        created: RFC 3339.
        labels: As they are now.
        stage: Where it is in its course.
        until_s: When the stage ends, on the monotonic clock.
        ahead: The stages to come.
        boots: How often it was started or reset.
        last_start: RFC 3339; empty: never.
        last_stop: RFC 3339; empty: never.
    """

    zone: Zone
    identifier: int
    described: Described
    document: Document
    created: str
    labels: dict[str, str]
    stage: Stage = field(default_factory=lambda: Stage(status="PROVISIONING"))
    until_s: float = float("inf")
    ahead: deque[Stage] = field(default_factory=deque)
    boots: int = 0
    last_start: str = ""
    last_stop: str = ""

    @property
    def name(self) -> str:
        """Unique in its zone."""
        return self.described.name

    @property
    def path(self) -> str:
        """``projects/P/zones/Z/instances/I``."""
        return self.zone.instance(self.name)

    @property
    def label_fingerprint(self) -> str:
        """Changes with the labels."""
        return base64.urlsafe_b64encode(zlib.crc32(msgspec.json.encode(self.labels, order="deterministic")).to_bytes(8)).decode()

    @property
    def has_machine(self) -> bool:
        """Whether it holds a machine, and with it quota: a stopped one does not."""
        return self.stage.status != "TERMINATED"


class Stock:
    """Zones that have no machine left."""

    def __init__(self) -> None:
        self._exhausted: set[str] = set()

    def exhaust(self, zone: str) -> None:
        """There is none from now on."""
        self._exhausted.add(zone)

    def refill(self, zone: str) -> None:
        """There are some again."""
        self._exhausted.discard(zone)

    def require(self, zone: Zone) -> None:
        """See that there is one.

        Raises:
            ApiError: RESOURCE_EXHAUSTED, ``ZONE_RESOURCE_POOL_EXHAUSTED``.
        """
        if zone.name in self._exhausted:
            error: ApiError = stockout(zone.path)
            raise error


class Instances:
    """All instances of all projects.

    Attributes:
        stock: Which zones have machines.
        lock: Held while instances are looked at or changed.
    """

    def __init__(self, clock: Clock, on_event: Callable[[Instance, str], None]) -> None:
        self.stock = Stock()
        self.lock = threading.RLock()
        self._clock = clock
        self._on_event = on_event
        self._by_path: dict[str, Instance] = {}
        self._count = 0

    def __iter__(self) -> Iterator[Instance]:
        with self.lock:
            for instance in list(self._by_path.values()):
                self._advance(instance)
            return iter(sorted(self._by_path.values(), key=lambda found: found.path))

    def find(self, zone: Zone, name: str) -> Instance | None:
        """An instance as it is now."""
        with self.lock:
            instance = self._by_path.get(zone.instance(name))
            if instance is not None:
                self._advance(instance)
            return self._by_path.get(zone.instance(name))

    def get(self, zone: Zone, name: str) -> Instance:
        """As ``find``.

        Raises:
            ApiError: NOT_FOUND.
        """
        instance = self.find(zone, name)
        if instance is None:
            raise not_found(zone.instance(name))
        return instance

    def add(self, zone: Zone, described: Described, document: Document) -> Instance:
        """A new one, which begins no course yet; one of its name is replaced."""
        with self.lock:
            self._count += 1
            now = self._clock.utc()
            instance = Instance(
                zone=zone,
                identifier=int(now.timestamp() * 1000) * 1000 + self._count % 1000,
                described=described,
                document=document,
                created=to_text(now),
                labels=dict(described.labels),
            )
            self._by_path[instance.path] = instance
            return instance

    def remove(self, instance: Instance) -> None:
        """It is gone; another of its name is left alone."""
        with self.lock:
            if self._by_path.get(instance.path) is instance:
                del self._by_path[instance.path]

    def begin(self, instance: Instance, stages: Sequence[Stage]) -> None:
        """Give up the course of an instance for another, which begins now."""
        with self.lock:
            instance.ahead = deque(stages)
            self._enter_next(instance, self._clock.monotonic_s())
            self._advance(instance)

    def _advance(self, instance: Instance) -> None:
        while instance.until_s <= self._clock.monotonic_s():
            self._enter_next(instance, instance.until_s)

    def _enter_next(self, instance: Instance, at_s: float) -> None:
        stage = instance.ahead.popleft()
        if stage.needs_stock:
            try:
                self.stock.require(instance.zone)
            except ApiError:
                instance.ahead.clear()
                stage = Stage(status="TERMINATED")
        now_text = to_text(self._clock.utc())
        if stage.status == "STAGING":
            instance.last_start, instance.boots = now_text, instance.boots + 1
        if stage.status == "TERMINATED" and instance.stage.status != "TERMINATED":
            instance.last_stop = now_text
        instance.stage, instance.until_s = stage, at_s + stage.lasts_s
        if stage.removes:
            self.remove(instance)
        if stage.event:
            self._on_event(instance, stage.event)


def to_text(moment: datetime) -> str:
    """RFC 3339 with milliseconds, as Compute Engine writes it."""
    return moment.isoformat(timespec="milliseconds")
