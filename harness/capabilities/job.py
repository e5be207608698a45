"""What a target is, and the optional things a target may let us do to a job.

``Target`` is what every target is. Each other protocol is one capability: a fault asks for the capability it needs with
``isinstance(target, Signalable)`` and never for a target by name, so a scenario runs wherever its faults can be caused.
All of it is driven by one single-threaded loop: no method blocks but ``wait`` and ``stop``, both bounded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec

from harness.history import BarrierReached, Cause, Event, OperationReached
from harness.scenario import Cluster, Scenario
from harness.scenario.triggers import AtOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything a target needs to run a job; made from a scenario, but free of it.

    Attributes:
        run_id: Every process, container and resource carries it (``HARNESS_RUN_ID``, labels), so that ``harness clean`` finds them.
        job: Name of the job.
        command: Program and arguments, placeholders replaced.
        directory: Where it runs.
        environment: The job's own variables; the target adds the platform's and the protocol's.
        checkpoint_dir: The mounted directory; it outlives attempts.
        checkpoints: Where in it the checkpoints lie.
        logs_dir: Where log entries and the job's event files are written.
        tasks, parallelism, max_retries, timeout_s, grace_s: As ``harness.scenario.Platform``.
        armed: Events at which the job shall ask the barrier, as ``event:when``.
        stops: Operations on the checkpoint directory at which the job shall be held, in every task and attempt (``OperationStops``).
        interpose_storage: Whether storage faults while running are planned: the attempts then start under the system call supervisor.
        epoch_s: Monotonic seconds when the run was opened: the zero of ``Event.t_s``.
        log_patterns: For a job that does not speak the protocol: event kind to regular expression.
        steps: The final step, for events read from the log; 0 when unknown.
        ranks: Processes that train together inside one task: on a cluster each is a host.
        cluster: How it is submitted, where the target is a cluster.
        root: What paths in ``cluster`` are relative to.
        image: What its containers are made of, where the target has containers; empty: the target's own.
        memory_mib: What an attempt may use; 0: no limit.
        journal: Where undos of faults are written before they act; none where none act.
        seed: Of the workload; ``{seed}`` is replaced already.
    """

    run_id: str
    job: str
    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    checkpoint_dir: Path
    logs_dir: Path
    tasks: int = 1
    parallelism: int = 0
    max_retries: int = 3
    timeout_s: float = 600.0
    grace_s: float = 10.0
    armed: tuple[str, ...] = ()
    stops: tuple[AtOperation, ...] = ()
    interpose_storage: bool = False
    epoch_s: float = 0.0
    log_patterns: Mapping[str, str] = field(default_factory=dict)
    steps: int = 0
    checkpoints: str = "."
    ranks: int = 1
    cluster: Cluster = field(default_factory=Cluster)
    root: Path = Path()
    image: str = ""
    memory_mib: int = 0
    journal: Path | None = None
    seed: int = 0

    @property
    def checkpoint_path(self) -> Path:
        """Where the checkpoints lie, whether or not the job has made that directory yet."""
        return self.checkpoint_dir / self.checkpoints


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a target plays, and whether a conclusion about it carries over to the real platform.

    Attributes:
        what: The behaviour, like ``SIGTERM, grace, SIGKILL``.
        here: ``real``, ``emulated`` or ``absent``.
        note: What differs, and what therefore cannot be concluded.
        source: Where the real behaviour is written; empty when ``real``.
        verified: Whether the value was found in a source for this very case, or is assumed from a neighbouring one.
    """

    what: str
    here: Literal["real", "emulated", "absent"]
    note: str
    source: str = ""
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Whom a fault hits: the attempt of a task as a whole (``rank`` -1) or one rank's process in it."""

    task: int = 0
    attempt: int = 0
    rank: int = -1


class Target(Protocol):
    """Somewhere a job runs under a platform's rules. One object serves one run."""

    name: str

    def fidelity(self) -> Sequence[Fidelity]:
        """What is real here, what is emulated, what is absent; shown in the report."""
        ...

    def start(self, launch: Launch) -> None:
        """Begin the execution.

        Raises:
            WorkloadMissingError: When the program is not there; nothing was started.
            TargetUnavailableError: When the target is not here.
        """
        ...

    def poll(self) -> Sequence[Event]:
        """Make the platform's next moves and return what happened since, in order.

        When an attempt's end is among the returned events the next attempt starts at the following ``poll``, not in this one:
        a fault that waits for the effect of another acts in between.
        """
        ...

    def wait(self, timeout_s: float) -> None:
        """Sleep until something can be polled, at most ``timeout_s``."""
        ...

    def release(self, barrier: BarrierReached) -> None:
        """Let a process go on that waits at the barrier; nothing happens when it is gone."""
        ...

    def is_finished(self) -> bool:
        """Whether all tasks have ended and everything they said was returned by ``poll``."""
        ...

    def stop(self) -> Sequence[Event]:
        """End everything of this run at once, in any state; idempotent; returns the last events, or, when it failed, at the next call."""
        ...


