"""What became of each notice that the platform gave: the rows of the budget between SIGTERM and the end of the grace period."""

from dataclasses import dataclass

from harness.history import ExecutionStarted, SaveBegun, SaveEnded, SigtermSeen, StepDone
from harness.lineage import Attempt
from harness.report.record import Record

SENT_LAG_S = 0.05
"""A signal is recorded when sending it has returned: by then the job may have spoken, so much earlier at most."""

GRACE_S_ASSUMED = 10.0
"""Of Cloud Run; used only when neither the history nor the scenario says what was granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One SIGTERM to a whole attempt, and the moments after it; None where one was not seen.

    Attributes:
        task, attempt: Who got it.
        cause: Who sent it.
        sent_s: When.
        grace_s: Seconds until SIGKILL.
        seen_s: The job noticed it.
        last_step_s: The last step it finished after the notice: for a job of many ranks, the step at which they agreed to stop.
        save_s: It decided its last save.
        durable_s: It acknowledged that save.
        exit_s: The attempt ended.
        is_killed: Whether the end of the grace period ended it.
    """

    task: int
    attempt: int
    cause: str
    sent_s: float
    grace_s: float
    seen_s: float | None
    last_step_s: float | None
    save_s: float | None
    durable_s: float | None
    exit_s: float | None
    is_killed: bool

    @property
    def ends_s(self) -> float:
        """When the grace period is over."""
        return self.sent_s + self.grace_s

    @property
    def margin_s(self) -> float | None:
        """What was left of the grace at the exit."""
        return None if self.exit_s is None else self.ends_s - self.exit_s


def notices_of(record: Record) -> tuple[Notice, ...]:
    """The notices of a run, in order."""
    granted_s = next((event.grace_s for event in record.events if isinstance(event, ExecutionStarted)), None)
    if granted_s is None:
        granted_s = record.scenario.platform.grace_s if record.scenario is not None else GRACE_S_ASSUMED
    found = [notice for attempt in record.lineage.attempts if (notice := _notice(attempt, granted_s)) is not None]
    return tuple(sorted(found, key=lambda notice: notice.sent_s))


def _notice(attempt: Attempt, grace_s: float) -> Notice | None:
    sent = attempt.notice()
    if sent is None:
        return None
    after = [event for life in attempt.incarnations for event in life.events if event.t_s >= sent.t_s - SENT_LAG_S]
    steps = [event.t_s for event in after if isinstance(event, StepDone) and event.t_s >= sent.t_s]
    save = next((event for event in reversed(after) if isinstance(event, SaveBegun)), None)
    durable = next((event for event in reversed(after) if isinstance(event, SaveEnded)), None)
    return Notice(
        task=attempt.task,
        attempt=attempt.number,
        cause=sent.cause,
        sent_s=sent.t_s,
        grace_s=grace_s if sent.grace_s is None else sent.grace_s,
        seen_s=next((event.t_s for event in after if isinstance(event, SigtermSeen)), None),
        last_step_s=max(steps, default=None),
        save_s=save.t_s if save is not None else None,
        durable_s=durable.t_s if durable is not None else None,
        exit_s=attempt.exit.t_s if attempt.exit is not None else None,
        is_killed=attempt.exit is not None and attempt.exit.cause == "grace",
    )
