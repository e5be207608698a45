"""Signals to what runs in containers far away: ordered from the agent there, and known to be done when it says so.

Process ids are those of the container. They mean nothing on this machine, so no undo here may name them: what is stopped is continued by
the agent itself, should nobody order it, and ends with the execution.
"""

from abc import abstractmethod
from collections.abc import Sequence

from harness.capabilities import Processes
from harness.history import Cause
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.targets.gcp.execution import GcpExecution


class ProcessHosting:
    """The part of the target that is ``Signalable``, ``Terminable``, ``GraceExpirable`` and ``Timeoutable``."""

    continues_by_itself = "the agent in the container continues what it has stopped after a minute, and the execution ends with the run"

    @property
    @abstractmethod
    def execution(self) -> GcpExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """See ``Signalable``. The first one, or that of the rank, by the container's own ids."""
        execution, key = self.execution, _key_of(victim)
        first = execution.attempts.find(key).pid
        return (first if victim.rank == WHOLE_ATTEMPT else execution.attempts.pid_of(key, victim.rank),)

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """See ``Signalable``."""
        return self.execution.orders.give_and_hear(_key_of(victim), "signal", rank=victim.rank, signal=int(signal_number), cause=cause)

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """See ``Signalable``. As agents have told them last."""
        return {pid: self.execution.attempts.state_of(pid) for pid in pids}

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """See ``Terminable``. The line is logged when the attempt has ended, after the job's own lines, and marked as played."""
        execution = self.execution
        key = _key_of(victim)
        grace_s = execution.grounds.launch.grace_s
        pids = execution.orders.give_and_hear(key, "notice", rank=victim.rank, grace_s=grace_s, cause=cause)
        if message:
            execution.attempts.attempt(key).message = (message, reason)
        return pids

    def expire_grace(self, victim: Processes) -> tuple[int, ...]:
        """See ``GraceExpirable``."""
        return self.execution.orders.give_and_hear(_key_of(victim), "end-grace", rank=victim.rank)

    def expire_timeout(self, victim: Processes) -> None:
        """See ``Timeoutable``. A running execution keeps the timeout that it began with, so the agent plays its end."""
        execution = self.execution
        launch = execution.grounds.launch
        key = _key_of(victim)
        execution.orders.give_and_hear(key, "notice", grace_s=launch.grace_s, cause="timeout")
        seconds = int(launch.timeout_s) if launch.timeout_s == int(launch.timeout_s) else launch.timeout_s
        text = f"Terminating task because it has reached the maximum timeout of {seconds} seconds."
        execution.attempts.attempt(key).message = (text, "")


def _key_of(victim: Processes) -> AttemptKey:
    return AttemptKey(victim.task, victim.attempt)
