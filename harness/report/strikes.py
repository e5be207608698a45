"""Faults as spans of time: requested, observed, healed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.history import Event, FaultFailed, FaultHealed, FaultObserved, FaultRequested

STANDING = frozenset(
    {
        "pause",
        "fail-writes",
        "slow-writes",
        "overlap-attempts",
        "cordon-node",
        "drain-node",
        "break-node",
        "lose-node",
        "lose-pool",
        "interrupt-node",
        "evict-workload",
        "preempt-workload",
        "lower-quota",
        "limit-namespace",
        "occupy-capacity",
        "forget-image",
    }
)
"""Kinds of fault that have a duration; ``maintenance`` has one where a CPU task is migrated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One act of an injection; each later moment is None where it was not recorded.

    Attributes:
        injection, fault: Its name and kind.
        task, attempt, rank: Whom it hit; rank -1 is the whole attempt.
        requested_s: It acted.
        observed_s, evidence: Its effect was seen, and by what.
        healed_s, healing: It was undone, or had nothing left to undo.
        failed_s, failure: It could not act.
        detail: What it did.
    """

    injection: str
    fault: str
    task: int
    attempt: int
    rank: int
    requested_s: float
    detail: str = ""
    observed_s: float | None = None
    evidence: str = ""
    healed_s: float | None = None
    healing: str = ""
    failed_s: float | None = None
    failure: str = ""

    @property
    def stands(self) -> bool:
        """Whether it goes on until it is healed; others are over with their effect, and healing finds nothing to undo."""
        is_migration = self.fault == "maintenance" and not self.healing.startswith("nothing to heal")
        return self.fault in STANDING or is_migration

    @property
    def last_s(self) -> float:
        """The last of it that has a place in time."""
        moments = (self.requested_s, self.observed_s, self.failed_s, self.healed_s if self.stands else None)
        return max(moment for moment in moments if moment is not None)


def strikes_of(events: Iterable[Event]) -> tuple[Strike, ...]:
    """The acts of all injections in order; what follows a request is that of its injection in its attempt, up to the next request."""
    acts = [event for event in events if isinstance(event, FaultRequested | FaultObserved | FaultHealed | FaultFailed)]
    requests = [(index, act) for index, act in enumerate(acts) if isinstance(act, FaultRequested)]
    return tuple(_strike(request, acts[index + 1 :]) for index, request in requests)


def _strike(request: FaultRequested, later: Sequence[FaultRequested | FaultObserved | FaultHealed | FaultFailed]) -> Strike:
    place = (request.injection, request.task, request.attempt)
    observed: FaultObserved | None = None
    healed: FaultHealed | None = None
    failed: FaultFailed | None = None
    for act in later:
        if (act.injection, act.task, act.attempt) != place:
            continue
        if isinstance(act, FaultRequested):
            break
        observed = act if observed is None and isinstance(act, FaultObserved) else observed
        healed = act if healed is None and isinstance(act, FaultHealed) else healed
        failed = act if failed is None and isinstance(act, FaultFailed) else failed
    return Strike(
        injection=request.injection,
        fault=request.fault,
        task=request.task,
        attempt=request.attempt,
        rank=request.rank,
        requested_s=request.t_s,
        detail=request.detail,
        observed_s=observed.t_s if observed is not None else None,
        evidence=observed.evidence if observed is not None else "",
        healed_s=healed.t_s if healed is not None else None,
        healing=healed.evidence if healed is not None else "",
        failed_s=failed.t_s if failed is not None else None,
        failure=failed.detail if failed is not None else "",
    )
