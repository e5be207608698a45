"""The course of one ProvisioningRequest: what GKE would say of it next, by the scenario's script and the clock. No cluster here."""

from dataclasses import dataclass

from harness.scenario import Cluster, Phase, ProvisioningScript
from harness.targets.kubernetes.dws_reasons import STOCKOUT, WAIT_TIME_EXCEEDED, Explanation, explain_failure, failure_of, quota_exceeded
from harness.targets.kubernetes.dws_requests import Asked
from harness.targets.kubernetes.dws_states import State


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next: the request goes to ``state``. To the state it is in: it waits, and says why."""

    state: State
    explanation: Explanation | None = None


@dataclass(slots=True)
class Course:
    """One request from the moment it was seen.

    Attributes:
        asked: The request.
        script: What becomes of it.
        cluster: How long capacity is booked and lasts.
        pool: Name of the pool that serves it.
        seen_s: When it was seen.
        phase: Index of the script's phase that comes next.
        phase_s: When the phase before began.
        provisioned_s: When its capacity was there.
    """

    asked: Asked
    script: ProvisioningScript
    cluster: Cluster
    pool: str
    seen_s: float
    phase: int = 0
    phase_s: float = 0.0
    provisioned_s: float = 0.0

    def next_steps(self, state: State, now_s: float) -> tuple[Step, ...]:
        """What GKE does now; empty: nothing. It is done when ``took`` is told so of each.

        Several are of the same moment and must be seen together: Kueue acts within milliseconds on whatever it finds between two.
        """
        step = self._next_step(state, now_s)
        if step is None:
            return ()
        if step.state == State.PROVISIONED and self._booked_s(self.phase + 1) == 0:
            return step, Step(State.BOOKING_EXPIRED)
        if step.state == State.BOOKING_EXPIRED and self._booked_s(self.phase) == self.max_run_s:
            return step, Step(State.CAPACITY_REVOKED)
        return (step,)

    def took(self, step: Step, before: State, now_s: float) -> None:
        """Note that a step was done, and when."""
        if step.state in {State.ACCEPTED, State.PROVISIONED}:
            self.phase += 1 if before == State.ACCEPTED else 0
            self.phase_s = now_s
        if step.state == State.PROVISIONED:
            self.provisioned_s = now_s

    @property
    def max_run_s(self) -> float:
        """How long its capacity lasts."""
        return min(self.asked.max_run_s, self.cluster.max_run_s)

    @property
    def booked_until_s(self) -> float:
        """Until when its nodes are kept for it; never past the end of the capacity, which GKE declares only after that of the booking."""
        return self.provisioned_s + self._booked_s(self.phase)

    def _next_step(self, state: State, now_s: float) -> Step | None:
        if state in {State.UNINITIALIZED, State.PENDING, State.ACCEPTED} and now_s >= self.seen_s + self.asked.valid_s:
            return self._failed(WAIT_TIME_EXCEEDED)
        if state == State.UNINITIALIZED:
            return Step(State.PENDING)
        if state == State.PENDING:
            return self._out_of_pending(now_s)
        if state == State.ACCEPTED:
            return self._out_of_accepted(now_s)
        if state == State.PROVISIONED:
            return Step(State.BOOKING_EXPIRED) if now_s >= self.booked_until_s else None
        if state == State.BOOKING_EXPIRED:
            return Step(State.CAPACITY_REVOKED) if now_s >= self.provisioned_s + self.max_run_s else None
        return None

    def _booked_s(self, index: int) -> float:
        """How long the booking lasts when phase ``index`` follows the grant."""
        following = self._phase(index)
        scripted_s = following.after_s if following is not None and following.state == "booking-expired" else float("inf")
        return min(self.cluster.booking_s, scripted_s, self.max_run_s)

    def _out_of_pending(self, now_s: float) -> Step | None:
        if problem := self.asked.problem():
            return self._failed(problem)
        first = self.script.phases[0]
        if first.state == "failed" and not failure_of(first.reason).is_accepted:
            return self._failed(first.reason) if now_s >= self.seen_s + first.after_s else None
        return Step(State.ACCEPTED)

    def _out_of_accepted(self, now_s: float) -> Step | None:
        following = self._phase(self.phase)
        if following is None or now_s < self.phase_s + following.after_s:
            return None
        if following.state == "stockout":
            return Step(State.ACCEPTED, STOCKOUT)
        if following.state == "quota-exceeded":
            return Step(State.ACCEPTED, quota_exceeded(pool=self.pool))
        if following.state == "failed":
            return self._failed(following.reason)
        return Step(State.PROVISIONED) if following.state == "granted" else None

    def _failed(self, reason: str) -> Step:
        return Step(State.FAILED, explain_failure(reason, pool=self.pool))

    def _phase(self, index: int) -> Phase | None:
        return self.script.phases[index] if index < len(self.script.phases) else None
