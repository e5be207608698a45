"""What of the platform was real in a run, what was played, and which values behind it nobody has verified."""

from collections.abc import Iterator

from harness.capabilities import Fidelity
from harness.history import AttemptExited, SignalSent
from harness.report.record import Record
from harness.scenario import GRACE_PROFILES, GraceProfile, kind_of
from harness.scenario.cluster_faults import InterruptNode
from harness.scenario.faults import Maintenance

_BY_FAULT = {
    "expire-timeout": "cloudrun-job-timeout",
    "cancel-execution": "cloudrun-job-cancel",
    "drain-ray-node": "ray-drain",
    "lose-node": "gke-host-error",
    "lose-pool": "gke-host-error",
}
_BY_CAUSE = {"timeout": "cloudrun-job-timeout", "cancel": "cloudrun-job-cancel"}

_ORDER = {"absent": 0, "emulated": 1, "real": 2}


def fidelity_of(record: Record) -> tuple[Fidelity, ...]:
    """What the target said of itself, what is missing first."""
    return tuple(sorted(record.fidelity or (), key=lambda row: (_ORDER[row.here], row.verified)))


def profiles_of(record: Record) -> tuple[GraceProfile, ...]:
    """The grace profiles that the run's faults and exits went by."""
    names = set(_profile_names(record))
    return tuple(profile for profile in GRACE_PROFILES if profile.name in names)


def _profile_names(record: Record) -> Iterator[str]:
    for injection in record.scenario.injections if record.scenario is not None else ():
        if isinstance(injection.fault, Maintenance | InterruptNode):
            yield injection.fault.profile
        yield _BY_FAULT.get(kind_of(injection.fault), "")
    for event in record.events:
        if isinstance(event, SignalSent | AttemptExited):
            yield _BY_CAUSE.get(event.cause, "")
