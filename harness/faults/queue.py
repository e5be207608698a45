"""The queue, its quota and its capacity: workloads that are evicted or preempted, quota that is short, capacity that is taken back."""

from collections.abc import Sequence

from harness.capabilities import QueueHost
from harness.faults.active import OneWay, Pace, Scene
from harness.history import Event
from harness.history.cluster import NodeSeen, ProvisioningSeen, WorkloadSeen
from harness.scenario.cluster_faults import EvictWorkload, LimitNamespace, LowerQuota, OccupyCapacity, PreemptWorkload, RevokeCapacity
from harness.undo import ClusterAction, NothingToUndo, RestoreCluster, Undo

NO_WORKLOAD = "nothing left to activate: the workload is gone"


class _QueueFault:
    """A change of the queue that is taken back after a while."""

    def __init__(self, scene: Scene, duration_s: float) -> None:
        assert isinstance(scene.target, QueueHost)
        self._scene, self._target = scene, scene.target
        self._pace = Pace(scene.now_s)
        self.heal_after_s: float | None = duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            return RestoreCluster(cluster=self._target.cluster_name, actions=self._actions())

    def _actions(self) -> tuple[ClusterAction, ...]:
        raise NotImplementedError

    def _is_victims(self, event: Event) -> bool:
        return isinstance(event, WorkloadSeen | ProvisioningSeen) and event.task == self._scene.victim.task


class ActiveEviction(_QueueFault):
    """Seen when Kueue has evicted the workload for its deactivation; healed when it is active again, or there no more."""

    def __init__(self, scene: Scene, fault: EvictWorkload) -> None:
        super().__init__(scene, fault.duration_s)
        self._evidence = self._healed = ""
        self._is_activated = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            if not self._target.set_active(self._scene.victim, is_active=False):
                raise self._scene.failed(f"task {self._scene.victim.task} has no workload")
        return f"the workload of task {self._scene.victim.task} was deactivated"

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        for event in events:
            if isinstance(event, WorkloadSeen) and self._is_victims(event):
                self._evidence = self._evidence or eviction_words(event, "Deactivated")
                if self._is_activated and event.is_active:
                    self._healed = f"workload {event.name} is active again"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence

    def heal(self) -> str:
        """See ``ActiveFault``."""
        if not self._is_activated:
            with self._scene.healing():
                is_there = self._target.set_active(self._scene.victim, is_active=True)
            self._is_activated = True
            self._healed = "" if is_there else NO_WORKLOAD
        return self._healed

    def _actions(self) -> tuple[ClusterAction, ...]:
        return self._target.activation_undo(self._scene.victim)


class ActivePreemption(_QueueFault):
    """Seen when Kueue has evicted the workload for its preemption and admitted the other job, which ends ``duration_s`` after that."""

    def __init__(self, scene: Scene, fault: PreemptWorkload) -> None:
        super().__init__(scene, fault.duration_s)
        self._duration_s = fault.duration_s
        self._injected_s = 0.0
        self._evidence = ""
        self._is_admitted = self._is_vacated = False
        self.heal_after_s = None  # until the other job is admitted

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        with self._scene.injecting():
            return f"submitted {self._target.preempt(self._scene.injection, self._scene.victim)}"

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        for event in events:
            if isinstance(event, WorkloadSeen) and self._is_victims(event):
                self._evidence = self._evidence or eviction_words(event, "Preempted")
        if self._evidence and not self._is_admitted and self._pace.is_due() and self._target.has_admitted(self._scene.injection):
            self._is_admitted = True
            self.heal_after_s = self._scene.now_s() - self._injected_s + self._duration_s

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return f"{self._evidence}; the other job was admitted" if self._is_admitted else ""

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_vacated:
                self._target.vacate(self._scene.injection)
                self._is_vacated = True
            return "the other job is gone, and its quota free" if self._target.is_vacated(self._scene.injection) else ""

    def _actions(self) -> tuple[ClusterAction, ...]:
        return self._target.occupation_undo(self._scene.injection)


