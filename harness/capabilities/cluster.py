"""The optional things that a target may let us do to a cluster: to pods, nodes, queues, the control plane."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from harness.capabilities.job import Processes
from harness.scenario import Fault
from harness.scenario.cluster_faults import Part
from harness.undo import ClusterAction, Undo

Breakage = Literal["power-off", "kubelet", "partition"]
"""How a node breaks: its machine stops; its kubelet stops; its network to the control plane is cut."""

Component = Literal["api-server", "kueue", "kuberay"]
"""A part of the control plane that comes back by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodName:
    """A pod that cannot be mistaken for its successor of the same name; ``grace_s`` is what it asks for between SIGTERM and SIGKILL."""

    namespace: str
    name: str
    uid: str
    node: str = ""
    grace_s: int = 30


@runtime_checkable
class PodHost(Protocol):
    """The job runs in pods that can be deleted and evicted. What became of them comes as ``PodSeen`` by ``poll``."""

    def pods_of(self, victim: Processes, part: Part) -> tuple[PodName, ...]:
        """The pods that stand for the victim now, those that end already left out.

        Raises:
            LookupError: When there is none.
        """
        ...

    def delete_pod(self, pod: PodName, grace_s: int | None) -> None:
        """Ask the API server to delete the pod, with this grace or its own.

        Raises:
            LookupError: When that very pod is gone.
        """
        ...

    def evict_pod(self, pod: PodName) -> None:
        """Ask the API server to evict the pod.

        Raises:
            LookupError: When that very pod is gone, or a disruption budget forbids it.
        """
        ...


@runtime_checkable
class NodeHost(Protocol):
    """Nodes and their pools can be hurt. What became of them comes as ``NodeSeen`` and ``PodSeen`` by ``poll``.

    Every change has its undo as data (``harness.undo``), which outlives us. What hurts returns when it is done, in a second or two.
    """

    cluster_name: str

    def cluster_uid(self) -> str:
        """What tells the cluster from another of its name.

        Raises:
            LookupError: When no execution runs.
        """
        ...

    def nodes_of(self, victim: Processes, part: Part) -> tuple[str, ...]:
        """The nodes that the victim's pods run on; never the node that holds the control plane.

        Raises:
            LookupError: When it runs on none.
        """
        ...

    def nodes_in(self, pool: str) -> tuple[str, ...]:
        """The nodes of a pool that are there now.

        Raises:
            LookupError: When the cluster has no such pool, or it is empty.
        """
        ...

    def pool_of(self, node: str) -> str:
        """The pool of a node.

        Raises:
            LookupError: When there is no such node.
        """
        ...

    def pods_on(self, node: str) -> tuple[PodName, ...]:
        """Pods of the job on a node; daemons and others' pods left out."""
        ...

    def cordon(self, node: str) -> None:
        """Mark a node unschedulable.

        Raises:
            LookupError: When there is no such node.
        """
        ...

    def uncordon(self, node: str) -> None:
        """Take that back; harmless where the node is gone.

        Raises:
            LookupError: When the API server does not do it.
        """
        ...

    def break_nodes(self, nodes: Sequence[str], how: Breakage) -> None:
        """Break them; their node objects stay.

        Raises:
            LookupError: When one could not be broken.
        """
        ...

    def breakage_of(self, node: str, how: Breakage) -> str:
        """Evidence from the node or its machine that it is broken so; empty while there is none."""
        ...

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        """The machines are gone at once, and their node objects with them; nothing but ``mend_nodes`` brings them back.

        Raises:
            LookupError: When one could not be taken away.
        """
        ...

    def announce_maintenance(self, node: str, *, in_s: float) -> None:
        """Put GKE's labels of maintenance on a node: it begins in so many seconds; with 0 it has begun, and GKE's taint comes with it.

        Raises:
            LookupError: When there is no such node.
        """
        ...

    def announce_termination(self, node: str) -> None:
        """Put GKE's taint of a machine that is about to go on a node, without a maintenance.

        Raises:
            LookupError: When there is no such node.
        """
        ...

    def mend_nodes(self, nodes: Sequence[str]) -> None:
        """Begin to make nodes whole, whatever was done to them: machine, kubelet, network, node object, chips, no labels of maintenance.

        Returns at once; harmless for those that are whole, and while it goes on. Those that their pools have given back stay away.
        """
        ...

    def are_whole(self, nodes: Sequence[str]) -> bool:
        """Whether the mending has ended and the API server holds the nodes for ready, all that their pools still have.

        Raises:
            LookupError: When it has failed.
        """
        ...


