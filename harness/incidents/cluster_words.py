"""Words of Kueue, GKE's autoscaler and Compute Engine in log entries, and what they mean.

Sources: kueue, pkg/workload and pkg/scheduler (reasons and messages of events); module k8s.io/gke-autoscaling/cluster-autoscaler, packages
provreqstate and reasons (conditions of requests); https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-autoscaler-visibility;
https://docs.cloud.google.com/compute/docs/instances/monitor-host-events (methods of system events).
That the autoscaler tells conditions of a request as events with these reasons is assumed.
"""

import re
from collections.abc import Mapping
from typing import Literal

from harness.incidents.diagnosis import DiagnosisKind

NO_QUOTA = re.compile(r"\binsufficient (?:unused )?quota\b|\bmaximum capacity\b", re.IGNORECASE)
"""Kueue cannot reserve quota: ``couldn't assign flavors to pod set main: insufficient unused quota for google.com/tpu in flavor …``."""

STOCKOUT = re.compile(
    r"there are (?:currently )?not enough resources available to fulfill the request|does not have enough resources available"
    r"|ZONE_RESOURCE_POOL_EXHAUSTED|GCE out of resources|is currently unavailable in the",
    re.IGNORECASE,
)
"""Capacity, and not quota, is missing. The bare words "resource pool exhausted" are none of it: addresses run out with them too."""

PROJECT_QUOTA = re.compile(r"^Quota '[A-Z0-9_]{1,80}' exceeded|GCE quota exceeded|Insufficient regional quota")

OUT_OF_MEMORY = re.compile(r"OOMKill|\bout of memory\b", re.IGNORECASE)

MAINTENANCE = re.compile(r"\bmaintenance\b|impending-node-termination", re.IGNORECASE)

EVICTED_PREFIX = "EvictedDueTo"
PREEMPTED_REASONS = frozenset({"Preempted", "EvictedDueToPreempted"})
DEACTIVATED_REASONS = frozenset({"AdmissionCheckRejected", "Deactivated"})

AutoscalerError = Literal["stockout", "project-quota"]

AUTOSCALER_ERRORS: Mapping[str, AutoscalerError] = {
    "scale.up.error.out.of.resources": "stockout",
    "scale.up.error.quota.exceeded": "project-quota",
}
"""Message ids of the visibility log. ``scale.up.error.ip.space.exhausted`` is neither: addresses are missing, and waiting brings none."""

INSTANCE_EVENTS: Mapping[str, DiagnosisKind] = {
    "compute.instances.hostError": "host-error",
    "compute.instances.preempted": "node-preempted",
    "compute.instances.terminateOnHostMaintenance": "node-maintenance",
    "compute.instances.migrateOnHostMaintenance": "node-maintenance",
}

REQUEST_CONDITIONS: Mapping[str, tuple[str, str]] = {
    "SuccessfullyQueued": ("Accepted", "True"),
    "NotAccepted": ("Accepted", "False"),
    "Provisioned": ("Provisioned", "True"),
    "NotProvisioned": ("Provisioned", "False"),
    "ResourcePoolExhausted": ("Provisioned", "False"),
    "QuotaExceeded": ("Provisioned", "False"),
    "BookingExpired": ("BookingExpired", "True"),
    "CapacityRevoked": ("CapacityRevoked", "True"),
    "WaitTimeExceeded": ("Failed", "True"),
    "QueuingInfeasibleNoCapacity": ("Failed", "True"),
}
"""By reason: the condition of a ProvisioningRequest, and its status."""

FINISHED_WELL = frozenset({"Succeeded", "Finished", "FinishedWorkload"})
"""Reasons for which a workload is finished and its job complete. A job that failed is finished too, and so is the slice of an elastic job
that another one has replaced. Source: kueue, apis/kueue/v1beta2/workload_types.go (reasons of ``Finished``)."""

QUIET_REASONS = frozenset(
    {
        "AdmissionCheckUpdated",
        "BackOff",
        "Completed",
        "Created",
        "CreatedRayCluster",
        "CreatedRayJobSubmitter",
        "CreatedWorkload",
        "DeletedRayCluster",
        "FailedScaleUp",
        "FailedScheduling",
        "Killing",
        "NodeReady",
        "NodeSchedulable",
        "NotTriggerScaleUp",
        "ProvisioningRequestCreated",
        "Pulled",
        "Pulling",
        "RegisteredNode",
        "Resumed",
        "Scheduled",
        "Started",
        "Starting",
        "Stopped",
        "SuccessfulCreate",
        "SuccessfulDelete",
        "Suspended",
        "TriggeredScaleUp",
        "UpdatedWorkload",
    }
)
"""Reasons of events that are known; what some of them say in their message is looked at besides."""

TOLD_REASONS = frozenset(
    {
        "Admitted",
        "BackoffLimitExceeded",
        "Failed",
        "Finished",
        "FinishedWorkload",
        "Pending",
        "QuotaReserved",
        "Succeeded",
        *PREEMPTED_REASONS,
        *DEACTIVATED_REASONS,
        *REQUEST_CONDITIONS,
        *INSTANCE_EVENTS,
    }
)
"""Those that say what happened by themselves."""

_TELLING = (NO_QUOTA, STOCKOUT, PROJECT_QUOTA, OUT_OF_MEMORY, MAINTENANCE)


def is_known(reason: str, message: str) -> bool:
    """Whether an event is of a kind that we know, or says something that we know."""
    if reason in QUIET_REASONS or reason in TOLD_REASONS or reason.startswith(EVICTED_PREFIX):
        return True
    return any(pattern.search(f"{reason} {message}") for pattern in _TELLING)
