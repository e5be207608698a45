"""The events of a run on any target: the platform's, the job's, those of faults, of storage and of the watchdog."""

import re
from typing import Literal

import msgspec

SCHEMA_VERSION = 1
"""Raised when an old reader would misread a new history."""

Cause = Literal["job", "fault", "timeout", "cancel", "grace", "stop", "platform"]
"""Who is behind a signal or an exit: the job itself, an injection, the per-attempt timeout, a cancel, the end of the grace period,
the harness ending the run, or the platform for a reason of its own."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    """Something that was seen.

    Attributes:
        t_s: Seconds since the run was opened, on the machine's monotonic clock. For an event of the job it is when the job wrote it.
    """

    t_s: float


class Located(Event, kw_only=True, frozen=True, gc=False):
    """An event of one attempt of one task. ``attempt`` counts from 0, as ``CLOUD_RUN_TASK_ATTEMPT`` does."""

    task: int = 0
    attempt: int = 0


# ---- the run ---------------------------------------------------------------------------------------------------------


class RunOpened(Event, frozen=True, kw_only=True, tag="run.opened"):
    """The header of a history."""

    schema: int
    run_id: str
    scenario: str
    target: str
    seed: int
    opened_at: str
    commit: str = ""
    argv: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class RunClosed(Event, frozen=True, kw_only=True, tag="run.closed"):
    """Why the loop ended: the execution finished, the deadline passed, a hang was called, or the run was interrupted or broke.

    One that could not be ended, healed or taken away broke too, at its end.

    Attributes:
        ended_s: When it ended: what a cluster does after that is done because we heal and clean. None in histories that do not tell.
    """

    reason: Literal["finished", "deadline", "hang", "interrupted", "error"]
    detail: str = ""
    ended_s: float | None = None


class GoldenKnown(Event, frozen=True, kw_only=True, tag="golden"):
    """What the uninterrupted runs of the same workload said: whether two of them were equal, and where they differed."""

    key: str
    equal: bool
    detail: str = ""


class ObservationLost(Event, frozen=True, kw_only=True, tag="observation.lost"):
    """Something was not recorded (a limit, garbage, an unreadable file): what depends on it is unknown.

    ``count``: how much, as far as somebody has counted it; of a gap of which nobody knows how much fell into it, 1.
    """

    what: Literal["events", "logs", "checkpoints", "cluster", "cluster-events", "moments"]
    count: int
    detail: str


# ---- the platform ----------------------------------------------------------------------------------------------------


class ExecutionStarted(Event, frozen=True, kw_only=True, tag="execution.started"):
    """An execution of the job began. Times in seconds."""

    execution: str
    tasks: int
    max_retries: int
    timeout_s: float
    grace_s: float


class AttemptStarted(Located, frozen=True, kw_only=True, tag="attempt.started"):
    """An attempt's first process runs."""

    pid: int


class SignalSent(Located, frozen=True, kw_only=True, tag="signal.sent"):
    """A signal was delivered; ``rank`` -1 means the whole attempt."""

    signal: str
    cause: Cause
    pids: tuple[int, ...]
    rank: int = -1


class AttemptExited(Located, frozen=True, kw_only=True, tag="attempt.exited"):
    """The attempt's first process has been waited for; exactly one of ``exit_code`` and ``signal`` is set.

    Neither is in a history that was made from a log which does not tell how the attempt ended.

    Attributes:
        cause: Who ended it, by what the platform did before: not a guess from the code.
        leftovers: Processes of the attempt that outlived the first one and were killed.
        retried: Whether the platform will start another attempt.
    """

    exit_code: int | None = None
    signal: int | None = None
    cause: Cause = "job"
    leftovers: int = 0
    retried: bool = False


class AttemptAbandoned(Located, frozen=True, kw_only=True, tag="attempt.abandoned"):
    """The platform holds the attempt for dead and starts the next one although its processes still run."""


class TaskFinished(Event, frozen=True, kw_only=True, tag="task.finished"):
    """A task will not be tried again."""

    task: int
    succeeded: bool
    attempts: int
    detail: str = ""


class ExecutionFinished(Event, frozen=True, kw_only=True, tag="execution.finished"):
    """All tasks have ended."""

    succeeded: int
    failed: int
    cancelled: int
    retried: int


class LogLine(Located, frozen=True, kw_only=True, tag="log"):
    """One line as an operator sees it; ``system`` and ``audit`` lines are the platform's.

    ``is_redrawn``: a carriage return began or ended it, as in a progress bar, of which only some states are ever written.
    ``is_masked``: a part of it looked like a credential and is not told, so that a pattern may not match what stood there.
    """

    stream: Literal["stdout", "stderr", "system", "audit"]
    text: str
    severity: str = "DEFAULT"
    reason: str = ""
    is_redrawn: bool = False
    is_masked: bool = False

    def search(self, pattern: str | re.Pattern[str]) -> re.Match[str] | None:
        """Where it first matches, in its first ``SEARCHED_CHARACTERS_MAX`` characters."""
        return re.compile(pattern).search(self.text, 0, SEARCHED_CHARACTERS_MAX)


SEARCHED_CHARACTERS_MAX = 4096
"""What a person would call a line of a log; a pattern that backtracks is not let loose on the 256 KiB that a line may have."""


# ---- the job (workloads/protocol.md) ---------------------------------------------------------------------------------


