"""How a job is given to a cluster, and how the cluster's emulated parts answer it, as data."""

from typing import Literal

import msgspec

from harness.scenario.rules import TAINT_KEY, label_value, positive, require

PhaseState = Literal["stockout", "quota-exceeded", "granted", "booking-expired", "failed", "never"]

FINAL_STATES = ("failed", "never", "booking-expired")

FAILURE_REASONS = (
    "InternalErrorFailedToQueue",
    "InternalErrorResizeRequestFailed",
    "InvalidArgument",
    "InvalidArgumentMaxRunDurationParseError",
    "NoQueuedNodepoolAvailable",
    "NodepoolSizeReached",
    "OutOfResources",
    "ProvisioningRequestNotSchedulableInNodepool",
    "QueuingInfeasibleNoCapacity",
    "QuotaExceeded",
    "ResourcePoolExhausted",
    "WaitTimeExceeded",
    "ZoneNotSupported",
)
"""Those whose messages the emulated DWS knows (``docs/dws.md``)."""


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that the emulated DWS says of a ProvisioningRequest.

    Attributes:
        state: ``stockout`` (accepted and waiting: ``ResourcePoolExhausted``), ``quota-exceeded`` (likewise, ``QuotaExceeded``), ``granted``
            (nodes come, then ``Provisioned``), ``booking-expired`` (after ``granted``), ``failed`` (final, with ``reason``), ``never``
            (accepted, and nothing more).
        after_s: Seconds after the one before, or after the request was accepted. 0 for ``booking-expired``: Kueue finds both at once, as if
            it had been away for as long as the booking lasted.
        reason: Of ``failed``, as GKE's autoscaler names it, like ``WaitTimeExceeded``.
    """

    state: PhaseState
    after_s: float = 1.0
    reason: str = "WaitTimeExceeded"

    def __post_init__(self) -> None:
        positive("after_s", self.after_s, zero_allowed=True)
        require(self.reason in FAILURE_REASONS, "reason", self.reason, f"one of {', '.join(FAILURE_REASONS)}")


class ProvisioningScript(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of one ProvisioningRequest, phase by phase."""

    phases: tuple[Phase, ...] = (Phase(state="granted"),)

    def __post_init__(self) -> None:
        states = [phase.state for phase in self.phases]
        require(bool(states), "phases", states, "at least one phase")
        require(not set(states[:-1]) & set(FINAL_STATES), "phases", states, f"nothing follows {', '.join(FINAL_STATES)}")
        for index, state in enumerate(states):
            is_after_granted = "granted" in states[:index]
            require(
                (state == "booking-expired") == is_after_granted, "phases", states, "after granted only booking-expired, which needs it"
            )


class PoolAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the emulated autoscaler answers when a pod needs a node of the on-demand pool that is not there.

    Attributes:
        answer: ``granted``; ``stockout`` (``GCE_STOCKOUT``) or ``quota-exceeded`` (``GCE_QUOTA_EXCEEDED``) for ``for_s``, then granted.
        after_s: Seconds until nodes begin to come.
        for_s: Seconds of stockout or exceeded quota.
    """

    answer: Literal["granted", "stockout", "quota-exceeded"] = "granted"
    after_s: float = 1.0
    for_s: float = 10.0

    def __post_init__(self) -> None:
        positive("after_s", self.after_s, zero_allowed=True)
        positive("for_s", self.for_s)


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the job is submitted: each task of the platform is one object in the queue, each rank of the workload one host.

    Attributes:
        submits: ``job``: a batch Job, indexed when the workload has several ranks. ``ray-job``: a RayJob of KubeRay with a head and as many
            hosts in one worker group replica as the workload has ranks.
        manifest: A RayJob or Job to submit as it is written, but for image, name and what ties it to the run; relative to the catalogue's
            root. Empty: one is made for the workload. ConfigMaps, Services, ResourceQuotas and LocalQueues beside it lie in the run's
            namespace and go with it; anything else is refused.
        queues: Kueue's objects for the run, relative to the catalogue's root; empty: those of the guide. Whatever of the cluster they
            replace is put back after the run; anything else is refused.
        queue: Label ``kueue.x-k8s.io/queue-name``.
        priority: Name of a WorkloadPriorityClass; empty: none.
        tolerations: Taints that the hosts tolerate.
        chips: ``google.com/tpu`` of one host.
        apart_s: Seconds between the submissions of two tasks.
        on_demand_nodes: Nodes of the on-demand pool at the start; -1: all of them. The autoscaler adds what pods need.
        on_demand: How it answers.
        provisioning: What becomes of the first, second, … ProvisioningRequest of a task; the last one holds for those after it.
        booking_s: Seconds for which granted nodes are kept for a request's pods. GKE: 10 minutes.
        max_run_s: After so long the capacity is revoked. GKE: 7 days.

    Source: module k8s.io/gke-autoscaling/cluster-autoscaler, packages provreqstate and queuedwrapper (booking, maximum run time).
    """

    submits: Literal["job", "ray-job"] = "job"
    manifest: str = ""
    queues: str = ""
    queue: str = "user-queue"
    priority: str = ""
    tolerations: tuple[str, ...] = ("google.com/tpu", "cloud.google.com/gke-queued")
    chips: int = 4
    apart_s: float = 2.0
    on_demand_nodes: int = -1
    on_demand: PoolAnswer = PoolAnswer()
    provisioning: tuple[ProvisioningScript, ...] = (ProvisioningScript(),)
    booking_s: float = 600.0
    max_run_s: float = 604_800.0

    def __post_init__(self) -> None:
        label_value("queue", self.queue)
        label_value("priority", self.priority)
        for key in self.tolerations:
            require(bool(TAINT_KEY.fullmatch(key)), "tolerations", key, "keys of taints, like google.com/tpu")
        require(self.chips >= 1, "chips", self.chips, "at least one chip a host")
        require(self.on_demand_nodes >= -1, "on_demand_nodes", self.on_demand_nodes, "a number of nodes, or -1 for all")
        require(bool(self.provisioning), "provisioning", self.provisioning, "at least one script")
        positive("apart_s", self.apart_s, zero_allowed=True)
        positive("booking_s", self.booking_s)
        positive("max_run_s", self.max_run_s)
