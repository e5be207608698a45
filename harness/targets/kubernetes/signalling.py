"""Signals to what runs in pods. The pod objects are not touched: the kubelet learns of an end as of any other."""

import contextlib
import signal
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

from harness.capabilities import Processes
from harness.history import Cause, LogLine, SignalSent
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.targets.kubernetes.api import Object, uid_of
from harness.targets.kubernetes.execution import ClusterExecution
from harness.targets.kubernetes.grounds import Hosting
from harness.targets.kubernetes.notices import Notices
from harness.targets.kubernetes.pod_processes import PodProcess, send_all, states_of

STANDING_STILL = (signal.SIGSTOP, signal.SIGCONT)
"""They go to every process, and end none."""


class ProcessHosting(Hosting):
    """The part of the target that is ``Signalable`` and ``Terminable``."""

    @property
    @abstractmethod
    def execution(self) -> ClusterExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """

    @cached_property
    def _notices(self) -> Notices:
        return Notices()

    @cached_property
    def _signalled(self) -> dict[int, PodProcess]:
        """Who had an id when a signal went there."""
        return {}

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """See ``Signalable``."""
        return tuple(process.pid for process in self._processes(victim))

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """See ``Signalable``. What ends goes to the first process of each container, or to that of the rank."""
        return tuple(process.pid for process in self._signal(victim, signal_number, cause))

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """See ``Signalable``."""
        known = [self._signalled[pid] for pid in pids if pid in self._signalled]
        return dict.fromkeys(pids, "gone") | states_of(known)

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """See ``Terminable``."""
        execution = self.execution
        reached = self._signal(victim, signal.SIGTERM, cause)
        clock, launch = execution.grounds.clock, execution.grounds.launch
        self._notices.give(victim, reached, due_s=clock.monotonic_s() + launch.grace_s)
        if message:
            execution.pending.append(
                LogLine(
                    t_s=execution.grounds.t_s(),
                    task=victim.task,
                    attempt=victim.attempt,
                    stream="system",
                    text=message,
                    severity="WARNING",
                    reason=reason,
                )
            )
        return tuple(process.pid for process in reached)

    def notice_due_s(self) -> float:
        """When the next notice is over; infinite when there is none."""
        return self._notices.next_due_s

    def end_notices(self) -> None:
        """SIGKILL to what outlives its notice, and to nobody who has come after it."""
        for victim, processes in self._notices.take_due(self.execution.grounds.clock.monotonic_s()):
            with contextlib.suppress(LookupError):  # they have ended meanwhile
                self._send(victim, processes, signal.SIGKILL, "grace")

    def _signal(self, victim: Processes, number: int, cause: Cause) -> tuple[PodProcess, ...]:
        """Send a signal to a victim; who got it.

        Raises:
            LookupError: When nobody did.
        """
        goes_to_all = victim.rank != WHOLE_ATTEMPT or number in STANDING_STILL
        processes = self._processes(victim) if goes_to_all else self.execution.processes.firsts_of(self._hosts(victim))
        return self._send(victim, processes, number, cause)

    def _send(self, victim: Processes, processes: Sequence[PodProcess], number: int, cause: Cause) -> tuple[PodProcess, ...]:
        """Send a signal to these very processes; of whom it reached, only a first one's end ends a pod."""
        execution = self.execution
        reached = send_all(processes, number)
        self._signalled.update({process.pid: process for process in reached})
        if number not in STANDING_STILL:
            execution.attempts.note_signal([process.pod_uid for process in reached if process.is_first], cause)
        execution.pending.append(self._sent(victim, number, cause, tuple(process.pid for process in reached)))
        return reached

    def _hosts(self, victim: Processes) -> list[Object]:
        """The pods of the victim's attempt that run.

        Raises:
            LookupError: When there is none.
        """
        execution, inventory = self.execution, self.grounds.inventory
        own = {pod.uid for pod in execution.attempts.pods_of(AttemptKey(victim.task, victim.attempt)) if pod.end is None}
        found = [pod for pod in inventory.pods(victim.task, "host") if uid_of(pod) in own]
        if not found:
            raise LookupError(f"attempt {victim.attempt} of task {victim.task} does not run")
        return found

    def _processes(self, victim: Processes) -> tuple[PodProcess, ...]:
        """All of a victim.

        Raises:
            LookupError: When its attempt does not run, or its rank has not said which process it is, or that was of a pod that has ended.
        """
        pods = self._hosts(victim)
        if victim.rank == WHOLE_ATTEMPT:
            return tuple(process for pod in pods for process in self.execution.processes.of(pod))
        process = self.execution.voices.process_of(AttemptKey(victim.task, victim.attempt), victim.rank)
        if process.pod_uid not in map(uid_of, pods):
            raise LookupError(f"process {process.pid}, which rank {victim.rank} said it is, was of a pod that does not run any more")
        return (process,)

    def _sent(self, victim: Processes, number: int, cause: Cause, pids: tuple[int, ...]) -> SignalSent:
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        t_s = self.execution.grounds.t_s()
        return SignalSent(t_s=t_s, task=victim.task, attempt=victim.attempt, signal=name, cause=cause, pids=pids, rank=victim.rank)