@runtime_checkable
class Signalable(Protocol):
    """Processes can be sent signals."""

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """The ids of the victim's processes as they are now: what an undo must name before the fault acts.

        Raises:
            LookupError: As ``signal``.
        """
        ...

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """Send a signal and return the ids of the processes that got it; a ``SignalSent`` event comes with the next ``poll``.

        Raises:
            LookupError: When the victim is not there (not started, already gone, or its rank never said its process id).
        """
        ...

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """The state of each process: ``running``, ``stopped`` or ``gone`` (waited for, zombie, or another process by now)."""
        ...


@runtime_checkable
class SelfContinuing(Protocol):
    """Processes are not of this machine: no undo can name them, and what is stopped goes on by itself, as ``continues_by_itself`` says."""

    continues_by_itself: str


@runtime_checkable
class LaunchChecking(Protocol):
    """What cannot be launched here is known from what is written, before anything is waited for or made."""

    def check_launch(self, launch: Launch) -> None:
        """See that a job can be launched, as far as that can be told without starting anything; its directories need not be there yet.

        Raises:
            UsageError: When it cannot, naming the field.
            TargetUnavailableError: When the target is not here.
        """
        ...


@runtime_checkable
class ScenarioChecking(Protocol):
    """What a scenario names is known to be there or not, before anything is waited for or made."""

    def check_scenario(self, scenario: Scenario, launch: Launch) -> None:
        """See that what its faults and promises name is there, as far as that can be told without starting anything.

        Raises:
            UsageError: When it is not, naming the field.
            TargetUnavailableError: When the target is not here.
        """
        ...


@runtime_checkable
class TurnTaking(Protocol):
    """Runs on this target share what cannot be shared, so they take turns."""

    def take_turn(self, say: Callable[[str], None]) -> float:
        """Wait until it is this run's turn, before its clock starts; ``stop`` ends the turn.

        Args:
            say: Told why it waits, when it has to.

        Returns:
            For how many seconds it has waited.

        Raises:
            TargetUnavailableError: When the target is not here, or the turn does not come.
        """
        ...


@runtime_checkable
class Interruptible(Protocol):
    """Its ``stop`` reads what was not read yet, which may take long."""

    def interrupt(self) -> None:
        """The run was interrupted, and nothing of it is judged: its ``stop`` ends what runs, and reads nothing more."""
        ...


@runtime_checkable
class LongEnding(Protocol):
    """Ending a run, with all that is to be undone, may take longer here than a moment."""

    def ending_s_max(self) -> float:
        """So many seconds at most, from an interrupt until nothing is left; asked of a target on which nothing was started."""
        ...


@runtime_checkable
class StartupCounting(Protocol):
    """Containers take long to start here, and how long is not the job's doing."""

    def startup_s(self) -> float:
        """How many seconds of the execution until now went by while the platform was starting the job; limited."""
        ...


@runtime_checkable
class Settling(Protocol):
    """What an execution has said and left may be known here only some time after its end, as a log that comes late."""

    def has_ended(self) -> bool:
        """Whether the execution was seen to have ended: what is waited for since is none of the job's time, and has limits of its own."""
        ...


@runtime_checkable
class Permitting(Protocol):
    """What faults hit is somebody's, who may take his permission back while a run goes on."""

    def require_permission(self) -> None:
        """See that faults may act; asked right before each one.

        Raises:
            HarnessError: When none may act any more: the run ends.
        """
        ...


@runtime_checkable
class Terminable(Protocol):
    """The platform can take an attempt away with notice: SIGTERM, grace, SIGKILL."""

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """Send SIGTERM now and SIGKILL when the grace of the launch is over; log ``message`` as the platform's line with ``reason``.

        Raises:
            LookupError: When the victim is not there.
        """
        ...


@runtime_checkable
class GraceExpirable(Protocol):
    """The grace that a notice began can be made to be over now."""

    def expire_grace(self, victim: Processes) -> tuple[int, ...]:
        """Send the SIGKILL that ends the victim's grace, without waiting for the rest of it; returns the ids of who got it.

        Raises:
            LookupError: When the victim is not there, or no grace runs for it.
        """
        ...