class JobEvent(Located, kw_only=True, frozen=True, gc=False):
    """An event that the job wrote."""

    rank: int = 0
    pid: int = 0


class Booted(JobEvent, frozen=True, kw_only=True, tag="boot"):
    """A process of the job is up."""


class RestoreBegun(JobEvent, frozen=True, kw_only=True, tag="restore.begin"):
    """The job chose a checkpoint."""

    step: int


class Restored(JobEvent, frozen=True, kw_only=True, tag="restore"):
    """The job loaded a checkpoint; digests of the state in memory."""

    step: int
    digests: dict[str, str] = {}


class Started(JobEvent, frozen=True, kw_only=True, tag="start"):
    """The job is ready to train; ``restored_step`` 0 is from scratch, ``steps`` the final step (0: not said)."""

    restored_step: int
    steps: int = 0


class StepDone(JobEvent, frozen=True, kw_only=True, tag="step"):
    """A step was executed."""

    step: int
    batch_ids: tuple[int, ...] = ()
    digests: dict[str, str] = {}


class SaveBegun(JobEvent, frozen=True, kw_only=True, tag="save.begin"):
    """A save was decided; digests of the state in memory before anything is written."""

    step: int
    digests: dict[str, str] = {}


class SaveEnded(JobEvent, frozen=True, kw_only=True, tag="save.end"):
    """The job acknowledged a save as durable."""

    step: int
    digests: dict[str, str] = {}


class SigtermSeen(JobEvent, frozen=True, kw_only=True, tag="sigterm"):
    """The job noticed SIGTERM."""


class Done(JobEvent, frozen=True, kw_only=True, tag="done"):
    """The job holds itself to be complete."""

    step: int


class Marked(JobEvent, frozen=True, kw_only=True, tag="marker"):
    """A marker of the job's own; ``step`` -1 when it has none."""

    name: str
    step: int = -1


class BarrierReached(JobEvent, frozen=True, kw_only=True, tag="barrier"):
    """A process of the job waits before or after an armed event, until it is released or killed."""

    event: str
    when: Literal["before", "after"]
    step: int = -1


class OperationReached(Located, frozen=True, kw_only=True, tag="operation"):
    """A process of the job is held before or after an operation on storage that was armed, until it is let go or killed.

    The fields are those of the trigger ``at-operation`` that asked for it.
    """

    operation: str
    path: str
    nth: int
    after: str = ""
    after_nth: int = 1
    when: Literal["before", "after"] = "after"
    rank: int = 0
    pid: int = 0


# ---- faults ----------------------------------------------------------------------------------------------------------


class FaultRequested(Located, frozen=True, kw_only=True, tag="fault.requested"):
    """An injection acted, or began to and then failed; nothing is known yet of its effect. ``rank`` -1 means the whole attempt."""

    injection: str
    fault: str
    rank: int = -1
    detail: str = ""


class FaultObserved(Located, frozen=True, kw_only=True, tag="fault.observed"):
    """The effect of an injection was seen: a wait status, a process state, a failed operation."""

    injection: str
    evidence: str


class FaultHealed(Located, frozen=True, kw_only=True, tag="fault.healed"):
    """An injection was undone, or had nothing left to undo."""

    injection: str
    evidence: str


class FaultFailed(Located, frozen=True, kw_only=True, tag="fault.failed"):
    """An injection could not act; after a ``fault.requested`` of its own it may have acted in part."""

    injection: str
    detail: str


# ---- artefacts and watchdogs -----------------------------------------------------------------------------------------


class CheckpointSeen(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One checkpoint as found on storage.

    Attributes:
        step: The step that its name says; -1 when the name says none.
        path: Relative to the checkpoint directory.
        state: ``committed`` by the layout's own rule, ``incomplete`` under a final name, ``temporary`` under a temporary name.
        digest: Fingerprint of its files' paths, sizes and contents; empty when it could not be read.
        is_latest: Whether the layout's own rule offers it to the next restore.
    """

    step: int
    path: str
    state: Literal["committed", "incomplete", "temporary"]
    digest: str = ""
    files: int = 0
    size_bytes: int = 0
    is_latest: bool = False


class CheckpointsSeen(Located, frozen=True, kw_only=True, tag="checkpoints"):
    """What storage held at a moment; ``occasion`` says which.

    Attributes:
        is_whole: False: only the checkpoint just saved was looked at.
        elsewhere: Directories beside the one of the job's checkpoints (in it, where that is the mounted directory itself) that hold
            checkpoints of the same layout: of another run of the job.
    """

    occasion: Literal["save-end", "attempt-end", "after-fault", "end"]
    checkpoints: tuple[CheckpointSeen, ...]
    is_whole: bool = True
    elsewhere: tuple[str, ...] = ()


class Inspected(Located, frozen=True, kw_only=True, tag="inspected"):
    """What the workload's own ``inspect`` command said of a copy of the checkpoint directory after an attempt; ``step`` -1: it failed."""

    step: int
    digests: dict[str, str] = {}
    detail: str = ""


class ResultSeen(Event, frozen=True, kw_only=True, tag="result"):
    """The workload's result file at the end of the run; ``sha256`` empty: it was not there."""

    path: str
    sha256: str = ""
    size_bytes: int = 0


class HangCalled(Located, frozen=True, kw_only=True, tag="hang"):
    """Our watchdog saw no progress for too long while processes were alive; ``ranks`` are the least advanced ones."""

    ranks: tuple[int, ...]
    quiet_s: float
    detail: str = ""
