"""Nodes that take no pods, break, are lost, or are taken away by GKE."""

from collections.abc import Iterable, Sequence
from typing import Literal

from harness.capabilities import NodeHost, PodHost, PodName, Processes
from harness.faults.active import Pace, Scene, cluster_undo
from harness.faults.pods import PodsAwaited
from harness.history import Event
from harness.history.cluster import NodeSeen
from harness.scenario import grace_profile
from harness.scenario.cluster_faults import BreakNode, CordonNode, DrainNode, InterruptNode, LoseNode, LosePool, Part
from harness.undo import ClusterAction, MendNode, Uncordon, Undo

SPOT = "gke-spot"
HOST_ERROR = "gke-host-error"


class _NodeFault:
    """Hits nodes that are chosen just before it acts, watches them, and is over when they are as they were."""

    def __init__(self, scene: Scene, duration_s: float) -> None:
        assert isinstance(scene.target, NodeHost)
        self._scene, self._target = scene, scene.target
        self._nodes: tuple[str, ...] = ()
        self._seen: dict[str, NodeSeen] = {}
        self.heal_after_s: float | None = duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._nodes = tuple(dict.fromkeys(self._choose()))
            return cluster_undo(self._target, tuple(map(self._undo_of, self._nodes)))

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        self._seen |= {event.name: event for event in events if isinstance(event, NodeSeen) and event.name in self._nodes}

    def _choose(self) -> Iterable[str]:
        """The nodes to be hit.

        Raises:
            LookupError: When there is none.
        """
        raise NotImplementedError

    def _undo_of(self, node: str) -> ClusterAction:
        return MendNode(node=node)

    def _told(self, state: str) -> str:
        return f"{nodes_named(self._nodes)} {state}"

    def _are(self, *states: str) -> bool:
        """Whether every node was last seen in one of these states, after the fault acted."""
        return bool(self._nodes) and all(node in self._seen and self._seen[node].state in states for node in self._nodes)


class Mended(_NodeFault):
    """Healed by mending the nodes, which takes a while: seen when the target holds all of them for whole.

    A machine that its pool has given back meanwhile, as that of a request that ended, is not brought back.
    """

    _is_mending = False
    _healed = ""

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            if not self._is_mending:
                self._target.mend_nodes(self._nodes)
                self._is_mending = True
            if not self._healed and self._target.are_whole(self._nodes):  # at once where nothing is left to mend
                self._healed = self._told("ready again, as the API server says, or gone with what asked for it")
        return self._healed


class ActiveCordon(_NodeFault):
    """Seen, as is its end, when the nodes are said to be unschedulable; with ``drains`` the job's pods there must have gone too."""

    def __init__(self, scene: Scene, fault: CordonNode | DrainNode) -> None:
        super().__init__(scene, fault.duration_s)
        self._part: Part = fault.part
        self._drains = isinstance(fault, DrainNode)
        self._pods = PodsAwaited(())
        self._is_uncordoned = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            for node in self._nodes:
                self._target.cordon(node)
            pods = self._drain() if self._drains else ()
        return self._told("cordoned") + (f"; evicted: {', '.join(pod.name for pod in pods) or 'none'}" if self._drains else "")

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        super().advance(events)
        self._pods.see(events)

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        if not self._are_schedulable(False) or not self._pods.have_ended:
            return ""
        return self._told("unschedulable") + (f"; {self._pods.told()}" if self._pods.told() else "")

    def heal(self) -> str:
        """See ``ActiveFault``."""
        if not self._is_uncordoned:
            self._is_uncordoned = True
            with self._scene.healing():
                for node in self._nodes:
                    self._target.uncordon(node)
        return self._told("schedulable again, or gone") if self._are_schedulable(True) else ""

    def _choose(self) -> Iterable[str]:
        return self._target.nodes_of(self._scene.victim, self._part)

    def _undo_of(self, node: str) -> ClusterAction:
        return Uncordon(node=node)

    def _drain(self) -> tuple[PodName, ...]:
        assert isinstance(self._target, PodHost)
        pods = tuple(pod for node in self._nodes for pod in self._target.pods_on(node))
        for pod in pods:
            self._target.evict_pod(pod)
        self._pods = PodsAwaited(pods)
        return pods

    def _are_schedulable(self, wanted: bool) -> bool:  # noqa: FBT001  the state that is asked for
        def is_so(node: str) -> bool:
            seen = self._seen.get(node)
            return seen is not None and (seen.is_schedulable is wanted or (wanted and seen.state == "Deleted"))

        return bool(self._nodes) and all(map(is_so, self._nodes))


class ActiveBreakage(Mended):
    """Seen when each node shows it itself, or the API server no longer holds it for ready.

    The latter comes after the grace that a silent kubelet has, 50 s by default: a shorter breakage is one all the same.
    """

    def __init__(self, scene: Scene, fault: BreakNode) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault
        self._pace = Pace(scene.now_s)
        self._evidence: dict[str, str] = {}

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._target.break_nodes(self._nodes, self._fault.how)
        return self._told({"power-off": "powered off", "kubelet": "without a kubelet", "partition": "cut off"}[self._fault.how])

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        for node, seen in self._seen.items():
            if seen.state in ("False", "Unknown"):
                self._evidence.setdefault(node, f"its condition Ready is {seen.state}")
        unseen = [node for node in self._nodes if node not in self._evidence]
        if unseen and self._pace.is_due():
            found = {node: self._target.breakage_of(node, self._fault.how) for node in unseen}
            self._evidence |= {node: words for node, words in found.items() if words}
        if not self._nodes or len(self._evidence) < len(self._nodes):
            return ""
        return "; ".join(f"node {node}: {self._evidence[node]}" for node in self._nodes)

    def _choose(self) -> Iterable[str]:
        return self._target.nodes_of(self._scene.victim, self._fault.part)


