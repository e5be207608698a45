"""When an object in the cluster is seen to come into a state: counts the changes, not how often it is told."""

from harness.history import Event
from harness.history.cluster import ConditionState, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.scenario.triggers import OnCondition


class Transitions:
    """How often the objects of a task have come into the state that a trigger waits for."""

    def __init__(self, at: OnCondition, task: int) -> None:
        self._at = at
        self._task = task
        self._holds: dict[str, bool] = {}
        self._count = 0

    def see(self, event: Event) -> bool:
        """Take in an event, and say whether by it the state was reached for the nth time."""
        if not isinstance(event, WorkloadSeen | ProvisioningSeen | SubmissionSeen) or event.task != self._task or not self._concerns(event):
            return False
        held, self._holds[event.uid] = self._holds.get(event.uid), self._is_so(event)
        if held or not self._holds[event.uid] or self._is_false_from_the_start(event, held):
            return False
        self._count += 1
        return self._count == self._at.nth

    def _concerns(self, event: WorkloadSeen | ProvisioningSeen | SubmissionSeen) -> bool:
        kinds = {"workload": WorkloadSeen, "provisioning-request": ProvisioningSeen, "submission": SubmissionSeen}
        return isinstance(event, kinds[self._at.of])

    def _is_so(self, event: WorkloadSeen | ProvisioningSeen | SubmissionSeen) -> bool:
        if isinstance(event, SubmissionSeen):
            is_reason = self._at.reason in ("", event.reason)
            return is_reason and (event.status == self._at.condition) is (self._at.status == "True")
        return any(self._is_met(condition) for condition in event.conditions)

    def _is_met(self, condition: ConditionState) -> bool:
        wanted = (self._at.condition, self._at.status)
        return (condition.type, condition.status) == wanted and self._at.reason in ("", condition.reason)

    def _is_false_from_the_start(self, event: Event, held: bool | None) -> bool:  # noqa: FBT001  what was seen before, if anything
        """An object that is submitted is in no state yet: it has not left one."""
        return isinstance(event, SubmissionSeen) and self._at.status == "False" and held is None