class ActiveQuota(_QueueFault):
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
                self._target.set_quota(self._fault.flavor, self._before)
                self._is_restored = True
            return self._counted(self._before)

    def _actions(self) -> tuple[ClusterAction, ...]:
        self._before = self._target.quota_of(self._fault.flavor)
        return self._target.quota_undo(self._fault.flavor)

    def _counted(self, chips: int) -> str:
        if not self._pace.is_due() or self._target.quota_in_force(self._fault.flavor) != chips:
            return ""
        return f"Kueue counts with {chips} chips of flavor {self._fault.flavor}"


class ActiveLimit(_QueueFault):
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


class ActiveOccupation(_QueueFault):
    """Seen when Kueue has admitted the other job, healed when that is gone and its quota free."""

    def __init__(self, scene: Scene, fault: OccupyCapacity) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._evidence = ""
        self._is_vacated = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._evidence = self._target.occupy(self._scene.injection, flavor=self._fault.flavor, chips=self._fault.chips)
        return f"another job was submitted for {self._fault.chips or 'all free'} chips of flavor {self._fault.flavor}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_vacated:
                self._target.vacate(self._scene.injection)
                self._is_vacated = True
            return "the other job is gone, and its quota free" if self._target.is_vacated(self._scene.injection) else ""

    def _actions(self) -> tuple[ClusterAction, ...]:
        return self._target.occupation_undo(self._scene.injection)


class ActiveRevocation(OneWay):
    """Seen when the request says ``CapacityRevoked`` and its nodes are gone; with ``reactivate_s`` healed by activating the workload again.

    The nodes do not come back: provisioned capacity is gone with its request, and the pool gets what the next request is granted.
    """

    lasting = "nothing to heal: revoked capacity stays revoked, and a workload that Kueue deactivated stays so until somebody activates it"

    def __init__(self, scene: Scene, fault: RevokeCapacity) -> None:
        assert isinstance(scene.target, QueueHost)
        self._scene, self._target, self._fault = scene, scene.target, fault
        self._injected_s = 0.0
        self._nodes: frozenset[str] = frozenset()
        self._gone: set[str] = set()
        self._request = self._healed = ""
        self._is_deactivated = self._is_activated = False
        self.heal_after_s: float | None = None

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return NothingToUndo(why="the pool gets what the next request is granted, and the workload goes with its run")

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        with self._scene.injecting():
            nodes = self._target.revoke_capacity(self._scene.victim)
        self._nodes = frozenset(nodes)
        return f"revoked the capacity of task {self._scene.victim.task}: {', '.join(nodes)}"

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        for event in events:
            if isinstance(event, NodeSeen) and event.name in self._nodes and event.state == "Deleted":
                self._gone.add(event.name)
            elif isinstance(event, ProvisioningSeen) and event.task == self._scene.victim.task and is_revoked(event):
                self._request = event.name
            elif isinstance(event, WorkloadSeen) and event.task == self._scene.victim.task:
                self._see_workload(event)

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        if not self._request or self._gone != self._nodes:
            return ""
        return f"{self._request} says CapacityRevoked; gone: {', '.join(sorted(self._gone))}"

    def heal(self) -> str:
        """See ``ActiveFault``."""
        if self.heal_after_s is None or self._scene.now_s() < self._injected_s + self.heal_after_s:
            return self.lasting
        if not self._is_activated:
            with self._scene.healing():
                is_there = self._target.set_active(self._scene.victim, is_active=True)
            self._is_activated = True
            self._healed = "" if is_there else NO_WORKLOAD
        return self._healed

    def _see_workload(self, event: WorkloadSeen) -> None:
        if not event.is_active and not self._is_deactivated:
            self._is_deactivated = True
            if self._fault.reactivate_s:
                self.heal_after_s = self._scene.now_s() - self._injected_s + self._fault.reactivate_s
        if event.is_active and self._is_activated:
            self._healed = f"workload {event.name} was activated again"


def eviction_words(event: WorkloadSeen, reason: str) -> str:
    """That Kueue has evicted a workload for a reason, when the event says so; else ""."""
    condition = event.condition("Evicted")
    if condition is None or condition.status != "True" or not condition.reason.startswith(reason):
        return ""
    return f"workload {event.name} was evicted: {condition.reason}, {condition.message!r}"


def is_revoked(event: ProvisioningSeen) -> bool:
    """Whether a request says that its capacity was revoked."""
    return any(condition.type == "CapacityRevoked" and condition.status == "True" for condition in event.conditions)
