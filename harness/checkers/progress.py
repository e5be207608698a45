"""Attempts lead on: no series of them ends without a higher durable step, and no step kills the job again and again.

The rule is that of NVIDIA's resiliency extension: consecutive restarts whose newest step rises by less than a minimum are cycles without
progress. Source: nvidia-resiliency-ext, ``--ft-...`` progress tracking (3 cycles, 1 step).
An attempt that an injection ended before a save was due owed no progress: it is no cycle, and breaks no series either.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.checkers.durability import acknowledged_by, stored_at_end
from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.storage import tells_steps_of
from harness.lineage import Attempt, newest_sound
from harness.scenario.expectations import MakesProgress
from harness.verdict import Finding, counted

CHECKER = "makes-progress"

RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception)\b")
"""Begins the last line of a traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cycle:
    """One attempt.

    Attributes:
        attempt: Which.
        before, after: The newest durable step when it began and when it had ended; None where nothing tells.
        owes: Whether it had to make progress: it failed, and not for want of time.
        is_seen: Whether storage and the platform tell all that, without a word of the job.
    """

    attempt: Attempt
    before: int | None
    after: int | None
    owes: bool
    is_seen: bool = False

    @property
    def has_progress(self) -> bool | None:
        """Whether its durable step rose; None where nothing tells."""
        return None if self.before is None or self.after is None else self.after > self.before

    def __str__(self) -> str:
        before, after = ("unknown" if step is None else str(step) for step in (self.before, self.after))
        free = "" if self.owes else ", and it owed none"
        return f"task {self.attempt.task} attempt {self.attempt.number}: newest durable step {before} before, {after} after{free}"


