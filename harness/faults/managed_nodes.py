"""Nodes of a cluster that somebody else runs: its platform takes the machines away, and brings others by itself.

On such a cluster another node may come under the same name, and soon. So each node counts as taken once it was seen to be deleted, or not
to be ready, after the fault has acted; whatever it is by now.
"""

from collections.abc import Iterable, Sequence

from harness.capabilities import ManagedCluster, Processes
from harness.faults.active import Scene
from harness.faults.nodes import HOST_ERROR, SPOT, Mended
from harness.faults.pods import PodsAwaited
from harness.history import Event
from harness.history.cluster import NodeSeen
from harness.scenario.cluster_faults import InterruptNode, LoseNode, LosePool
from harness.undo import Undo

GONE_STATES = ("False", "Unknown")
"""Of the condition Ready, of a node whose machine is away."""


class _Taken(Mended):
    """Machines that the platform takes; seen node by node."""

    _healed_words = "{}: as many nodes are ready in their pools as before"

    def __init__(self, scene: Scene, duration_s: float) -> None:
        super().__init__(scene, duration_s)
        assert isinstance(scene.target, ManagedCluster)
        self._platform = scene.target
        self._evidence: dict[str, str] = {}
        self._is_done = False

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        super().advance(events)
        for event in events if self._is_done else ():
            if isinstance(event, NodeSeen) and event.name in self._nodes:
                words = self._gone_words(event)
                if words:
                    self._evidence.setdefault(event.name, words)

    def heal(self) -> str:
        """See ``ActiveFault``. The platform brings machines by itself, or is asked to; others of another name will do."""
        with self._scene.healing():
            if not self._is_mending:
                self._target.mend_nodes(self._nodes)
                self._is_mending = True
            if not self._healed and self._target.are_whole(self._nodes):
                self._healed = self._healed_words.format(", ".join(self._nodes))
        return self._healed

    def _gone_words(self, event: NodeSeen) -> str:
        if event.state == "Deleted":
            return f"node {event.name} ({event.uid}) is gone"
        return f"the condition Ready of node {event.name} is {event.state}" if event.state in GONE_STATES else ""

    def _told_gone(self) -> str:
        """What was seen, once it was of every node."""
        if not self._nodes or len(self._evidence) < len(self._nodes):
            return ""
        return "; ".join(self._evidence[node] for node in self._nodes)


class ActivePlatformLoss(_Taken):
    """``lose-node``: the machine is deleted. ``lose-pool``: the pool is brought to zero nodes, and gets its size and autoscaling back."""

    def __init__(self, scene: Scene, fault: LoseNode | LosePool) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._pool = ""

    def undo(self) -> Undo:
        """See ``ActiveFault``. That of a pool holds what the pool has now."""
        undo = super().undo()
        if not self._pool:
            return undo
        with self._scene.injecting():
            return self._platform.pool_undo(self._pool)

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._is_done = True
        with self._scene.injecting():
            if self._pool:
                self._platform.empty_pool(self._pool)
                return f"pool {self._pool} is being brought to zero nodes, from {len(self._nodes)}"
            self._target.lose_nodes(self._nodes)
        return self._told("deleted")

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._told_gone()

    def _choose(self) -> Iterable[str]:
        if isinstance(self._fault, LoseNode):
            return self._target.nodes_of(self._scene.victim, self._fault.part)
        self._pool = self._fault.pool or self._target.pool_of(self._target.nodes_of(self._scene.victim, "hosts")[0])
        return self._target.nodes_in(self._pool)


class ActivePlatformMaintenance(_Taken):
    """The platform takes all nodes of the victim's job: by a maintenance or a preemption that it is made to have, or as a host error.

    How long before it is announced is the platform's own: ``notice_s`` of the scenario does not reach there. It is healed ``duration_s``
    after the machines were seen to be away.
    """

    def __init__(self, scene: Scene, fault: InterruptNode) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._injected_s = 0.0
        self._pods = PodsAwaited(())
        self.heal_after_s = None  # until the machines are away

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        self._is_done = True
        with self._scene.injecting():
            self._pods = PodsAwaited(tuple(pod for node in self._nodes for pod in self._target.pods_on(node)))
            if self._fault.profile == HOST_ERROR:
                self._target.lose_nodes(self._nodes)
                return self._told("deleted without notice")
            is_preemption = self._fault.profile == SPOT
            self._platform.take_by_maintenance(self._nodes, is_preemption=is_preemption)
        return self._told("preempted" if is_preemption else "being maintained")

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        super().advance(events)
        self._pods.see(events)
        if self.heal_after_s is None and self._told_gone():
            self.heal_after_s = self._scene.now_s() - self._injected_s + self._fault.duration_s

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        gone = self._told_gone()
        return "; ".join(filter(None, (self._pods.told(), self._pods.left(), gone))) if gone else ""

    def _choose(self) -> Iterable[str]:
        victim = self._scene.victim
        return self._target.nodes_of(Processes(task=victim.task, attempt=victim.attempt), "hosts")
