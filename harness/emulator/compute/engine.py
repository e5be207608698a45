"""What is done to instances: each act is an operation that takes time on the emulator's clock, and a course of the instance."""

import itertools
import secrets
from collections.abc import Sequence

from harness.emulator.compute import courses
from harness.emulator.compute.courses import Durations, Stage, length_s
from harness.emulator.compute.instances import Described, Document, Instance, Instances
from harness.emulator.compute.places import Zone
from harness.emulator.compute.quotas import require_quotas
from harness.emulator.compute.refusals import already_exists, labels_changed, not_ready, protected
from harness.emulator.compute.system_events import event_entry
from harness.emulator.failures import ApiError
from harness.emulator.operations import Operation
from harness.emulator.project import ProjectState
from harness.emulator.world import World

USER = "user@example.com"
PLATFORM = "system"

LOOKS = "compute-looks"
"""The family of operations that nobody is shown: they only move instances on."""


class Engine:
    """Acts on instances.

    Attributes:
        instances: All of them.
    """

    def __init__(self, world: World, durations: Durations) -> None:
        self.instances = Instances(world.clock, self._tell)
        self._world = world
        self._durations = durations
        self._numbers = itertools.count(1)
        self._looks: list[Operation] = []

    def insert(self, project: ProjectState, zone: Zone, described: Described, document: Document) -> Operation:
        """Make an instance. Where quota or machines are missing the operation says so at its end, and the instance is gone.

        Raises:
            ApiError: ALREADY_EXISTS.
        """
        with self.instances.lock:
            if self.instances.find(zone, described.name) is not None:
                raise already_exists(zone.instance(described.name))
            instance = self.instances.add(zone, described, document)
            stages = courses.starting(self._durations)
            failure = self._missing(project, instance)
            if failure is None:
                return self._take("insert", instance, stages)
            return self._operate("insert", instance, self._durations.provisioning_s, failure=failure, remove=True)

    def start(self, project: ProjectState, instance: Instance) -> Operation:
        """Start a stopped instance; one that runs stays as it is."""
        with self.instances.lock:
            if instance.stage.status != "TERMINATED":
                return self._operate("start", instance, 0)
            failure = self._missing(project, instance)
            if failure is not None:
                return self._operate("start", instance, self._durations.provisioning_s, failure=failure)
            return self._take("start", instance, courses.starting(self._durations))

    def stop(self, instance: Instance) -> Operation:
        """Stop an instance; one that is stopped stays so."""
        with self.instances.lock:
            if instance.stage.status == "TERMINATED":
                return self._operate("stop", instance, 0)
            return self._take("stop", instance, courses.stopping(self._durations))

    def delete(self, instance: Instance) -> Operation:
        """Remove an instance.

        Raises:
            ApiError: FAILED_PRECONDITION when it is protected.
        """
        with self.instances.lock:
            if instance.described.deletion_protection:
                raise protected(instance.path)
            return self._take("delete", instance, courses.deleting(self._durations))

    def reset(self, instance: Instance) -> Operation:
        """Boot a running instance anew, without any notice to what runs on it.

        Raises:
            ApiError: FAILED_PRECONDITION when it does not run.
        """
        with self.instances.lock:
            self._require_running(instance)
            instance.boots += 1
            return self._operate("reset", instance, self._durations.reset_s)

    def simulate_maintenance(self, instance: Instance) -> Operation:
        """A maintenance of the host, announced and then done; the operation ends with the maintenance (assumed), before any restart.

        Raises:
            ApiError: FAILED_PRECONDITION when it does not run.
        """
        with self.instances.lock:
            self._require_running(instance)
            stages = courses.maintained(self._durations, instance.described.policy)
            lasts_s = length_s([stage for stage in stages if stage.maintenance])
            return self._take("simulateMaintenanceEvent", instance, stages, lasts_s)

    def set_labels(self, instance: Instance, labels: dict[str, str], fingerprint: str) -> Operation:
        """Replace the labels.

        Raises:
            ApiError: 412 when they are not those that the caller has seen.
        """
        with self.instances.lock:
            if fingerprint != instance.label_fingerprint:
                raise labels_changed()
            instance.labels = dict(labels)
            return self._operate("setLabels", instance, 0)

    def befall(self, instance: Instance, event: str) -> None:
        """What the platform does by itself: ``hostError`` or ``preempted``.

        Raises:
            ApiError: FAILED_PRECONDITION when it does not run.
        """
        with self.instances.lock:
            self._require_running(instance)
            course = courses.broken if event == "hostError" else courses.preempted
            self._follow(instance, course(self._durations, instance.described.policy))

    def _missing(self, project: ProjectState, instance: Instance) -> ApiError | None:
        try:
            require_quotas(self.instances, project, instance)
            self.instances.stock.require(instance.zone)
        except ApiError as error:
            return error
        return None

    def _take(self, kind: str, instance: Instance, stages: Sequence[Stage], lasts_s: float | None = None) -> Operation:
        self._follow(instance, stages)
        return self._operate(kind, instance, length_s(stages) if lasts_s is None else lasts_s)

    def _follow(self, instance: Instance, stages: Sequence[Stage]) -> None:
        """Let an instance go through stages, and see that it is looked at when each begins, also if nobody asks for it then."""
        self.instances.begin(instance, stages)
        for past in [look for look in self._looks if look.is_done]:
            self._looks.remove(past)
            self._world.operations.delete(past)
        for number in range(1, len(stages)):
            look = self._world.operations.begin(
                instance.zone.path,
                family=LOOKS,
                target="",
                lasts_s=length_s(stages[:number]),
                work=lambda: self.instances.find(instance.zone, instance.name),
            )
            self._looks.append(look)

    def _operate(
        self, kind: str, instance: Instance, lasts_s: float, *, failure: ApiError | None = None, remove: bool = False, user: str = USER
    ) -> Operation:
        def work() -> None:
            if remove:
                self.instances.remove(instance)
            if failure is not None:
                raise failure

        milliseconds = int(self._world.clock.utc().timestamp() * 1000)
        return self._world.operations.begin(
            instance.zone.path,
            family="compute",
            target=instance.path,
            kind=kind,
            metadata={"id": milliseconds * 1000 + next(self._numbers) % 1000, "targetId": instance.identifier, "user": user},
            lasts_s=lasts_s,
            work=work,
            identifier=f"{'systemevent' if user == PLATFORM else 'operation'}-{milliseconds}-{secrets.token_hex(7)}",
        )

    def _tell(self, instance: Instance, event: str) -> None:
        """The platform has done something by itself: it leaves an operation and an entry in the log."""
        operation = self._operate(event, instance, 0, user=PLATFORM)
        self._world.log.append([event_entry(instance, event, self._world.clock.utc(), operation.name.rpartition("/")[2])])

    def _require_running(self, instance: Instance) -> None:
        if instance.stage.status != "RUNNING":
            raise not_ready(instance.path)
