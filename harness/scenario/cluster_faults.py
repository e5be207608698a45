"""Faults of a cluster as data: pods, nodes, pools, quota, capacity, the control plane. What they do is in ``harness.faults``.

Who is hit is the injection's ``victim``: its rank is a host of the job, or all of them. ``part`` says which pods of the job stand for it.
"""

from typing import Literal

import msgspec

from harness.scenario.rules import positive, require

Part = Literal["hosts", "head", "submitter"]
"""Pods of a job: the hosts that train (the victim's rank, or all), Ray's head, the pod that submits to it."""

# ---- pods ------------------------------------------------------------------------------------------------------------


class DeletePods(msgspec.Struct, frozen=True, kw_only=True, tag="delete-pods", tag_field="type", forbid_unknown_fields=True):
    """Pods are deleted through the API: SIGTERM, ``grace_s``, SIGKILL; 0 removes them at once, None leaves the grace that they ask for."""

    part: Part = "hosts"
    grace_s: int | None = None

    def __post_init__(self) -> None:
        require(self.grace_s is None or self.grace_s >= 0, "grace_s", self.grace_s, "a number of seconds >= 0, or none")


class EvictPods(msgspec.Struct, frozen=True, kw_only=True, tag="evict-pods", tag_field="type", forbid_unknown_fields=True):
    """Pods are evicted through the Eviction API, which honours disruption budgets."""

    part: Part = "hosts"


# ---- nodes -----------------------------------------------------------------------------------------------------------


class CordonNode(msgspec.Struct, frozen=True, kw_only=True, tag="cordon-node", tag_field="type", forbid_unknown_fields=True):
    """The node of the victim takes no new pods, for ``duration_s`` seconds."""

    part: Part = "hosts"
    duration_s: float = 10.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class DrainNode(msgspec.Struct, frozen=True, kw_only=True, tag="drain-node", tag_field="type", forbid_unknown_fields=True):
    """The node of the victim is cordoned and its pods are evicted, as ``kubectl drain`` does; it is uncordoned after ``duration_s``."""

    part: Part = "hosts"
    duration_s: float = 10.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class BreakNode(msgspec.Struct, frozen=True, kw_only=True, tag="break-node", tag_field="type", forbid_unknown_fields=True):
    """The node of the victim breaks and is whole again after ``duration_s``; its object stays, and is not ready after 50 s of that.

    ``power-off``: the machine stops with everything on it. ``kubelet``: the kubelet stops, containers run on. ``partition``: the network
    between the node and the control plane is cut, containers run on.
    """

    how: Literal["power-off", "kubelet", "partition"] = "power-off"
    part: Part = "hosts"
    duration_s: float = 60.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class LoseNode(msgspec.Struct, frozen=True, kw_only=True, tag="lose-node", tag_field="type", forbid_unknown_fields=True):
    """The machine of the victim is gone at once, and its node object with it: a host error. A new one comes after ``duration_s``.

    GKE deletes the node object when the machine is gone.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu (TerminationEvent: no grace).
    """

    part: Part = "hosts"
    duration_s: float = 60.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class LosePool(msgspec.Struct, frozen=True, kw_only=True, tag="lose-pool", tag_field="type", forbid_unknown_fields=True):
    """All machines of a node pool are gone at once, with their node objects; they come back after ``duration_s``.

    ``pool`` empty: the one that the victim runs on. A multi-host TPU slice is interrupted as one.
    Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu
    """

    pool: str = ""
    duration_s: float = 60.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class InterruptNode(msgspec.Struct, frozen=True, kw_only=True, tag="interrupt-node", tag_field="type", forbid_unknown_fields=True):
    """GKE takes away the nodes of the victim's job, by one of its profiles; new ones come after ``duration_s``.

    All of them, whatever rank is the victim: the machines of a multi-host TPU slice are interrupted as one. ``lose-node`` takes one alone.

    ``gke-maintenance-graceful``: labels announce it ``notice_s`` seconds before; then nodes are tainted, and pods get SIGTERM and their own
    grace.
    ``gke-spot``: SIGTERM with at most 15 s. ``gke-host-error``: nothing at all, as ``lose-node``. The profiles are in
    ``harness.scenario.platform``.
    """

    profile: Literal["gke-maintenance-graceful", "gke-spot", "gke-host-error"] = "gke-maintenance-graceful"
    notice_s: float = 5.0
    duration_s: float = 30.0

    def __post_init__(self) -> None:
        positive("notice_s", self.notice_s, zero_allowed=True)
        positive("duration_s", self.duration_s)


