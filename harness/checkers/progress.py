"""Restarts lead on: no series of them ends without a higher durable step, and no step kills the job again and again.

The rule is that of NVIDIA's resiliency extension: consecutive restarts whose newest step rises by less than a minimum are cycles without
progress. Source: nvidia-resiliency-ext, ``--ft-...`` progress tracking (3 cycles, 1 step); cited in the facts as NVRx.
"""

from collections.abc import Sequence

from harness.checkers.evidence import Evidence, Ruling
from harness.lineage import Attempt
from harness.scenario.expectations import MakesProgress
from harness.verdict import Finding

CHECKER = "makes-progress"


def check(expectation: MakesProgress, evidence: Evidence) -> Finding:
    """Follow the newest durable step from attempt to attempt."""
    ruling = Ruling()
    worst = 0
    for task in evidence.lineage.tasks:
        attempts = evidence.lineage.attempts_of(task)
        cycles = 0
        for attempt in attempts:
            before, after = _newest(attempt.started_s, task, evidence), _newest(_end_s(attempt), task, evidence)
            failed = attempt.exit is not None and attempt.exit.exit_code != 0 and attempt.exit.cause != "stop"
            ruling.facts.append(
                f"task {task} attempt {attempt.number}: newest durable step {before} before, {after} after{'' if failed else ', not a failure'}"
            )
            cycles = cycles + 1 if failed and after <= before else 0
            worst = max(worst, cycles)
        ruling.broken += _crash_loops(attempts, expectation.cycles_max, evidence)
    if worst > expectation.cycles_max:
        ruling.broken.append(f"{worst} attempts in a row ended without a higher durable step; {expectation.cycles_max} are allowed")
    ruling.measures = {"cycles_without_progress": float(worst)}
    nothing = "" if evidence.lineage.attempts else "no attempt was seen"
    return ruling.conclude(CHECKER, f"at most {worst} attempts in a row ended without a higher durable step", nothing=nothing)


def _newest(t_s: float, task: int, evidence: Evidence) -> int:
    """The newest durable step at a moment; where storage does not tell, the newest that the job acknowledged or executed."""
    on_storage = evidence.lineage.newest_sound_step(task, t_s)
    if on_storage:
        return on_storage
    lives = evidence.lineage.incarnations_of(task)
    acknowledged = [save.step for life in lives for save in life.saves_ended if save.t_s <= t_s]
    if acknowledged or evidence.scenario.workload.speaks_protocol:
        return max(acknowledged, default=0)
    return max((step.step for life in lives for step in life.steps if step.t_s <= t_s), default=0)


def _end_s(attempt: Attempt) -> float:
    return attempt.exit.t_s if attempt.exit is not None else float("inf")


def _crash_loops(attempts: Sequence[Attempt], cycles_max: int, evidence: Evidence) -> list[str]:
    """The same death at the same step, more often in a row than allowed, and not of our doing."""
    faulted = {(fault.task, fault.attempt) for fault in evidence.requested()}
    found: list[str] = []
    row: list[Attempt] = []
    for attempt in attempts:
        is_own = (
            attempt.exit is not None
            and attempt.exit.exit_code != 0
            and attempt.exit.cause == "job"
            and (attempt.task, attempt.number) not in faulted
        )
        if not is_own:
            row = []
            continue
        row = [*row, attempt] if row and _place(row[-1]) == _place(attempt) else [attempt]
        if len(row) == cycles_max + 1:
            step, code, signal = _place(attempt)
            how = f"exit code {code}" if code is not None else f"signal {signal}"
            last = [line.text for line in attempt.logs if line.stream == "stderr"][-1:] or ["nothing on standard error"]
            found.append(f"crash loop: {len(row)} attempts in a row ended with {how} after step {step}; the last said: {last[0]}")
    return found


def _place(attempt: Attempt) -> tuple[int, int | None, int | None]:
    steps = [life.last_step() for life in attempt.incarnations]
    exit_code, signal = (attempt.exit.exit_code, attempt.exit.signal) if attempt.exit else (None, None)
    return max(steps, default=0), exit_code, signal
