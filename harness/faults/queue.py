"""Workloads that are evicted, preempted, or lose their capacity."""

from collections.abc import Sequence

from harness.capabilities import QueueHost
from harness.faults.active import OneWay, Pace, Scene, cluster_undo
from harness.history import Event
from harness.history.cluster import NodeSeen, ProvisioningSeen, WorkloadSeen
from harness.scenario.cluster_faults import EvictWorkload, PreemptWorkload, RevokeCapacity
from harness.undo import ClusterAction, NothingToUndo, Undo

NO_WORKLOAD = "nothing left to activate: the workload is gone"


class QueueChange:
    """A change of the queue that is taken back after a while."""

    def __init__(self, scene: Scene, duration_s: float) -> None:
        assert isinstance(scene.target, QueueHost)
        self._scene, self._target = scene, scene.target
        self._pace = Pace(scene.now_s)
        self.heal_after_s: float | None = duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            return cluster_undo(self._target, self._actions())

    def _actions(self) -> tuple[ClusterAction, ...]:
        """What takes it back."""
        raise NotImplementedError

    def is_victims(self, event: Event) -> bool:
        """Whether an event is of the victim's task."""
        return isinstance(event, WorkloadSeen | ProvisioningSeen) and event.task == self._scene.victim.task


class ActiveEviction(QueueChange):
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
            if isinstance(event, WorkloadSeen) and self.is_victims(event):
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


class ActivePreemption(QueueChange):
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
            if isinstance(event, WorkloadSeen) and self.is_victims(event):
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


class ActiveRevocation(OneWay):
    """Seen when the request says ``CapacityRevoked`` and its nodes are gone; with ``reactivate_s`` its workload is queued again.

    Kueue has deactivated that for its rejected check, and would queue it no more when it is activated: deleted, it is made anew from the
    job, with a request of the same name. The nodes do not come back: provisioned capacity is gone with its request, and the pool gets what
    the next request is granted.
    """

    lasting = "nothing to heal: revoked capacity stays revoked, and a workload that Kueue deactivated stays so until somebody deletes it"

    def __init__(self, scene: Scene, fault: RevokeCapacity) -> None:
        assert isinstance(scene.target, QueueHost)
        self._scene, self._target, self._fault = scene, scene.target, fault
        self._injected_s = 0.0
        self._nodes: frozenset[str] = frozenset()
        self._gone: set[str] = set()
        self._request = self._healed = self._reactivated = ""
        self._is_deactivated = self._is_reactivated = False
        self.heal_after_s: float | None = None

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return NothingToUndo(why="the pool gets what the next request is granted, and the workload goes with its run")

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        with self._scene.injecting():
            nodes = self._target.revoke_capacity(self._scene.victim)
            if not nodes:  # the job would not feel it, and nothing could show that it was done
                raise self._scene.failed(f"the request of task {self._scene.victim.task} has no node left to revoke")
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
        if not self._is_reactivated:
            with self._scene.healing():
                self._reactivated = self._target.reactivate(self._scene.victim)
            self._is_reactivated = True
            self._healed = "" if self._reactivated else NO_WORKLOAD
        return self._healed

    def _see_workload(self, event: WorkloadSeen) -> None:
        if not event.is_active and not self._is_deactivated:
            self._is_deactivated = True
            if self._fault.reactivate_s:
                self.heal_after_s = self._scene.now_s() - self._injected_s + self._fault.reactivate_s
        if event.is_active and self._is_reactivated:
            self._healed = f"{self._reactivated}; {event.name} ({event.uid}) is active"


def eviction_words(event: WorkloadSeen, reason: str) -> str:
    """That Kueue has evicted a workload for a reason, when the event says so; else "".

    The reason as a whole: ``DeactivatedDueToAdmissionCheck`` is Kueue's own doing, and no deactivation of ours.
    """
    condition = event.condition("Evicted")
    if condition is None or condition.status != "True" or condition.reason != reason:
        return ""
    return f"workload {event.name} was evicted: {condition.reason}, {condition.message!r}"


def is_revoked(event: ProvisioningSeen) -> bool:
    """Whether a request says that its capacity was revoked."""
    return any(condition.type == "CapacityRevoked" and condition.status == "True" for condition in event.conditions)
