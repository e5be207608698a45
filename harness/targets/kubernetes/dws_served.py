"""A ProvisioningRequest while it is served, and how its status is written."""

from dataclasses import dataclass, field

from harness.clock import Clock
from harness.history import ConditionState
from harness.kind import NodePool
from harness.targets.kubernetes.api import PROVISIONING_REQUESTS, Api, Object
from harness.targets.kubernetes.dws_course import Course, Step
from harness.targets.kubernetes.dws_requests import Asked, details_of
from harness.targets.kubernetes.dws_states import State, classify, next_conditions


@dataclass(slots=True)
class Served:
    """One request.

    Attributes:
        course: Where it goes.
        conditions: As they were written last.
        times: When each was, by its type, as the API writes times.
        needed: Nodes for its pods; 0 until it was accepted.
        nodes: Machines of it that are there or on their way.
        used_s: When each node was last seen in use.
        closed: Nodes that take no new pods, since they are about to go.
        is_deleted: It is gone, and only its nodes are still to be seen to.
        quiet_until_s: It is left alone until then.
    """

    course: Course
    conditions: tuple[ConditionState, ...] = ()
    times: dict[str, str] = field(default_factory=dict)
    needed: int = 0
    nodes: tuple[str, ...] = ()
    used_s: dict[str, float] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    is_deleted: bool = False
    quiet_until_s: float = 0.0

    @property
    def state(self) -> State:
        """What its conditions say."""
        return classify(self.conditions)

    @property
    def asked(self) -> Asked:
        """The request as it was made."""
        return self.course.asked


class StatusWriter:
    """Writes the status of requests, in legal steps only."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock

    def move(self, served: Served, *steps: Step) -> None:
        """Write what steps make of the conditions, in one update; nothing when they say so already.

        Raises:
            ApiError: When the API server does not take it; the request is then where it was.
            IllegalTransitionError: When GKE never would take one of them.
        """
        conditions = served.conditions
        for step in steps:
            conditions = next_conditions(conditions, step.state, step.explanation)
        if conditions == served.conditions:
            return
        utc = self._clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
        times = served.times | {written.type: utc for written in conditions if written not in served.conditions}
        self._patch(served.asked, {"conditions": [_as_json(condition, times) for condition in conditions]})
        served.conditions, served.times = conditions, times

    def assign(self, served: Served, pool: NodePool) -> None:
        """Write which pool serves a request that is about to be accepted.

        Raises:
            ApiError: As ``move``.
        """
        self._patch(served.asked, {"provisioningClassDetails": details_of(served.asked, pool)})

    def _patch(self, asked: Asked, status: Object) -> None:
        self._api.patch(PROVISIONING_REQUESTS, asked.name, {"status": status}, namespace=asked.namespace, subresource="status")


def _as_json(condition: ConditionState, times: dict[str, str]) -> Object:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": times[condition.type],
        "observedGeneration": 1,  # a request's spec never changes
    }
