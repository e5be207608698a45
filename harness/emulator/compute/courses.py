"""What an instance goes through, as stages on the emulator's clock.

How long each takes at Google is not known to us and varies: the durations are short and of our choosing (assumed). The statuses, their
order, and what becomes of an instance that cannot be migrated are Google's.

Source: https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle, …/docs/instances/host-maintenance-overview
"""

from collections.abc import Sequence
from dataclasses import dataclass

REST = float("inf")
"""The length of a stage that stays."""

TERMINATED_FOR_MAINTENANCE = "compute.instances.terminateOnHostMaintenance"
MIGRATED = "compute.instances.migrateOnHostMaintenance"
RESTARTED = "compute.instances.automaticRestart"
HOST_ERROR = "compute.instances.hostError"
PREEMPTED = "compute.instances.preempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A time in which nothing changes.

    Attributes:
        status: Of the instance.
        lasts_s: How long, in seconds.
        maintenance: ``PENDING`` or ``ONGOING`` while a maintenance is announced or done; empty: none is.
        event: What the platform says that it has done, when the stage begins.
        needs_stock: Whether the zone must have a machine for it to begin.
        removes: Whether the instance is gone with it.
    """

    status: str
    lasts_s: float = REST
    maintenance: str = ""
    event: str = ""
    needs_stock: bool = False
    removes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long things take, in seconds."""

    provisioning_s: float = 0.2
    staging_s: float = 0.2
    stopping_s: float = 0.2
    notice_s: float = 0.2
    maintenance_s: float = 0.2
    reset_s: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How an instance wants to be treated.

    Attributes:
        migrates: Whether it can be moved alive: instances with accelerators cannot, nor can Spot ones.
        restarts: Whether it is started again after the platform has ended it.
        is_deleted: Whether it is deleted rather than stopped when it is preempted.
    """

    migrates: bool
    restarts: bool
    is_deleted: bool = False


def starting(durations: Durations) -> Sequence[Stage]:
    """From nothing, or from a stop, to running."""
    return (
        Stage(status="PROVISIONING", lasts_s=durations.provisioning_s, needs_stock=True),
        Stage(status="STAGING", lasts_s=durations.staging_s),
        Stage(status="RUNNING"),
    )


def stopping(durations: Durations) -> Sequence[Stage]:
    """From running to stopped; it exists still."""
    return (Stage(status="STOPPING", lasts_s=durations.stopping_s), Stage(status="TERMINATED"))


def deleting(durations: Durations) -> Sequence[Stage]:
    """From anything to nothing."""
    return (Stage(status="STOPPING", lasts_s=durations.stopping_s), Stage(status="TERMINATED", removes=True))


def maintained(durations: Durations, policy: Policy) -> Sequence[Stage]:
    """A maintenance of the host: moved alive, or ended and, if wanted, started again."""
    announced = Stage(status="RUNNING", lasts_s=durations.notice_s, maintenance="PENDING")
    if policy.migrates:
        during = Stage(status="RUNNING", lasts_s=durations.maintenance_s, maintenance="ONGOING", event=MIGRATED)
        return (announced, during, Stage(status="RUNNING"))
    ended = (
        Stage(status="STOPPING", lasts_s=durations.stopping_s, maintenance="ONGOING", event=TERMINATED_FOR_MAINTENANCE),
        Stage(status="TERMINATED", lasts_s=durations.maintenance_s, maintenance="ONGOING"),
    )
    return (announced, *ended, *_afterwards(durations, policy))


def broken(durations: Durations, policy: Policy) -> Sequence[Stage]:
    """The host has failed: no notice, no stopping."""
    return (Stage(status="TERMINATED", lasts_s=durations.maintenance_s, event=HOST_ERROR), *_afterwards(durations, policy))


def preempted(durations: Durations, policy: Policy) -> Sequence[Stage]:
    """The platform takes a Spot instance back."""
    return (
        Stage(status="STOPPING", lasts_s=durations.stopping_s, event=PREEMPTED),
        Stage(status="TERMINATED", removes=policy.is_deleted),
    )


def length_s(stages: Sequence[Stage]) -> float:
    """How long stages take until the last one, which stays."""
    return sum(stage.lasts_s for stage in stages if stage.lasts_s != REST)


def _afterwards(durations: Durations, policy: Policy) -> Sequence[Stage]:
    if not policy.restarts:
        return (Stage(status="TERMINATED"),)
    first, *rest = starting(durations)
    return (Stage(status=first.status, lasts_s=first.lasts_s, event=RESTARTED, needs_stock=True), *rest)
