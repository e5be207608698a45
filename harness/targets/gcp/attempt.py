"""One attempt of an execution, by what its agent has said."""

from dataclasses import dataclass, field

from harness.history import Cause
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.event_file import EventLimits
from harness.targets.gcp.clock_offsets import SourceTimes
from harness.targets.gcp.reports import Report

EVENT_LIMITS = EventLimits()
"""Of one attempt, as where its file is read itself."""


@dataclass(slots=True)
class Attempt:
    """One attempt, by what its agent has said.

    Attributes:
        key: Which.
        times: Its clock.
        pid: The job's first process, by the container's ids; 0 before the job was started.
        hello: Its first word.
        exit: Its last word.
        is_over: Whether its end was told.
        ended_by, hurt_by: Who ended the attempt as a whole, or one rank of it.
        had_notice: Whether the platform itself has sent SIGTERM.
        rank_pids: Process ids that ranks have said.
        states: Of processes that were signalled.
        heard: Orders that it has answered, or refused.
        message: The platform's line and its reason that the end of this attempt brings to the log.
        garbage_count, over_count: Lines of its job that are no events, or too much.
        event_count, event_bytes: What was kept of them.
        jumps: How often its clock jumped, as was told.
    """

    key: AttemptKey
    times: SourceTimes
    pid: int = 0
    hello: Report | None = None
    exit: Report | None = None
    is_over: bool = False
    ended_by: Cause | None = None
    hurt_by: Cause | None = None
    had_notice: bool = False
    rank_pids: dict[int, int] = field(default_factory=dict)
    rank_of: dict[int, int] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    heard: dict[int, Report] = field(default_factory=dict)
    message: tuple[str, str] | None = None
    garbage_count: int = 0
    event_count: int = 0
    event_bytes: int = 0
    over_count: int = 0
    jumps: int = 0

    @property
    def is_running(self) -> bool:
        """Whether its job runs, as far as is known."""
        return bool(self.pid) and self.exit is None and not self.is_over

    def is_last(self, max_retries: int) -> bool:
        """Whether it has ended, and no other of its task follows."""
        has_succeeded = self.exit is not None and self.exit.code == 0
        return has_succeeded or ((self.exit is not None or self.is_over) and self.key.attempt >= max_retries)

    def cause(self, *, succeeded: bool, killed: bool) -> Cause:
        """Who ended it, by what was done to it before: not a guess from the code."""
        if self.ended_by is not None:
            return self.ended_by
        if succeeded:
            return "job"
        return self.hurt_by or ("platform" if killed else "job")
