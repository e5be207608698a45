"""Reports of agents as events of their attempts: what each kind of report means."""

import math
import signal
from collections.abc import Callable, Mapping

import msgspec

from harness.capabilities import Launch
from harness.cloud_run.attempt import TRAINING_WORDS
from harness.history import AttemptStarted, BarrierReached, Cause, Event, JobEvent, SignalSent
from harness.protocol.attempt_key import WHOLE_ATTEMPT
from harness.protocol.job_lines import JobLineReader
from harness.targets.gcp.agent.attendant import VERSION
from harness.targets.gcp.agent.points import OWN
from harness.targets.gcp.attempt import EVENT_LIMITS, Attempt
from harness.targets.gcp.attempt_exits import Ours
from harness.targets.gcp.attempt_words import line_of, lost, named
from harness.targets.gcp.reports import Report

HARMLESS = frozenset({signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH})
"""Signals whose default action ends nothing: they never are the cause of an exit."""

HELD_SHARE = 0.05
"""Of the grace: when it stood still for less, what was left of it is known well enough."""

TIMEOUT_SLACK_S = 0.5
TIMEOUT_SLACK = 0.02
"""The platform counts the timeout from before the agent's first word: how much sooner than that its SIGTERM may come."""

CAUSES: Mapping[str, Cause] = {
    "job": "job",
    "fault": "fault",
    "timeout": "timeout",
    "cancel": "cancel",
    "grace": "grace",
    "stop": "stop",
    "platform": "platform",
}


