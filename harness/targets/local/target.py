"""The local target: Cloud Run jobs as processes of this machine."""

import contextlib
import errno
from collections.abc import Sequence
from typing import Literal

from harness.capabilities import Fidelity, Launch, Processes, StorageRule
from harness.clock import Clock
from harness.cloud_run.running import not_startable
from harness.cloud_run.target import CloudRunTarget, key_of
from harness.errors import InvalidDocumentError, WorkloadMissingError
from harness.history import Event, OperationReached
from harness.protocol.attempt_key import AttemptKey
from harness.supervision.path_classes import path_class
from harness.targets.local.attempts import LocalAttempts
from harness.targets.local.environment import check_program
from harness.targets.local.fidelity import FIDELITY
from harness.targets.local.ray_host import RayClusters
from harness.targets.local.stops import UNSEEN, stops_available
from harness.targets.local.storage import StorageInForce
from harness.targets.local.storage_rules import interposer_available

_PROGRAM_ERRORS = {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR}


class LocalTarget(CloudRunTarget):
    """Cloud Run jobs as processes: executions, tasks, attempts, retries, timeout, cancel, the platform's variables and log.

    An attempt is a process in a session of its own. SIGTERM goes to that first process alone, as PID 1 of a container gets it; SIGKILL,
    and SIGSTOP with SIGCONT, go to all its processes, those that left the session included. Nothing of an attempt outlives it, but for an
    abandoned one. Nothing listens on TCP.

    Not emulated: the sandbox and its file system in memory, PID 1's immunity to unhandled signals, memory and CPU limits, GPUs, network and
    identity, image pull and cold start, live migration, and Cloud Storage as a mounted directory. ``fidelity`` says it item by item.
    """

    name = "local"

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._ray: RayClusters | None = None
        self._storage = StorageInForce()

    def _check(self, launch: Launch) -> None:
        check_program(launch)

    def _attempts(self, launch: Launch) -> LocalAttempts:
        attempts = LocalAttempts(launch, self._clock)
        self._storage, self._ray = attempts.storage, RayClusters(launch, self._clock)
        return attempts

    def _not_startable(self, launch: Launch, error: OSError) -> Exception:
        if error.errno in _PROGRAM_ERRORS:
            return WorkloadMissingError(workload=launch.job, program=launch.command[0], directory=launch.directory)
        return not_startable(error)

    # ---- Target ------------------------------------------------------------------------------------------------------

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return FIDELITY

    def poll(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._running is None or self._ray is None or self._is_stopped:
            return ()
        for line in self._ray.tick():
            self._running.rules.note_hurt(AttemptKey(line.task, line.attempt), "fault")
            self._running.pending.append(line)
        return super().poll()

    def wait(self, timeout_s: float) -> None:
        """See ``Target``."""
        due_in_s = float("inf") if self._ray is None or self._is_stopped else self._ray.next_due_s() - self._clock.monotonic_s()
        super().wait(max(0.0, min(timeout_s, due_in_s)))

    def stop(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._ray is None or self._is_stopped:
            return super().stop()
        with contextlib.closing(self._ray):
            return super().stop()

    # ---- StorageInterposable -----------------------------------------------------------------------------------------

    def storage_problem(self) -> str:
        """See ``StorageInterposable``."""
        return interposer_available()

    def set_storage_rule(self, task: int, rule: StorageRule) -> None:
        """See ``StorageInterposable``."""
        self._storage_in_force().set(task, rule)

    def clear_storage_rule(self, task: int) -> None:
        """See ``StorageInterposable``."""
        self._storage_in_force().clear(task)

    def storage_rule_hits(self, task: int) -> int:
        """See ``StorageInterposable``."""
        return self._storage_in_force().hits(task)

    # ---- OperationStops, LaunchChecking ------------------------------------------------------------------------------

    def stops_problem(self) -> str:
        """See ``OperationStops``."""
        return stops_available()

    def resume(self, reached: OperationReached) -> None:
        """See ``OperationStops``."""
        attempt = None if self._running is None else self._running.attempts.get(AttemptKey(reached.task, reached.attempt))
        if attempt is not None:
            attempt.resume(reached)

    def check_launch(self, launch: Launch) -> None:
        """See ``LaunchChecking``. A process has one supervisor of its calls: the kernel takes no second one (EBUSY, seccomp(2))."""
        unseen = [at.operation for at in launch.stops if at.operation in UNSEEN]
        if unseen:
            problem = f"nobody can be held at {unseen[0]}: the supervisor is not told of it"
            raise InvalidDocumentError(
                document=launch.job, field="injections", problem=problem, advice="take the operation before it or after"
            )
        named = next((at.path for at in launch.stops if path_class(at.path) != at.path), None)
        if named is not None:
            problem = f"{named} names one path, and the next run has another: nobody would be held there"
            raise InvalidDocumentError(document=launch.job, field="injections", problem=problem, advice=f"write {path_class(named)}")
        if launch.stops and launch.interpose_storage:
            problem = "storage that fails or is slow, and a stop at an operation, cannot be had in one run: each needs the one supervisor"
            raise InvalidDocumentError(document=launch.job, field="injections", problem=problem, advice="take at-marker, or two scenarios")

    # ---- RayHost -----------------------------------------------------------------------------------------------------

    def kill_ray_processes(self, victim: Processes, component: Literal["raylet", "head"]) -> tuple[int, ...]:
        """See ``RayHost``."""
        execution = self._execution()
        attempt = execution.find(key_of(victim))
        killed = self._clusters().kill(attempt, component)
        execution.rules.note_hurt(attempt.key, "fault")
        return killed

    def drain_ray_node(self, victim: Processes, deadline_s: float) -> str:
        """See ``RayHost``."""
        return self._clusters().drain(self._execution().find(key_of(victim)), deadline_s)

    def ray_node_state(self, victim: Processes, node_id: str) -> Literal["alive", "draining", "dead"]:
        """See ``RayHost``."""
        return self._clusters().state_of(self._execution().find(key_of(victim)), node_id)

    def _storage_in_force(self) -> StorageInForce:
        self._execution()
        return self._storage

    def _clusters(self) -> RayClusters:
        self._execution()
        assert self._ray is not None
        return self._ray
