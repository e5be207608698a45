"""What the platform does to an attempt for reasons of its own: maintenance, timeout, cancel, losing sight of it."""

import signal
from collections.abc import Sequence

from harness.capabilities import Cancellable, Overlappable, Signalable, Terminable, Timeoutable
from harness.faults.active import OneWay, Scene, named
from harness.faults.process import all_stopped, continue_processes, owe_continuing
from harness.history import AttemptAbandoned, AttemptStarted, Cause, Event, ExecutionFinished, LogLine
from harness.scenario.faults import OverlapAttempts
from harness.undo import KillProcesses, Undo, identify

MAINTENANCE_MESSAGE = "Container instance preemption initiated by the platform due to underlying hardware maintenance."
MAINTENANCE_REASON = "INSTANCE_PREEMPTED"
"""What the operator of a GPU job reads when maintenance takes it.

Source: https://docs.cloud.google.com/run/docs/tutorials (a long GPU job on Cloud Run jobs). Text and reason are documented, the full shape
    of the entry is not: the log it stands in is assumed to be that of the platform's other lines.
"""

MIGRATION_S = 1.0
"""From SIGTSTP to SIGCONT here. The platform gives its notice 10 s before it moves the task and does not say how long the move takes.

Source: https://docs.cloud.google.com/run/docs/configuring/task-timeout.
"""


class ActiveGpuMaintenance(OneWay):
    """SIGTERM, the grace period, SIGKILL, and the platform's line in the log; seen when the line stands there and the attempt has ended.

    GPU tasks are not migrated but terminated. Source: https://docs.cloud.google.com/run/docs/configuring/task-timeout.
    """

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Terminable)
        self._scene, self._target = scene, scene.target
        self._is_logged = False
        self._end = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            pids = self._target.terminate(self._scene.victim, cause="fault", message=MAINTENANCE_MESSAGE, reason=MAINTENANCE_REASON)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGTERM to {named(pids)} with reason {MAINTENANCE_REASON}"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        for event in events:
            self._is_logged = self._is_logged or self._is_platform_line(event)
            self._end = self._end or self._scene.exit_for(event, ("fault", "grace"))
        return f"the platform's line was logged; {self._end}" if self._is_logged and self._end else ""

    def _is_platform_line(self, event: Event) -> bool:
        return isinstance(event, LogLine) and self._scene.concerns(event) and (event.stream, event.text) == ("system", MAINTENANCE_MESSAGE)


class ActiveCpuMaintenance:
    """SIGTSTP, and SIGCONT after the move: the process lives.

    A job without a handler is not stopped by it, here as in a container: the kernel discards the default stop of an orphaned process
    group, which that of a session's first process is. Seen when it stopped itself, or got the signal and runs on.
    Not played: the 10 s of notice, the standstill during the move, and outbound connections that break; nothing follows about these.
    Source: https://docs.cloud.google.com/run/docs/configuring/task-timeout; POSIX.1-2017, System Interfaces 2.4.3 (SIGTSTP).
    """

    heal_after_s: float | None = MIGRATION_S

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Signalable)
        self._scene, self._target = scene, scene.target
        self._pids: tuple[int, ...] = ()
        self._looks_since_sent = 0
        self._is_sent = False

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return owe_continuing(self._scene, self._target)

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._pids = self._target.signal(self._scene.victim, signal.SIGTSTP, cause="fault")
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGTSTP to {named(self._pids)}, SIGCONT after {MIGRATION_S:g} s"

    def observe(self, events: Sequence[Event]) -> str:
        """Stopped, or sent the signal and still running a look later: then the process handles it, as the platform allows."""
        stopped = all_stopped(self._target, self._pids)
        if stopped:
            return stopped
        self._looks_since_sent += self._is_sent
        self._is_sent = self._is_sent or any(self._scene.is_signal(event, cause="fault", signal="SIGTSTP") for event in events)
        states = self._target.process_states(self._pids)
        runs_on = bool(self._pids) and all(states.get(pid) == "running" for pid in self._pids)
        return f"{named(self._pids)} got SIGTSTP and runs on" if self._looks_since_sent and runs_on else ""

    def heal(self) -> str:
        """See ``ActiveFault``."""
        return continue_processes(self._scene, self._target, self._pids)


class ActiveTimeout(OneWay):
    """Seen when the attempt has ended for its timeout."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Timeoutable)
        self._scene, self._target = scene, scene.target
        self._end = ""
        self._is_sent = False

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._target.expire_timeout(self._scene.victim)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return "the per-attempt timeout was made to expire"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        cause: Cause = "timeout"
        for event in events:
            self._is_sent = self._is_sent or self._scene.is_signal(event, cause=cause, signal="SIGTERM")
            self._end = self._end or self._scene.exit_for(event, (cause, "grace"))
        return self._end if self._is_sent else ""


class ActiveCancel(OneWay):
    """Seen when the attempt has ended for the cancel, or the execution counts a cancelled task."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Cancellable)
        self._scene, self._target = scene, scene.target
        self._is_sent = False
        self._end = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._target.cancel()
        except LookupError as error:
            raise self._scene.failed(error) from error
        return "the execution was cancelled"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        for event in events:
            self._is_sent = self._is_sent or self._scene.is_signal(event, cause="cancel", signal="SIGTERM")
            self._end = self._end or self._scene.exit_for(event, ("cancel", "grace"))
            if isinstance(event, ExecutionFinished) and event.cancelled:
                return f"the execution finished; tasks cancelled: {event.cancelled}"
        return self._end if self._is_sent else ""


class ActiveOverlap:
    """Seen when the attempt is abandoned and the next one runs beside it; healed by ending what is left of the old one."""

    def __init__(self, scene: Scene, fault: OverlapAttempts) -> None:
        assert isinstance(scene.target, Overlappable)
        assert isinstance(scene.target, Signalable)
        self._scene, self._target, self._processes = scene, scene.target, scene.target
        self._is_abandoned = False
        self._next_pid = 0
        self._healed = ""
        self.heal_after_s: float | None = fault.zombie_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        try:
            return KillProcesses(processes=identify(self._processes.process_ids(self._scene.victim)))
        except LookupError as error:
            raise self._scene.failed(error) from error

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._target.abandon(self._scene.victim)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"attempt {self._scene.victim.attempt} was held for dead while it runs"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        victim = self._scene.victim
        for event in events:
            self._is_abandoned = self._is_abandoned or (isinstance(event, AttemptAbandoned) and self._scene.concerns(event))
            if isinstance(event, AttemptStarted) and (event.task, event.attempt) == (victim.task, victim.attempt + 1):
                self._next_pid = event.pid
        if not self._is_abandoned or not self._next_pid:
            return ""
        return f"attempt {victim.attempt} was abandoned and attempt {victim.attempt + 1} started beside it (process {self._next_pid})"

    def heal(self) -> str:
        """See ``ActiveFault``."""
        if not self._healed:
            try:
                ended = self._target.end_abandoned(self._scene.victim)
            except LookupError as error:
                raise self._scene.unhealed(error) from error
            self._healed = f"processes of abandoned attempt {self._scene.victim.attempt} that were ended: {ended}"
        return self._healed
