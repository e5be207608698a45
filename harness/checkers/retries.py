"""Attempts stay within their number, and each death that used one up is explained.

The platform charges every non-zero exit to the same budget, preemptions too (guide A: "this uses one retry on purpose"): what is charged
for an injected death is counted apart from what the job broke by itself.
"""

from dataclasses import dataclass

from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, FaultObserved, FaultRequested
from harness.lineage import Attempt
from harness.scenario.expectations import WithinRetries
from harness.verdict import Finding

CHECKER = "within-retries"

GANG_CAUSES = frozenset({"fault", "timeout", "cancel", "grace", "platform"})
"""Causes of an exit that the platform or an injection is behind."""


@dataclass(frozen=True, slots=True)
class _Death:
    """An attempt that was followed by another, or failed for good."""

    attempt: Attempt
    exit: AttemptExited
    injections: tuple[str, ...]

    @property
    def is_injected(self) -> bool:
        return bool(self.injections) or self.exit.cause in GANG_CAUSES

    def __str__(self) -> str:
        how = f"signal {self.exit.signal}" if self.exit.exit_code is None else f"exit code {self.exit.exit_code}"
        because = f"injected: {', '.join(self.injections)}" if self.injections else f"cause: {self.exit.cause}"
        return f"task {self.attempt.task} attempt {self.attempt.number} ended with {how} at {self.exit.t_s:.2f} s ({because})"


def check(expectation: WithinRetries, evidence: Evidence) -> Finding:
    """Count attempts and deaths of each task."""
    ruling = Ruling()
    attempts_max = own = charged = 0
    for task in evidence.lineage.tasks:
        attempts = evidence.lineage.attempts_of(task)
        attempts_max = max(attempts_max, len(attempts))
        if len(attempts) > expectation.attempts_max:
            ruling.broken.append(f"task {task} took {len(attempts)} attempts, {expectation.attempts_max} are promised")
        deaths = _deaths(attempts, evidence)
        ruling.facts += [str(death) for death in deaths]
        mine = [death for death in deaths if not death.is_injected]
        own, charged = own + len(mine), charged + len(deaths) - len(mine)
        if len(mine) > expectation.own_failures_max:
            ruling.broken.append(f"{len(mine)} attempts died of the job itself, {expectation.own_failures_max} are allowed: {mine[0]}")
        _judge_after_success(attempts, ruling)
        if any(attempt.exit is None and attempt.abandoned_s is None for attempt in attempts):
            ruling.doubts.append(f"task {task} has an attempt whose end was not seen")
    ruling.measures = {"attempts": float(attempts_max), "own_failures": float(own), "charged_preemptions": float(charged)}
    nothing = "" if evidence.lineage.attempts else "no attempt was seen"
    return ruling.conclude(
        CHECKER,
        f"{attempts_max} attempts of at most {expectation.attempts_max}; {charged} injected deaths charged, {own} of the job's own",
        nothing=nothing,
    )


def _deaths(attempts: tuple[Attempt, ...], evidence: Evidence) -> list[_Death]:
    deaths: list[_Death] = []
    for attempt in attempts:
        if attempt.exit is None or attempt.exit.exit_code == 0 or attempt.exit.cause == "stop":
            continue
        deaths.append(_Death(attempt, attempt.exit, _injections(attempt, evidence)))
    return deaths


def _injections(attempt: Attempt, evidence: Evidence) -> tuple[str, ...]:
    """Injections that acted on an attempt before it ended and whose effect was seen."""
    seen = {(event.injection, event.attempt) for event in evidence.events if isinstance(event, FaultObserved)}
    end_s = attempt.exit.t_s if attempt.exit else float("inf")
    acted = [
        event
        for event in evidence.events
        if isinstance(event, FaultRequested) and (event.task, event.attempt) == (attempt.task, attempt.number)
    ]
    return tuple(event.injection for event in acted if event.t_s <= end_s and (event.injection, event.attempt) in seen)


def _judge_after_success(attempts: tuple[Attempt, ...], ruling: Ruling) -> None:
    for earlier, later in zip(attempts, attempts[1:], strict=False):
        if earlier.exit is not None and earlier.exit.exit_code == 0 and earlier.abandoned_s is None:
            ruling.broken.append(f"attempt {later.number} of task {later.task} was started although attempt {earlier.number} had exited 0")
