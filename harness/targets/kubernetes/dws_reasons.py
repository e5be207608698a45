"""What GKE's autoscaler writes into a ProvisioningRequest of class ``queued-provisioning.gke.io``: reasons and messages, as data.

Source: module k8s.io/gke-autoscaling/cluster-autoscaler, packages provreqstate (states), provisioningrequests/reconciler/reasons (errors of
resize requests), provisioningrequests/scaleup/reasons (requests that no pool can serve), provisioningrequests/manager (maximum run time).
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from harness.errors import UnknownNameError

PROJECT = "chaos-harness"
ZONE = "us-east5-b"
REGION = "us-east5"
"""Where guide B has its pools; the project is ours to name."""

QUOTA_METRIC = "TPUS_PER_TPU_FAMILY"
"""Named in messages about quota. The form of the message is GCE's own; which metric counts chips of this family is assumed."""


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """Reason and message of a condition."""

    reason: str
    message: str


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One way in which a request fails for good.

    Attributes:
        message: With ``{pool}``, ``{zone}``, ``{region}``, ``{metric}`` to be filled in.
        is_accepted: Whether the request was in the queue before; otherwise it never got there.
    """

    message: str
    is_accepted: bool


NOT_ACCEPTED = Explanation("NotAccepted", "Provisioning Request wasn't accepted.")
ACCEPTED = Explanation("SuccessfullyQueued", "Provisioning Request was successfully queued.")
NOT_PROVISIONED = Explanation("NotProvisioned", "Provisioning Request wasn't provisioned.")
PROVISIONED = Explanation("Provisioned", "Provisioning Request was successfully provisioned.")
BOOKING_EXPIRED = Explanation(
    "BookingExpired",
    "Capacity booking for the Provisioning Request has expired and the nodes are now candidates for scale down when underutilized.",
)
CAPACITY_REVOKED = Explanation(
    "CapacityRevoked", "Capacity provisioned for the Provisioning Request was reclaimed and is no longer available in the cluster."
)

STOCKOUT = Explanation(
    "ResourcePoolExhausted",
    "Waiting for resources. Currently there are not enough resources available to fulfill the request. Expected time is indefinite.",
)
QUOTA_EXCEEDED_MESSAGE = "Quota '{metric}' exceeded.  Limit: 16.0 in region {region}."
"""Two spaces before "Limit": GCE writes it so, and tools that look for the text trip over it."""

MAX_RUN_TOO_SHORT = "InvalidArgument"
MAX_RUN_UNREADABLE = "InvalidArgumentMaxRunDurationParseError"
POOL_SIZE_REACHED = "NodepoolSizeReached"
PODS_FIT_NOWHERE = "ProvisioningRequestNotSchedulableInNodepool"
WAIT_TIME_EXCEEDED = "WaitTimeExceeded"

FAILURES: Mapping[str, Failure] = MappingProxyType(
    {
        "InvalidArgument": Failure(
            message="Specified maxRunDuration is too short. Minimum value is equal to 10 minutes.", is_accepted=False
        ),
        "InvalidArgumentMaxRunDurationParseError": Failure(
            message="Additional parameter maxRunDurationSeconds could not be parsed.", is_accepted=False
        ),
        "NodepoolSizeReached": Failure(message="Max nodepool size reached, affected nodepools: {pool}", is_accepted=False),
        "ProvisioningRequestNotSchedulableInNodepool": Failure(
            message="Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking errors: {pool} "
            "(Insufficient google.com/tpu)",
            is_accepted=False,
        ),
        "OutOfResources": Failure(message="Max cluster limit reached, nodepools out of resources: {pool} (cpu, memory)", is_accepted=False),
        "NoQueuedNodepoolAvailable": Failure(
            message="No nodepool with QueuedProvisioning enabled is available for scale up", is_accepted=False
        ),
        "QueuingInfeasibleNoCapacity": Failure(
            message="Could not enqueue the Provisioning Request due to insufficient capacity in zone {zone}. "
            "Try different locations or hardware.",
            is_accepted=False,
        ),
        "ZoneNotSupported": Failure(
            message="Provisioning Request is not supported in this zone. Try different locations.", is_accepted=False
        ),
        "InternalErrorFailedToQueue": Failure(
            message='Provisioning Request failed to queue in nodepool "{pool}" in zone {zone}, got error: '
            "[ZONE_RESOURCE_POOL_EXHAUSTED] \"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to "
            'fulfill the request. Try a different zone, or try again later."',
            is_accepted=False,
        ),
        "QuotaExceeded": Failure(message=QUOTA_EXCEEDED_MESSAGE, is_accepted=True),
        "ResourcePoolExhausted": Failure(message=STOCKOUT.message, is_accepted=True),
        "WaitTimeExceeded": Failure(
            message="Provisioning Request could not provision queued instances in the allocated time.", is_accepted=True
        ),
        "InternalErrorResizeRequestFailed": Failure(
            message="Provisioning Request failed, but no errors with details can be provided.", is_accepted=True
        ),
    }
)
"""By reason. ``OutOfResources`` names the limits that were reached; which these are is assumed."""


def failure_of(reason: str) -> Failure:
    """The failure of that reason.

    Raises:
        UnknownNameError: When GKE has none, or none whose message is known.
    """
    if reason not in FAILURES:
        raise UnknownNameError(kind="failure of a ProvisioningRequest", name=reason, known=list(FAILURES))
    return FAILURES[reason]


def explain_failure(reason: str, *, pool: str) -> Explanation:
    """Reason and message of the condition ``Failed``.

    Raises:
        UnknownNameError: As ``failure_of``.
    """
    return Explanation(reason, _filled(failure_of(reason).message, pool))


def quota_exceeded(*, pool: str) -> Explanation:
    """What an accepted request waits for when quota is exceeded; of several errors this one is shown, since a user can act on it."""
    return Explanation("QuotaExceeded", _filled(QUOTA_EXCEEDED_MESSAGE, pool))


def _filled(message: str, pool: str) -> str:
    return message.format(pool=pool, zone=ZONE, region=REGION, project=PROJECT, metric=QUOTA_METRIC)
