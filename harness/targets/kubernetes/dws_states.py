"""The states of a ProvisioningRequest as GKE's autoscaler reads and writes them: which conditions are legal, and what may follow.

::

    Uninitialized ── Pending ── Accepted ── Provisioned ── BookingExpired ── CapacityRevoked
          │             │           │
          └─────────────┴───────────┴── Failed

Kueue's own tests set ``Provisioned`` without ``Accepted``: GKE holds that for invalid, so it is refused here.

Source: module k8s.io/gke-autoscaling/cluster-autoscaler, package provreqstate (states), provisioningrequests/reconciler (transitions).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from harness.errors import BrokenHarnessError
from harness.history import ConditionState
from harness.targets.kubernetes import dws_reasons
from harness.targets.kubernetes.dws_reasons import Explanation


class State(StrEnum):
    """What a set of conditions says of a request. ``INVALID``: it is none that GKE would write."""

    UNINITIALIZED = "Uninitialized"
    PENDING = "Pending"
    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"
    FAILED = "Failed"
    INVALID = "Invalid"


DEPRECATED_CONDITION = "Provisioning"
"""Older autoscalers wrote it; it is read over."""

CONDITION_TYPES = frozenset({State.ACCEPTED, State.PROVISIONED, State.BOOKING_EXPIRED, State.CAPACITY_REVOKED, State.FAILED})
"""The condition of these states has the state's name."""

TERMINAL_STATES = frozenset({State.FAILED, State.CAPACITY_REVOKED})

FOLLOWERS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.UNINITIALIZED: frozenset({State.PENDING, State.FAILED}),  # failed without a look: its time to wait was over
        State.PENDING: frozenset({State.PENDING, State.ACCEPTED, State.FAILED}),
        State.ACCEPTED: frozenset({State.ACCEPTED, State.PROVISIONED, State.FAILED}),
        State.PROVISIONED: frozenset({State.BOOKING_EXPIRED}),
        State.BOOKING_EXPIRED: frozenset({State.CAPACITY_REVOKED}),
        State.CAPACITY_REVOKED: frozenset(),
        State.FAILED: frozenset(),
        State.INVALID: frozenset(),
    }
)
"""What may follow. A state that follows itself only explains anew why the request waits."""

_REQUIRED: Sequence[tuple[State, frozenset[State], frozenset[State]]] = (
    (State.CAPACITY_REVOKED, frozenset({State.ACCEPTED, State.PROVISIONED, State.BOOKING_EXPIRED}), frozenset({State.FAILED})),
    (State.BOOKING_EXPIRED, frozenset({State.ACCEPTED, State.PROVISIONED}), frozenset({State.FAILED})),
    (State.FAILED, frozenset(), frozenset({State.PROVISIONED})),
    (State.PROVISIONED, frozenset({State.ACCEPTED}), frozenset()),
    (State.ACCEPTED, frozenset(), frozenset()),
)
"""The first state whose condition holds is the request's; others that must hold with it, and those that must not."""

_EXPLANATIONS: Mapping[State, Explanation] = MappingProxyType(
    {
        State.ACCEPTED: dws_reasons.ACCEPTED,
        State.PROVISIONED: dws_reasons.PROVISIONED,
        State.BOOKING_EXPIRED: dws_reasons.BOOKING_EXPIRED,
        State.CAPACITY_REVOKED: dws_reasons.CAPACITY_REVOKED,
        State.FAILED: Explanation("Failed", "Provisioning Request has failed."),
    }
)


class IllegalTransitionError(BrokenHarnessError):
    """A request was to be moved as GKE never would."""

    def __init__(self, *, seen: State, wanted: State) -> None:
        self.seen, self.wanted = seen, wanted
        followers = ", ".join(sorted(FOLLOWERS[seen])) or "nothing"
        super().__init__(f"a ProvisioningRequest that is {seen} cannot become {wanted}: GKE lets only {followers} follow")


def classify(conditions: Sequence[ConditionState]) -> State:
    """The state that a set of conditions stands for, by GKE's own rules."""
    if not conditions:
        return State.UNINITIALIZED
    types = [condition.type for condition in conditions]
    if len(set(types)) != len(types) or not set(types) <= {*CONDITION_TYPES, DEPRECATED_CONDITION}:
        return State.INVALID
    relevant = [condition for condition in conditions if condition.type != DEPRECATED_CONDITION]
    if any(condition.status not in {"True", "False"} for condition in relevant):
        return State.INVALID
    holding = {condition.type for condition in relevant if condition.status == "True"}
    for state, with_it, without_it in _REQUIRED:
        if state in holding:
            return state if with_it <= holding and not without_it & holding else State.INVALID
    return State.PENDING


def next_conditions(
    conditions: Sequence[ConditionState], state: State, explanation: Explanation | None = None
) -> tuple[ConditionState, ...]:
    """The conditions of a request that is moved to ``state``.

    Args:
        conditions: Those it has.
        state: Where it goes. The state it is in already: only why it waits is written anew.
        explanation: Reason and message; GKE's own by default. To wait needs one.

    Raises:
        IllegalTransitionError: When GKE never moves a request so.
    """
    seen = classify(conditions)
    if state not in FOLLOWERS[seen] or (state == seen and explanation is None):
        raise IllegalTransitionError(seen=seen, wanted=state)
    if state == State.PENDING:
        return _with(conditions, State.ACCEPTED, "False", explanation or dws_reasons.NOT_ACCEPTED)
    if state == seen:
        return _with(conditions, State.PROVISIONED, "False", explanation or dws_reasons.NOT_PROVISIONED)
    return _with(conditions, state, "True", explanation or _EXPLANATIONS[state])


def _with(conditions: Sequence[ConditionState], kind: State, status: str, explanation: Explanation) -> tuple[ConditionState, ...]:
    """A condition replaced where it stands, or added at the end, as the autoscaler does it."""
    written = ConditionState(type=kind, status=status, reason=explanation.reason, message=explanation.message)
    if any(condition.type == kind for condition in conditions):
        return tuple(written if condition.type == kind else condition for condition in conditions)
    return (*conditions, written)
