"""What a gate may take, and what of it is used up."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.clock import Clock
from harness.gate.document import BudgetTable
from harness.report.wording import limit


@dataclass(slots=True, kw_only=True)
class Budget:
    """Counts what runs take.

    Attributes:
        allowed: What all of them may.
        clock: For the time.
        gpus: What a run may hold at once, by scenario.
        began_s: When the first one began, monotonic.
        used_gpu_s: By the runs of batches that are over.
    """

    allowed: BudgetTable
    clock: Clock
    gpus: Mapping[str, int] = field(default_factory=dict)
    began_s: float
    used_gpu_s: float = 0.0

    @property
    def duration_s(self) -> float:
        """Since the first run began."""
        return self.clock.monotonic_s() - self.began_s

    @property
    def gpu_hours(self) -> float:
        """Of the batches that are over."""
        return self.used_gpu_s / 3600.0

    def exhausted(self, lasted_s: Mapping[str, float]) -> str:
        """Why no more may be done; empty: go on.

        Args:
            lasted_s: How long each run of the present batch has taken, by scenario, those that go on included.
        """
        allowed = self.allowed
        if allowed.duration_s is not None and self.duration_s >= allowed.duration_s:
            return f"the budget of {limit(allowed.duration_s)} is used up"
        used = (self.used_gpu_s + self._gpu_s(lasted_s)) / 3600.0
        if allowed.gpu_hours is not None and self.holds_gpus and used >= allowed.gpu_hours:
            return f"the budget of {allowed.gpu_hours:g} GPU-hours is used up"
        return ""

    @property
    def holds_gpus(self) -> bool:
        """Whether any run may hold one: else GPU-hours cannot be used up."""
        return any(self.gpus.values())

    def charge(self, lasted_s: Mapping[str, float]) -> None:
        """A batch is over."""
        self.used_gpu_s += self._gpu_s(lasted_s)

    def _gpu_s(self, lasted_s: Mapping[str, float]) -> float:
        return sum(seconds * self.gpus.get(name, 0) for name, seconds in lasted_s.items())