class ReportHearing:
    """Of one execution.

    Args:
        launch: What runs.
        ours: Tells what we have done to all of it by now.
        held: Gets who waits at a barrier, with the number that the agent gave.
    """

    def __init__(self, launch: Launch, *, ours: Callable[[], Ours], held: Callable[[BarrierReached, int], None]) -> None:
        self._launch, self._ours, self._held = launch, ours, held

    def hear(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        """What one report means."""
        if report.kind in ("sent", "refused", "begun") and report.order:
            attempt.heard[report.order] = report
        match report.kind:
            case "hello":
                return self._hear_hello(attempt, report, seen_s)
            case "begun":
                return self._hear_begun(attempt, report, seen_s)
            case "event":
                return self._hear_event(attempt, report, seen_s)
            case "barrier":
                return self._hear_barrier(attempt, report, seen_s)
            case "sent" | "received":
                return self._hear_signal(attempt, report, seen_s)
            case "lost":
                return [lost(self._launch, seen_s, "events", report.count, f"{named(attempt.key)}: its agent could not say {report.what}")]
            case "let-go":
                detail = f"{named(attempt.key)}: whoever waited at the barrier was let go by its agent, since nobody answered"
                return [lost(self._launch, seen_s, "moments", 1, detail)]
            case "held":
                return [self._hear_held(attempt, report, seen_s)]
            case "passed":
                return [self._hear_passed(attempt, report, seen_s)]
            case "unstartable":
                return [line_of(attempt, report, seen_s, f"The job could not be started: {report.reason}", severity="ERROR")]
            case kind:
                return self._hear_state(attempt, report, seen_s, kind)

    def _hear_state(self, attempt: Attempt, report: Report, seen_s: float, kind: str) -> list[Event]:
        """What is remembered, and told with something else."""
        if kind == "states":
            attempt.states.update(_states(report))
        elif kind == "exit":
            attempt.exit = report
            attempt.states = dict.fromkeys(attempt.states, "gone")
        elif kind not in ("refused", "alive"):
            return [lost(self._launch, seen_s, "events", 1, f"{named(attempt.key)}: its agent said {kind[:40]!r}, which is not known here")]
        return []

    def _hear_held(self, attempt: Attempt, report: Report, seen_s: float) -> Event:
        """Its grace stood still: what was left of it at its exit is not known better than by that."""
        text = f"its grace stood still for {report.seconds:.2f} s, in which the harness held it at a barrier"
        if report.seconds < HELD_SHARE * self._launch.grace_s:
            return line_of(attempt, report, seen_s, f"At a moment of a fault: {text}.")
        return lost(self._launch, seen_s, "moments", 1, f"{named(attempt.key)}: {text}")

    def _hear_passed(self, attempt: Attempt, report: Report, seen_s: float) -> Event:
        """In a grace it was not held: where only storage is looked at that takes nothing away, where a fault acts it does."""
        if report.what == OWN:
            text = "In its grace the job was not held after a save: storage was looked at a little later."
            return line_of(attempt, report, seen_s, text)
        detail = f"{named(attempt.key)}: in the grace of the platform's own SIGTERM it was not held where a fault was to act"
        return lost(self._launch, seen_s, "moments", 1, detail)

    def _hear_hello(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        if attempt.hello is not None:
            return [lost(self._launch, seen_s, "events", 1, f"{named(attempt.key)}: two containers say that they are this attempt")]
        attempt.hello = report
        if report.version != VERSION:
            detail = f"{named(attempt.key)}: its agent speaks version {report.version}, not {VERSION}"
            return [lost(self._launch, seen_s, "events", 1, detail)]
        return []

    def _hear_begun(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        attempt.pid = report.pid
        t_s = attempt.times.place(report.at, seen_s)
        started = AttemptStarted(t_s=t_s, task=attempt.key.task, attempt=attempt.key.attempt, pid=report.pid)
        uncertainty_s = attempt.times.offset.uncertainty_s
        how = f"within {uncertainty_s * 1000:.0f} ms" if math.isfinite(uncertainty_s) else "not known better than by when they were read"
        return [started, line_of(attempt, report, seen_s, f"Times of this attempt's events, on the harness's clock, are {how}.")]

    def _hear_event(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        if attempt.event_count >= EVENT_LIMITS.events or attempt.event_bytes >= EVENT_LIMITS.bytes:
            attempt.over_count += 1
            return []
        attempt.event_count += 1
        attempt.event_bytes += len(report.line)
        offset_s = attempt.times.offset.to_ours(0.0)
        reader = JobLineReader(attempt.key, self._launch.epoch_s - offset_s)
        try:
            event = reader.read_event(report.line.encode("utf-8", "surrogatepass"), seen_s - offset_s)
        except ValueError:
            attempt.garbage_count += 1
            return []
        self._note_rank(attempt, event)
        return [_at(event, attempt.times.place(event.t_s + self._launch.epoch_s - offset_s, seen_s))]

    def _hear_barrier(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        reader = JobLineReader(attempt.key, self._launch.epoch_s)
        try:
            reached = reader.read_barrier(report.line.encode("utf-8", "surrogatepass"), seen_s)
        except ValueError:
            attempt.garbage_count += 1
            return []
        self._note_rank(attempt, reached)
        reached = msgspec.structs.replace(reached, t_s=attempt.times.place(report.at, seen_s))
        self._held(reached, report.barrier)
        return [reached]

    def _hear_signal(self, attempt: Attempt, report: Report, seen_s: float) -> list[Event]:
        number = report.signal or 0
        is_platform = report.kind == "received"
        rank = WHOLE_ATTEMPT if is_platform or report.pid == WHOLE_ATTEMPT else attempt.rank_of.get(report.pid, WHOLE_ATTEMPT)
        cause = self._platform_cause(attempt, report) if is_platform else CAUSES.get(report.cause, "fault")
        attempt.states.update(_states(report))
        if number not in HARMLESS and rank == WHOLE_ATTEMPT:
            attempt.ended_by = cause
            attempt.had_notice = attempt.had_notice or (is_platform and number == signal.SIGTERM)
        elif number not in HARMLESS:
            attempt.hurt_by = cause
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        t_s = attempt.times.place(report.at, seen_s)
        key = attempt.key
        return [SignalSent(t_s=t_s, task=key.task, attempt=key.attempt, signal=name, cause=cause, pids=report.pids, rank=rank)]

    def _platform_cause(self, attempt: Attempt, report: Report) -> Cause:
        """Why the platform itself sends a signal: what we asked for, the timeout, or a reason of its own."""
        ours = self._ours()
        if ours:
            return ours
        timeout_s = self._launch.timeout_s
        ran_s = report.at - attempt.hello.at if attempt.hello is not None else 0.0
        return "timeout" if ran_s >= timeout_s - TIMEOUT_SLACK_S - TIMEOUT_SLACK * timeout_s else "platform"

    def _note_rank(self, attempt: Attempt, event: JobEvent) -> None:
        word = event.event if isinstance(event, BarrierReached) else str(event.__struct_config__.tag)
        if event.pid and (event.rank not in attempt.rank_pids or word in TRAINING_WORDS):
            attempt.rank_pids[event.rank] = event.pid


def _at(event: JobEvent, t_s: float) -> JobEvent:
    return event if event.t_s == t_s else msgspec.structs.replace(event, t_s=t_s)


def _states(report: Report) -> dict[int, str]:
    known = {"running", "stopped", "gone"}
    return {int(pid): state for pid, state in report.states.items() if pid.isdecimal() and len(pid) <= 10 and state in known}