@runtime_checkable
class QueueHost(Protocol):
    """The job waits in a queue with quota. What became of it comes as ``WorkloadSeen`` and ``ProvisioningSeen`` by ``poll``.

    What undoes a change is told before it is made.
    """

    cluster_name: str

    def cluster_uid(self) -> str:
        """What tells the cluster from another of its name.

        Raises:
            LookupError: When no execution runs.
        """
        ...

    def quota_of(self, flavor: str) -> int:
        """Nominal quota of chips of a flavor.

        Raises:
            LookupError: When the queue has no such flavor.
        """
        ...

    def set_quota(self, flavor: str, chips: int) -> None:
        """Change it.

        Raises:
            LookupError: When the queue has no such flavor, or the API server does not do it.
        """
        ...

    def quota_in_force(self, flavor: str) -> int | None:
        """The nominal quota that Kueue counts with; None while it has not taken in the newest change."""
        ...

    def quota_undo(self, flavor: str, *, to: int) -> tuple[ClusterAction, ...]:
        """What gives the flavor the quota that it has now, as long as it is the ``to`` that a fault has written, and nobody else's.

        Raises:
            LookupError: As ``quota_of``.
        """
        ...

    def limit_namespace(self, chips: int | None) -> None:
        """Limit the chips of the job's namespace by a ResourceQuota; None takes the limit away.

        Raises:
            LookupError: When the API server does not do it.
        """
        ...

    def is_limited_to(self, chips: int | None) -> bool:
        """Whether the quota controller limits the namespace to so many chips, or, with None, not at all."""
        ...

    def limit_undo(self) -> tuple[ClusterAction, ...]:
        """What takes the limit away."""
        ...

    def occupy(self, name: str, *, flavor: str, chips: int) -> str:
        """Submit another job that holds chips; ``chips`` 0: all that are free. It does not wait; no task is submitted before its admission.

        Returns:
            Which job, and for how many chips.

        Raises:
            LookupError: When it cannot be submitted, or nothing is free.
        """
        ...

    def occupied(self, name: str, *, flavor: str) -> str:
        """Evidence that Kueue has admitted that job: which workload, and to how many chips of which flavor; empty while it has not.

        Raises:
            LookupError: When it was admitted to another flavor.
        """
        ...

    def preempt(self, name: str, victim: Processes) -> str:
        """Submit another job of higher priority that asks for the victim's chips and all that are free of its flavor; returns which.

        It does not wait: the victim has its grace.

        Raises:
            LookupError: When the victim holds no chips, or its queue preempts nobody.
        """
        ...

    def has_admitted(self, name: str) -> bool:
        """Whether Kueue has admitted that job."""
        ...

    def vacate(self, name: str) -> None:
        """Delete that job; harmless when it is gone.

        Raises:
            LookupError: When the API server does not do it.
        """
        ...

    def is_vacated(self, name: str) -> bool:
        """Whether the job is gone, and the quota that it held."""
        ...

    def occupation_undo(self, name: str) -> tuple[ClusterAction, ...]:
        """What removes that job and all that was made for it."""
        ...

    def set_active(self, victim: Processes, *, is_active: bool) -> bool:
        """Deactivate or activate the victim's workload; false when it has none.

        Raises:
            LookupError: When the API server does not do it.
        """
        ...

    def reactivate(self, victim: Processes) -> str:
        """Let the victim's workload be queued again, as a person would; returns what was done, empty when it has none.

        One that Kueue itself has deactivated is deleted: Kueue makes it anew from the job, and takes no activation of the old one.

        Raises:
            LookupError: When the API server does not do it.
        """
        ...

    def activation_undo(self, victim: Processes) -> tuple[ClusterAction, ...]:
        """What activates the victim's workload.

        Raises:
            LookupError: When it has none.
        """
        ...

    def revoke_capacity(self, victim: Processes) -> tuple[str, ...]:
        """Take the capacity that was provisioned for the victim away: condition, then nodes; returns the nodes.

        Raises:
            LookupError: When no request of the victim is provisioned.
        """
        ...


@runtime_checkable
class ControlPlaneHost(Protocol):
    """Parts of the control plane can be killed, and images be missing."""

    cluster_name: str

    def cluster_uid(self) -> str:
        """What tells the cluster from another of its name.

        Raises:
            LookupError: When no execution runs.
        """
        ...

    def component_instance(self, component: Component) -> str:
        """What names the running instance: its container's id; empty while none runs or answers."""
        ...

    def kill_component(self, component: Component) -> str:
        """SIGKILL it; whoever supervises it starts it again. Returns what names the instance that was killed.

        Raises:
            LookupError: When it does not run.
        """
        ...

    def is_serving(self) -> bool:
        """Whether the API server answers, and the webhooks of Kueue behind it, which restarts when it has lost the API server."""
        ...

    def forget_image(self, nodes: Sequence[str]) -> str:
        """Make the job's image unknown on nodes, and one that cannot be pulled; returns what was then read back there.

        Raises:
            LookupError: When a node still knows it.
        """
        ...

    def restore_image(self, nodes: Sequence[str]) -> str:
        """Make it known again, and return what was then read back; harmless twice.

        Raises:
            LookupError: When a node does not know it.
        """
        ...

    def image_undo(self, nodes: Sequence[str]) -> tuple[ClusterAction, ...]:
        """What makes it known again on these nodes."""
        ...


@runtime_checkable
class ManagedCluster(Protocol):
    """Somebody else runs the cluster: its machines are taken away and brought back by their platform, on request or by itself."""

    def undo_of(self, actions: Sequence[ClusterAction]) -> Undo:
        """What takes these back, as data: the target knows where the cluster is.

        Raises:
            LookupError: When no execution runs.
        """
        ...

    def pool_undo(self, pool: str) -> Undo:
        """What gives a node pool the size and the autoscaling that it has now.

        Raises:
            LookupError: When it is not ours to resize, or what it has cannot be read.
        """
        ...

    def empty_pool(self, pool: str) -> None:
        """Begin to bring a node pool to zero nodes, its autoscaling off.

        Raises:
            LookupError: When the platform does not do it.
        """
        ...

    def take_by_maintenance(self, nodes: Sequence[str], *, is_preemption: bool) -> None:
        """Have the platform take machines by a maintenance of theirs, or, on Spot machines, by a preemption.

        Raises:
            LookupError: When the platform does not do it, or a machine is not of that kind.
        """
        ...


@runtime_checkable
class FaultChecking(Protocol):
    """Of the faults that the target could cause by what it offers, some are beyond it."""

    def fault_problem(self, fault: Fault) -> str:
        """Why it cannot cause a fault; empty when it can, as far as its capabilities go."""
        ...
