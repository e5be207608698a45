"""Quota that is lowered, limited, or taken by another job."""

from collections.abc import Sequence

from harness.faults.active import Scene
from harness.faults.queue import QueueChange
from harness.history import Event
from harness.scenario.cluster_faults import LimitNamespace, LowerQuota, OccupyCapacity
from harness.undo import ClusterAction

ADMISSION_S = 60.0
"""Kueue admits in under a second, where a ProvisioningRequest comes first when the nodes are there: 5 to 20 s, on a loaded machine 40."""


class ActiveQuota(QueueChange):
    """Seen, as is its end, when Kueue counts with the quota. Workloads that were admitted before keep what they have: so it is in Kueue."""

    def __init__(self, scene: Scene, fault: LowerQuota) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._before = 0
        self._is_restored = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._target.set_quota(self._fault.flavor, self._fault.to)
        return f"nominal quota of flavor {self._fault.flavor}: {self._fault.to} chips instead of {self._before}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._counted(self._fault.to)

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_restored:
                self._require_ours()
                self._target.set_quota(self._fault.flavor, self._before)
                self._is_restored = True
            return self._counted(self._before)

    def _actions(self) -> tuple[ClusterAction, ...]:
        self._before = self._target.quota_of(self._fault.flavor)
        if self._before <= self._fault.to:  # it would be seen to act at once, and nothing would have happened
            raise LookupError(f"the quota of flavor {self._fault.flavor} is {self._before} already, not more than {self._fault.to}")
        return self._target.quota_undo(self._fault.flavor, to=self._fault.to)

    def _require_ours(self) -> None:
        """See that nobody else has changed the quota since.

        Raises:
            LookupError: When somebody has: it is left.
        """
        found = self._target.quota_of(self._fault.flavor)
        if found not in (self._fault.to, self._before):
            stands = f"the quota of flavor {self._fault.flavor} is {found}, and the fault has written {self._fault.to}"
            raise LookupError(f"{stands}: somebody has changed it since, and it is left")

    def _counted(self, chips: int) -> str:
        if not self._pace.is_due() or self._target.quota_in_force(self._fault.flavor) != chips:
            return ""
        return f"Kueue counts with {chips} chips of flavor {self._fault.flavor}"


class ActiveLimit(QueueChange):
    """Seen when the quota controller says that the limit is in force, healed when it says none."""

    def __init__(self, scene: Scene, fault: LimitNamespace) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._is_lifted = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._target.limit_namespace(self._fault.chips)
        return f"a ResourceQuota of {self._fault.chips} chips in the namespace of the job"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        is_in_force = self._pace.is_due() and self._target.is_limited_to(self._fault.chips)
        return f"the quota controller limits the namespace to {self._fault.chips} chips" if is_in_force else ""

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_lifted:
                self._target.limit_namespace(None)
                self._is_lifted = True
            return "the namespace has no limit" if self._target.is_limited_to(None) else ""

    def _actions(self) -> tuple[ClusterAction, ...]:
        return self._target.limit_undo()


class ActiveOccupation(QueueChange):
    """Seen when Kueue has admitted the other job, healed when that is gone and its quota free."""

    def __init__(self, scene: Scene, fault: OccupyCapacity) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._injected_s = 0.0
        self._evidence = ""
        self._is_vacated = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        with self._scene.injecting():
            job = self._target.occupy(self._scene.injection, flavor=self._fault.flavor, chips=self._fault.chips)
        return f"submitted {job}"

    def advance(self, _events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        if self._evidence or self._is_vacated or not self._pace.is_due():
            return
        try:
            self._evidence = self._target.occupied(self._scene.injection, flavor=self._fault.flavor)
        except LookupError as error:
            self._give_up(str(error))
        if not self._evidence and self._scene.now_s() > self._injected_s + ADMISSION_S:
            self._give_up(f"a job for chips of flavor {self._fault.flavor!r} was not admitted within {ADMISSION_S:g} s")

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence

    def _give_up(self, why: str) -> None:
        """What occupies nothing is not left in the queue."""
        with self._scene.injecting():
            self._target.vacate(self._scene.injection)
        self._is_vacated = True
        raise self._scene.failed(why)

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_vacated:
                self._target.vacate(self._scene.injection)
                self._is_vacated = True
            return "the other job is gone, and its quota free" if self._target.is_vacated(self._scene.injection) else ""

    def _actions(self) -> tuple[ClusterAction, ...]:
        return self._target.occupation_undo(self._scene.injection)
