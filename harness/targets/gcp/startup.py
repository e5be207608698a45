"""Time in which Cloud Run places GPUs, pulls images and starts containers: no part of the job, so no deadline of it counts then."""

from dataclasses import dataclass

from harness.capabilities import Launch
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.watching import Standing

STARTING_S = 300.0
"""Granted before the first attempt runs: placing a GPU and pulling images. Assumed, not measured."""

RESTARTING_S = 60.0
"""Granted before each further one. Assumed, not measured."""


def startup_s_max(max_retries: int) -> float:
    """What an execution is granted at most, over all starts."""
    return STARTING_S + RESTARTING_S * max_retries


@dataclass(slots=True)
class Startup:
    """Adds up how long the execution has waited for containers.

    Attributes:
        longest_s: Beyond that time counts as the job's.
    """

    longest_s: float
    _counted_s: float = 0.0
    _since_s: float | None = None

    def note(self, *, is_starting: bool, now_s: float) -> None:
        """How it stands now."""
        if self._since_s is not None:
            self._counted_s += now_s - self._since_s
        self._since_s = now_s if is_starting else None

    @property
    def total_s(self) -> float:
        """How long it was until the last note."""
        return min(self.longest_s, self._counted_s)


def is_starting(launch: Launch, attempts: Attempts, standing: Standing) -> bool:
    """Whether fewer tasks run than could: some attempt waits for its container, or, when it has one, for our word."""
    if attempts.is_stopping or attempts.is_cancelled or standing.execution.is_over:
        return False
    running = {key.task for key, attempt in attempts.by_key.items() if attempt.is_running}
    ended = {task.index for task in standing.tasks.values() if task.is_over}
    ended |= {key.task for key, attempt in attempts.by_key.items() if attempt.is_last(launch.max_retries)}
    due = launch.tasks - len(ended - running)
    return len(running) < (min(due, launch.parallelism) if launch.parallelism else due)