class ActiveLoss(Mended):
    """Seen when the node objects are gone, by their uids."""

    def __init__(self, scene: Scene, fault: LoseNode | LosePool) -> None:
        super().__init__(scene, fault.duration_s)
        self._fault = fault

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._target.lose_nodes(self._nodes)
        return self._told("lost")

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return gone_words(self._seen, self._nodes) if self._are("Deleted") else ""

    def _choose(self) -> Iterable[str]:
        if isinstance(self._fault, LoseNode):
            return self._target.nodes_of(self._scene.victim, self._fault.part)
        return self._target.nodes_in(self._fault.pool or self._target.pool_of(self._target.nodes_of(self._scene.victim, "hosts")[0]))


class ActiveInterruption(Mended):
    """GKE takes away all nodes that the victim's job runs on; seen when its pods had their grace and the node objects are gone.

    Whatever rank is the victim: the machines of a multi-host TPU slice are interrupted as one, and the nodes of one job are one slice.

    Graceful maintenance: labels tell of it ``notice_s`` before it begins; then nodes are tainted, and pods are evicted and have their own
    grace. Spot: pods have their own grace, and 15 s at most. Host error: nothing. Then the machines are gone. What is not played: GKE
    evicts through the node's own shutdown, so that its pods end as Failed; here they are evicted or deleted through the API.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu;
        https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms.
    """

    def __init__(self, scene: Scene, fault: InterruptNode) -> None:
        super().__init__(scene, fault.duration_s)
        assert isinstance(scene.target, PodHost)
        self._fault, self._pod_host = fault, scene.target
        self._stage: Literal["announced", "evicting", "gone"] = "announced"
        self._injected_s = self._eviction_s = 0.0
        self._pods = PodsAwaited(())
        self.heal_after_s = None  # until the machines are gone

    def inject(self) -> str:
        """See ``ActiveFault``."""
        self._injected_s = self._scene.now_s()
        with self._scene.injecting():
            if self._fault.profile == HOST_ERROR:
                self._lose()
                return self._told("lost without notice")
            if self._fault.profile == SPOT:
                self._take_spot()
                return self._told(
                    f"preempted: SIGTERM to {self._pods.count} pods, gone in {grace_profile(SPOT).budget_s:g} s at the latest"
                )
            for node in self._nodes:
                self._target.announce_maintenance(node, in_s=self._fault.notice_s)
        return self._told(f"to be maintained in {self._fault.notice_s:g} s")

    def advance(self, events: Sequence[Event]) -> None:
        """See ``StagedFault``."""
        super().advance(events)
        self._pods.see(events)
        with self._scene.injecting():
            if self._stage == "announced" and self._scene.now_s() >= self._injected_s + self._fault.notice_s:
                self._begin_maintenance()
            elif self._stage == "evicting" and self._is_over():
                self._lose()

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        if self._stage != "gone" or not self._are("Deleted"):
            return ""
        return "; ".join(filter(None, (self._pods.told(), self._pods.left(), gone_words(self._seen, self._nodes))))

    def _choose(self) -> Iterable[str]:
        victim = self._scene.victim
        return self._target.nodes_of(Processes(task=victim.task, attempt=victim.attempt), "hosts")

    def _take_spot(self) -> None:
        for node in self._nodes:
            self._target.announce_termination(node)
        pods = self._pods_there()
        for pod in pods:
            self._pod_host.delete_pod(pod, min(pod.grace_s, int(grace_profile(SPOT).budget_s)))
        self._await(pods)

    def _begin_maintenance(self) -> None:
        for node in self._nodes:
            self._target.announce_maintenance(node, in_s=0.0)
        pods = self._pods_there()
        for pod in pods:
            self._pod_host.evict_pod(pod)
        self._await(pods)

    def _await(self, pods: Sequence[PodName]) -> None:
        self._pods = PodsAwaited(pods)
        self._stage, self._eviction_s = "evicting", self._scene.now_s()

    def _is_over(self) -> bool:
        """Whether the pods have ended, or the machines wait no longer for them."""
        if self._pods.have_ended:
            return True
        return self._fault.profile == SPOT and self._scene.now_s() >= self._eviction_s + grace_profile(SPOT).budget_s

    def _lose(self) -> None:
        self._target.lose_nodes(self._nodes)
        self._stage = "gone"
        self.heal_after_s = self._scene.now_s() - self._injected_s + self._fault.duration_s

    def _pods_there(self) -> tuple[PodName, ...]:
        return tuple(pod for node in self._nodes for pod in self._target.pods_on(node))


def nodes_named(nodes: Sequence[str]) -> str:
    """Nodes as a reader looks for them, up to the verb."""
    return f"node {nodes[0]} is" if len(nodes) == 1 else f"nodes {', '.join(nodes)} are"


def gone_words(seen: dict[str, NodeSeen], nodes: Sequence[str]) -> str:
    """That the objects of nodes are gone."""
    return "; ".join(f"node {node} ({seen[node].uid}) is gone" for node in nodes)