# ---- queue, quota, capacity ------------------------------------------------------------------------------------------


class EvictWorkload(msgspec.Struct, frozen=True, kw_only=True, tag="evict-workload", tag_field="type", forbid_unknown_fields=True):
    """Kueue evicts the victim's workload: it is deactivated, and activated again after ``duration_s``."""

    duration_s: float = 5.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class PreemptWorkload(msgspec.Struct, frozen=True, kw_only=True, tag="preempt-workload", tag_field="type", forbid_unknown_fields=True):
    """A job of higher priority takes the victim's quota, and ends after ``duration_s``; needs a queue that lets it."""

    duration_s: float = 5.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


class LowerQuota(msgspec.Struct, frozen=True, kw_only=True, tag="lower-quota", tag_field="type", forbid_unknown_fields=True):
    """The nominal quota of a flavor is lowered to ``to`` chips, for ``duration_s`` seconds: on-demand quota that is used up."""

    flavor: str = "on-demand"
    to: int = 0
    duration_s: float = 120.0

    def __post_init__(self) -> None:
        require(self.to >= 0, "to", self.to, "a number of chips >= 0")
        positive("duration_s", self.duration_s)


class LimitNamespace(msgspec.Struct, frozen=True, kw_only=True, tag="limit-namespace", tag_field="type", forbid_unknown_fields=True):
    """A ResourceQuota lets the namespace of the job have ``chips`` chips at most, for ``duration_s`` seconds."""

    chips: int = 0
    duration_s: float = 10.0

    def __post_init__(self) -> None:
        require(self.chips >= 0, "chips", self.chips, "a number of chips >= 0")
        positive("duration_s", self.duration_s)


class OccupyCapacity(msgspec.Struct, frozen=True, kw_only=True, tag="occupy-capacity", tag_field="type", forbid_unknown_fields=True):
    """Another job holds ``chips`` chips of a flavor, in the queue as any job, for ``duration_s`` seconds; 0: all that is free."""

    flavor: str = "on-demand"
    chips: int = 0
    duration_s: float = 120.0

    def __post_init__(self) -> None:
        require(self.chips >= 0, "chips", self.chips, "a number of chips, 0 for all that is free")
        positive("duration_s", self.duration_s)


class RevokeCapacity(msgspec.Struct, frozen=True, kw_only=True, tag="revoke-capacity", tag_field="type", forbid_unknown_fields=True):
    """The capacity that was provisioned for the victim is reclaimed: the request says ``CapacityRevoked``, its nodes are gone.

    So ends a flex-start run at its maximum run time. With ``reactivate_s`` somebody lets the workload be queued again that long
    after Kueue has deactivated it: deletes it, so that Kueue makes it anew, for to activate it is not enough; 0: nobody does.
    """

    reactivate_s: float = 0.0

    def __post_init__(self) -> None:
        positive("reactivate_s", self.reactivate_s, zero_allowed=True)


# ---- control plane, images -------------------------------------------------------------------------------------------


class RestartComponent(msgspec.Struct, frozen=True, kw_only=True, tag="restart-component", tag_field="type", forbid_unknown_fields=True):
    """A part of the control plane is killed and comes back by itself: the API server, Kueue's controller, KubeRay's operator."""

    component: Literal["api-server", "kueue", "kuberay"] = "api-server"


class ForgetImage(msgspec.Struct, frozen=True, kw_only=True, tag="forget-image", tag_field="type", forbid_unknown_fields=True):
    """The job's image is on no node of a pool, and cannot be pulled, for ``duration_s`` seconds; running containers go on."""

    pool: str = "on-demand-pool"
    duration_s: float = 15.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


PodFault = DeletePods | EvictPods
NodeFault = CordonNode | DrainNode | BreakNode | LoseNode | LosePool | InterruptNode
QueueFault = EvictWorkload | PreemptWorkload | LowerQuota | LimitNamespace | OccupyCapacity | RevokeCapacity
ControlPlaneFault = RestartComponent | ForgetImage
ClusterFault = PodFault | NodeFault | QueueFault | ControlPlaneFault
