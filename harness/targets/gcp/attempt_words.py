"""What is said of an attempt besides what its agent has said: lines of ours, and what of it is lost."""

from harness.capabilities import Launch
from harness.history import LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.attempt import Attempt
from harness.targets.gcp.reports import Report


def named(key: AttemptKey) -> str:
    """An attempt, in words."""
    return f"attempt {key.attempt} of task {key.task}"


def line_of(attempt: Attempt, report: Report, seen_s: float, text: str, *, severity: str = "NOTICE") -> LogLine:
    """A line of ours, at the moment of a report."""
    t_s = attempt.times.place(report.at, seen_s)
    return LogLine(t_s=t_s, task=attempt.key.task, attempt=attempt.key.attempt, stream="system", text=text, severity=severity)


def lost(launch: Launch, now_s: float, what: str, count: int, detail: str) -> ObservationLost:
    """That something was not seen."""
    return ObservationLost(
        t_s=max(0.0, now_s - launch.epoch_s), what="moments" if what == "moments" else "events", count=count, detail=detail
    )