def check(expectation: MakesProgress, evidence: Evidence) -> Finding:
    """Follow the newest durable step from attempt to attempt."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    worst, known = 0, 0
    for task in evidence.lineage.tasks:
        attempts = evidence.lineage.attempts_of(task)
        loops = _crash_loops(attempts, expectation.cycles_max, evidence)
        (ruling.doubts if evidence.lost_words() else ruling.broken).extend(loops)  # at which step an attempt died it says itself
        cycles = [_cycle(attempt, evidence) for attempt in attempts]
        ruling.facts += map(str, cycles)
        longest = _longest_series(cycles)
        worst = max(worst, len(longest))
        known += sum(cycle.has_progress is not None for cycle in cycles)
        if len(longest) > expectation.cycles_max:
            series = f"{counted(len(longest), 'attempt')} of task {task} in a row ended without a higher durable step"
            is_guessed = bool(evidence.lost_words()) and not all(cycle.is_seen for cycle in longest)
            (ruling.doubts if is_guessed else ruling.broken).append(f"{series}, {expectation.cycles_max} may: {longest[0]}")
        dark = [cycle for cycle in cycles if cycle.owes and cycle.has_progress is None]
        ruling.doubts += [f"nothing tells whether there was progress: {cycle}" for cycle in dark]
    ruling.measures = {"cycles_without_progress": float(worst)}
    nothing = "" if known else "nothing tells which step was durable before and after any attempt"
    return ruling.conclude(CHECKER, f"at most {counted(worst, 'attempt')} in a row ended without a higher durable step", nothing=nothing)


def _longest_series(cycles: Sequence[_Cycle]) -> list[_Cycle]:
    """The most attempts in a row that owed progress and made none; one that owed none and made none is passed over."""
    longest: list[_Cycle] = []
    series: list[_Cycle] = []
    for cycle in cycles:
        if cycle.owes and cycle.has_progress is False:
            series = [*series, cycle]
        elif cycle.owes or cycle.has_progress:
            series = []
        longest = max(longest, series, key=len)
    return longest


def _cycle(attempt: Attempt, evidence: Evidence) -> _Cycle:
    stored_before, stored_after = _stored_before(attempt, evidence), stored_at_end(attempt, evidence)
    if stored_before is not None and stored_after is not None:
        before, after = stored_before, stored_after
        is_seen = _failed_by_itself(attempt, evidence)
        return _Cycle(attempt=attempt, before=before, after=after, owes=_owes(attempt, evidence), is_seen=is_seen)
    end_s = attempt.exit.t_s if attempt.exit is not None else float("inf")
    return _Cycle(
        attempt=attempt,
        before=_told_before(attempt, attempt.started_s, evidence),
        after=_told_before(attempt, end_s, evidence),
        owes=_owes(attempt, evidence),
    )


def _stored_before(attempt: Attempt, evidence: Evidence) -> int | None:
    """The newest sound step on storage when an attempt began; 0 before the first attempt; None where storage does not tell."""
    if attempt == evidence.lineage.attempts_of(attempt.task)[0]:
        return 0
    if evidence.lineage.newest_sound_step(attempt.task, attempt.started_s) is None:
        return None
    held = evidence.lineage.storage_before(attempt.task, attempt.started_s)
    return newest_sound(held) if tells_steps_of(evidence, attempt.task, held) else None


def _told_before(attempt: Attempt, t_s: float, evidence: Evidence) -> int | None:
    """The newest step known to be durable by a moment without a look at storage: acknowledged, or resumed from afterwards."""
    acknowledged = acknowledged_by(attempt.task, t_s, evidence)
    resumed = _resumed_after(attempt.task, t_s, evidence)
    if acknowledged is None:
        return resumed
    return max(acknowledged, resumed or 0)


def _resumed_after(task: int, t_s: float, evidence: Evidence) -> int | None:
    """The step that the first life after a moment went on from; None where it does not say."""
    lives = evidence.lineage.incarnations_of(task)
    life = next((life for life in lives if life.began_s >= t_s and life.restored_step is not None), None)
    if life is None:
        return None
    if life.started is not None:
        return life.started.restored_step
    return 0 if evidence.scenario.workload.outside.logs.resumed else None  # it would have said that it resumed


def _owes(attempt: Attempt, evidence: Evidence) -> bool:
    """Whether it failed although it had its time: by itself, or hit only when a save had been due."""
    end = attempt.exit
    if end is None or end.exit_code == 0 or end.cause == "stop":
        return False
    if _failed_by_itself(attempt, evidence):
        return True
    every = evidence.scenario.workload.save_every
    return every > 0 and any(life.last_step() - (life.restored_step or 0) > every for life in attempt.incarnations)


def _failed_by_itself(attempt: Attempt, evidence: Evidence) -> bool:
    end = attempt.exit
    return end is not None and end.exit_code != 0 and end.cause == "job" and not _was_hit(attempt, evidence)


def _was_hit(attempt: Attempt, evidence: Evidence) -> bool:
    return any((fault.task, fault.attempt) == (attempt.task, attempt.number) for fault in evidence.requested())


def _crash_loops(attempts: Sequence[Attempt], cycles_max: int, evidence: Evidence) -> list[str]:
    """The same death at the same step, more often in a row than allowed, and not of our doing."""
    found: list[str] = []
    row: list[Attempt] = []
    for attempt in attempts:
        end = attempt.exit
        if end is None or end.exit_code == 0 or end.cause != "job" or _was_hit(attempt, evidence):
            row = []
            continue
        row = [*row, attempt] if row and _place(row[-1]) == _place(attempt) else [attempt]
        if len(row) == cycles_max + 1:
            step, code, signal = _place(attempt)
            how = f"exit code {code}" if code is not None else f"signal {signal}"
            loop = f"crash loop: {counted(len(row), 'attempt')} in a row ended with {how} after step {step}"
            found.append(f"{loop}; the last said: {_last_words(attempt)}")
    return found


def _last_words(attempt: Attempt) -> str:
    """The end of its last traceback, which libraries that speak at exit may have talked over; else its last line on standard error."""
    said = [line.text for line in attempt.logs if line.stream == "stderr"]
    raised = [text for text in said if RAISED.match(text)]
    return (raised or said or ["nothing on standard error"])[-1]


def _place(attempt: Attempt) -> tuple[int, int | None, int | None]:
    exit_code, signal = (attempt.exit.exit_code, attempt.exit.signal) if attempt.exit else (None, None)
    return attempt.incarnations[-1].last_step(), exit_code, signal
