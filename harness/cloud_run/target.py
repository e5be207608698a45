"""What every target has that plays executions of Cloud Run jobs: it starts, reads, and moves them as the platform would."""

import contextlib
import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from harness.capabilities import Launch, Processes
from harness.clock import Clock
from harness.cloud_run.running import Attempts, RunningExecution, not_startable
from harness.errors import HarnessError, StoreError
from harness.history import AttemptAbandoned, BarrierReached, Cause, Event
from harness.protocol.attempt_key import AttemptKey


class CloudRunTarget(ABC):
    """The capabilities that come with an execution; what an attempt is made of is the target's own."""

    name: str

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: RunningExecution | None = None
        self._is_stopped = False
        self._last: list[Event] = []

    @abstractmethod
    def _check(self, launch: Launch) -> None:
        """See that the job can be started at all.

        Raises:
            WorkloadMissingError: When its program is not there.
            InvalidDocumentError: When it cannot be started as it is described.
            TargetUnavailableError: When the target is not here.
        """

    @abstractmethod
    def _attempts(self, launch: Launch) -> Attempts:
        """What makes the attempts of the execution; nothing is started yet."""

    def _not_startable(self, launch: Launch, error: OSError) -> Exception:
        """What an error at the very first start means."""
        del launch
        return not_startable(error)

    # ---- Target ------------------------------------------------------------------------------------------------------

    def start(self, launch: Launch) -> None:
        """See ``Target``."""
        self._check(launch)
        try:
            launch.logs_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(path=launch.logs_dir, attempted="create", reason=error.strerror or str(error)) from error
        self._running = RunningExecution(launch, self._clock, self._attempts(launch))
        try:
            self._running.begin()
        except OSError as error:
            self._stop_after(error)
            raise self._not_startable(launch, error) from error
        except BaseException as error:
            self._stop_after(error)
            raise

    def _stop_after(self, error: BaseException) -> None:
        """End what was begun; what fails at that does not hide why."""
        try:
            self.stop()
        except HarnessError as other:
            error.add_note(f"and while ending what was begun: {other}")

    def poll(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._running is None or self._is_stopped:
            return ()
        return self._running.poll()

    def wait(self, timeout_s: float) -> None:
        """See ``Target``."""
        if self._running is None or self._is_stopped:
            self._clock.sleep(timeout_s)
        else:
            self._running.wait(timeout_s)

    def release(self, barrier: BarrierReached) -> None:
        """See ``Target``."""
        attempt = None if self._running is None else self._running.attempts.get(AttemptKey(barrier.task, barrier.attempt))
        if attempt is not None:
            attempt.release(barrier)

    def is_finished(self) -> bool:
        """See ``Target``. An abandoned attempt that still runs does not count."""
        return self._is_stopped or (self._running is not None and self._running.is_over)

    def stop(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._running is not None and not self._is_stopped:
            self._is_stopped = True
            with contextlib.closing(self._running):
                self._running.end_all(self._last)
        last, self._last = tuple(self._last), []
        return last

    # ---- Signalable, Terminable, GraceExpirable --------------------------------------------------------------------------------------

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """See ``Signalable``."""
        attempt = self._execution().find(key_of(victim))
        return attempt.processes.find(attempt.pid_of(victim.rank))

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """See ``Signalable``."""
        return self._execution().send(key_of(victim), signal_number, cause=cause, rank=victim.rank)

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """See ``Signalable``."""
        return {pid: self._state_of(pid) for pid in pids}

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """See ``Terminable``. The line is logged when the attempt has ended, after the job's own lines, as the guide shows it."""
        execution = self._execution()
        attempt = execution.find(key_of(victim))
        pids = execution.give_notice(attempt.key, cause=cause, rank=victim.rank)
        if message:
            attempt.message = (message, reason)
        return pids

    def expire_grace(self, victim: Processes) -> tuple[int, ...]:
        """See ``GraceExpirable``."""
        return self._execution().expire_grace(key_of(victim), victim.rank)

    # ---- Cancellable, Timeoutable, Overlappable ----------------------------------------------------------------------

    def cancel(self) -> None:
        """See ``Cancellable``."""
        execution = self._execution()
        for key in execution.rules.cancel():
            with contextlib.suppress(LookupError):  # it has ended by itself and is not tried again
                execution.give_notice(key, cause="cancel")

    def expire_timeout(self, victim: Processes) -> None:
        """See ``Timeoutable``."""
        self._execution().expire_timeout(key_of(victim))

    def abandon(self, victim: Processes) -> None:
        """See ``Overlappable``."""
        execution = self._execution()
        key = execution.find(key_of(victim)).key
        execution.rules.abandon(key)
        execution.pending.append(AttemptAbandoned(t_s=execution.t_s(), task=key.task, attempt=key.attempt))

    def end_abandoned(self, victim: Processes) -> int:
        """See ``Overlappable``."""
        execution, key = self._execution(), key_of(victim)
        if key in execution.attempts and not execution.rules.is_abandoned(key):
            raise LookupError(f"attempt {key.attempt} of task {key.task} is not abandoned")
        try:
            return len(execution.send(key, signal.SIGKILL, cause="fault"))
        except LookupError:
            return 0

    # ---- CheckpointStorage -------------------------------------------------------------------------------------------

    def checkpoint_path(self, task: int) -> Path:
        """See ``CheckpointStorage``. All tasks share the mounted directory, as they share the bucket."""
        launch = self._execution().launch
        if not 0 <= task < launch.tasks:
            raise LookupError(f"the execution has no task {task}, but {launch.tasks}")
        path, mounted = launch.checkpoint_path, launch.checkpoint_dir
        if mounted.is_symlink() or not path.resolve().is_relative_to(mounted.resolve()):  # a link that the job has put there
            raise LookupError(f"{path} leads out of the mounted directory, to {path.resolve()}, where nothing is ours to change")
        return path

    def _execution(self) -> RunningExecution:
        if self._running is None or self._is_stopped:
            raise LookupError(f"no execution runs on the {self.name} target")
        return self._running

    def _state_of(self, pid: int) -> str:
        if self._running is not None:
            for attempt in self._running.attempts.values():
                state = attempt.processes.state_of(pid)
                if state is not None:
                    return state
        return "gone"


def key_of(victim: Processes) -> AttemptKey:
    """The attempt that a victim is of."""
    return AttemptKey(victim.task, victim.attempt)
