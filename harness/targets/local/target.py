"""The local target: Cloud Run jobs as processes of this machine."""

import contextlib
import errno
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from harness.capabilities import Fidelity, Launch, Processes, StorageRule
from harness.clock import Clock
from harness.errors import StoreError, WorkloadMissingError
from harness.history import AttemptAbandoned, BarrierReached, Cause, Event
from harness.targets.local.environment import check_program
from harness.targets.local.execution import AttemptKey
from harness.targets.local.fidelity import FIDELITY
from harness.targets.local.ray_host import RayClusters
from harness.targets.local.running import RunningExecution, not_startable
from harness.targets.local.storage_rules import interposer_available

_PROGRAM_ERRORS = {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR}


class LocalTarget:
    """Cloud Run jobs as processes: executions, tasks, attempts, retries, timeout, cancel, the platform's variables and log.

    An attempt is a process in a session of its own. SIGTERM goes to that first process alone, as PID 1 of a container gets it; SIGKILL,
    and SIGSTOP with SIGCONT, go to all its processes, those that left the session included. Nothing of an attempt outlives it, but for an
    abandoned one. Nothing listens on TCP.

    Not emulated: the sandbox and its file system in memory, PID 1's immunity to unhandled signals, memory and CPU limits, GPUs, network and
    identity, image pull and cold start, live migration, and Cloud Storage as a mounted directory. ``fidelity`` says it item by item.
    """

    name = "local"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: RunningExecution | None = None
        self._is_stopped = False

    # ---- Target ------------------------------------------------------------------------------------------------------

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return FIDELITY

    def start(self, launch: Launch) -> None:
        """See ``Target``."""
        check_program(launch)
        try:
            launch.logs_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(path=launch.logs_dir, attempted="create", reason=error.strerror or str(error)) from error
        self._running = RunningExecution(launch, self._clock)
        self._ray = RayClusters(launch, self._clock)
        try:
            self._running.begin()
        except OSError as error:
            self.stop()
            if error.errno in _PROGRAM_ERRORS:
                raise WorkloadMissingError(workload=launch.job, program=launch.command[0], directory=launch.directory) from error
            raise not_startable(error) from error
        except BaseException:
            self.stop()
            raise

    def poll(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._running is None or self._is_stopped:
            return ()
        for line in self._ray.tick():
            self._running.rules.note_hurt(AttemptKey(line.task, line.attempt), "fault")
            self._running.pending.append(line)
        return self._running.poll()

    def wait(self, timeout_s: float) -> None:
        """See ``Target``."""
        if self._running is None or self._is_stopped:
            self._clock.sleep(timeout_s)
        else:
            self._running.wait(max(0.0, min(timeout_s, self._ray.next_due_s() - self._clock.monotonic_s())))

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
        if self._running is None or self._is_stopped:
            return ()
        self._is_stopped = True
        with contextlib.closing(self._running), contextlib.closing(self._ray):
            return self._running.end_all()

    # ---- Signalable, Terminable --------------------------------------------------------------------------------------

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """See ``Signalable``."""
        attempt = self._execution().find(_key_of(victim))
        return attempt.processes.find(attempt.pid_of(victim.rank))

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """See ``Signalable``."""
        return self._execution().send(_key_of(victim), signal_number, cause=cause, rank=victim.rank)

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """See ``Signalable``."""
        return {pid: self._state_of(pid) for pid in pids}

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """See ``Terminable``. The line is logged when the attempt has ended, after the job's own lines, as the guide shows it."""
        execution = self._execution()
        attempt = execution.find(_key_of(victim))
        pids = execution.give_notice(attempt.key, cause=cause, rank=victim.rank)
        if message:
            attempt.message = (message, reason)
        return pids

    # ---- Cancellable, Timeoutable, Overlappable ----------------------------------------------------------------------

    def cancel(self) -> None:
        """See ``Cancellable``."""
        execution = self._execution()
        for key in execution.rules.cancel():
            with contextlib.suppress(LookupError):  # it has ended by itself and is not tried again
                execution.give_notice(key, cause="cancel")

    def expire_timeout(self, victim: Processes) -> None:
        """See ``Timeoutable``."""
        self._execution().expire_timeout(_key_of(victim))

    def abandon(self, victim: Processes) -> None:
        """See ``Overlappable``."""
        execution = self._execution()
        key = execution.find(_key_of(victim)).key
        execution.rules.abandon(key)
        execution.pending.append(AttemptAbandoned(t_s=execution.t_s(), task=key.task, attempt=key.attempt))

    def end_abandoned(self, victim: Processes) -> int:
        """See ``Overlappable``."""
        execution, key = self._execution(), _key_of(victim)
        if key in execution.attempts and not execution.rules.is_abandoned(key):
            raise LookupError(f"attempt {key.attempt} of task {key.task} is not abandoned")
        try:
            return len(execution.send(key, signal.SIGKILL, cause="fault"))
        except LookupError:
            return 0

    # ---- CheckpointStorage, StorageInterposable ----------------------------------------------------------------------

    def checkpoint_path(self, task: int) -> Path:
        """See ``CheckpointStorage``. All tasks share the mounted directory, as they share the bucket."""
        launch = self._execution().launch
        if not 0 <= task < launch.tasks:
            raise LookupError(f"the execution has no task {task}, but {launch.tasks}")
        path, mounted = launch.checkpoint_path, launch.checkpoint_dir
        if mounted.is_symlink() or not path.resolve().is_relative_to(mounted.resolve()):  # a link that the job has put there
            raise LookupError(f"{path} leads out of the mounted directory, to {path.resolve()}, where nothing is ours to change")
        return path

    def storage_problem(self) -> str:
        """See ``StorageInterposable``."""
        return interposer_available()

    def set_storage_rule(self, task: int, rule: StorageRule) -> None:
        """See ``StorageInterposable``."""
        self._execution().storage.set(task, rule)

    def clear_storage_rule(self, task: int) -> None:
        """See ``StorageInterposable``."""
        self._execution().storage.clear(task)

    def storage_rule_hits(self, task: int) -> int:
        """See ``StorageInterposable``."""
        return self._execution().storage.hits(task)

    # ---- RayHost -----------------------------------------------------------------------------------------------------

    def kill_ray_processes(self, victim: Processes, component: Literal["raylet", "head"]) -> tuple[int, ...]:
        """See ``RayHost``."""
        execution = self._execution()
        attempt = execution.find(_key_of(victim))
        killed = self._ray.kill(attempt, component)
        execution.rules.note_hurt(attempt.key, "fault")
        return killed

    def drain_ray_node(self, victim: Processes, deadline_s: float) -> str:
        """See ``RayHost``."""
        return self._ray.drain(self._execution().find(_key_of(victim)), deadline_s)

    def ray_node_state(self, victim: Processes, node_id: str) -> Literal["alive", "draining", "dead"]:
        """See ``RayHost``."""
        return self._ray.state_of(self._execution().find(_key_of(victim)), node_id)

    def _execution(self) -> RunningExecution:
        if self._running is None or self._is_stopped:
            raise LookupError("no execution runs on the local target")
        return self._running

    def _state_of(self, pid: int) -> str:
        if self._running is not None:
            for attempt in self._running.attempts.values():
                state = attempt.processes.state_of(pid)
                if state is not None:
                    return state
        return "gone"


def _key_of(victim: Processes) -> AttemptKey:
    return AttemptKey(victim.task, victim.attempt)