@runtime_checkable
class Cancellable(Protocol):
    """The execution can be cancelled: as ``terminate`` for every running attempt, and nothing is tried again."""

    def cancel(self) -> None:
        """Cancel the execution.

        Raises:
            LookupError: When none runs.
        """
        ...


@runtime_checkable
class Timeoutable(Protocol):
    """The per-attempt timeout can be made to expire now."""

    def expire_timeout(self, victim: Processes) -> None:
        """Play the end of the timeout for an attempt.

        Raises:
            LookupError: When the victim is not there.
        """
        ...


@runtime_checkable
class Overlappable(Protocol):
    """The platform can lose sight of an attempt and start the next one beside it."""

    def abandon(self, victim: Processes) -> None:
        """Hold the attempt for dead, let its processes run, start the next attempt.

        Raises:
            LookupError: When the victim is not there.
        """
        ...

    def end_abandoned(self, victim: Processes) -> int:
        """Kill what is left of an abandoned attempt; returns how many processes that were.

        Raises:
            LookupError: When the attempt was not abandoned.
        """
        ...


@runtime_checkable
class CheckpointStorage(Protocol):
    """The checkpoint directory of a task can be read and changed from outside, as the platform's storage would show it."""

    def checkpoint_path(self, task: int) -> Path:
        """The directory as a path on this machine.

        Raises:
            LookupError: When the execution has no such task, or the path leads out of what was mounted.
        """
        ...


class StorageRule(msgspec.Struct, frozen=True, kw_only=True):
    """How writing system calls under the checkpoint directory fare.

    Attributes:
        error: Name of the errno they fail with (``ENOSPC``); empty: they succeed.
        operations: How many fail before the rule ends by itself; 0: all of them.
        delay_s: Seconds each is held before it goes on.
    """

    error: str = ""
    operations: int = 0
    delay_s: float = 0.0


@runtime_checkable
class StorageInterposable(Protocol):
    """Operations on storage can be made to fail or be slow while the job runs; needs ``Launch.interpose_storage``."""

    def storage_problem(self) -> str:
        """Empty, or why operations cannot be interposed on this machine."""
        ...

    def set_storage_rule(self, task: int, rule: StorageRule) -> None:
        """Put a rule in force for the running attempt of a task and those after it.

        Raises:
            LookupError: When no attempt runs under the supervisor.
        """
        ...

    def clear_storage_rule(self, task: int) -> None:
        """Take the rule back; nothing happens when there is none.

        Raises:
            LookupError: When no execution runs.
        """
        ...

    def storage_rule_hits(self, task: int) -> int:
        """How many operations the rule in force, or the last one, has hit."""
        ...


@runtime_checkable
class OperationStops(Protocol):
    """Whoever does an operation of ``Launch.stops`` is held there, told by an ``OperationReached``, until it is let go."""

    def stops_problem(self) -> str:
        """Empty, or why operations cannot be stopped at on this machine."""
        ...

    def resume(self, reached: OperationReached) -> None:
        """Let the process go on that is held there; nothing happens when it is gone."""
        ...


@runtime_checkable
class RayHost(Protocol):
    """The job runs a Ray cluster of its own whose parts can be hit."""

    def kill_ray_processes(self, victim: Processes, component: Literal["raylet", "head"]) -> tuple[int, ...]:
        """SIGKILL a part of the victim's cluster: a node's raylet, of several nodes one that is not the head's, or the control store.

        Returns:
            The ids of the processes that got it; their states are told as those of any other.

        Raises:
            LookupError: When the victim is not there, or no such part of a cluster is.
        """
        ...

    def drain_ray_node(self, victim: Processes, deadline_s: float) -> str:
        """Begin to tell Ray that a node will be preempted ``deadline_s`` after it has accepted that; returns the node's id at once.

        What Ray answers is told by ``ray_node_state``. When the deadline has passed the target takes the node away, with everything that
        runs on it, as the platform would its machine. Of several nodes it is one that is not the head's.

        Raises:
            LookupError: When the victim is not there, or it has no cluster with a node to drain.
        """
        ...

    def ray_node_state(self, victim: Processes, node_id: str) -> Literal["alive", "draining", "dead"]:
        """How a node stands: ``alive`` until Ray has accepted to drain it, then ``draining``, and ``dead`` when it is gone.

        Raises:
            LookupError: When the victim is not there, it has no such node, or Ray refused to drain it or did not answer.
        """
        ...
