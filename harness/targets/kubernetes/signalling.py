"""Signals to what runs in pods. The pod objects are not touched: the kubelet learns of an end as of any other."""

import contextlib
import signal
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from harness.capabilities import Processes
from harness.history import Cause, LogLine, SignalSent
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.targets.kubernetes.api import Object, uid_of
from harness.targets.kubernetes.execution import ClusterExecution
from harness.targets.kubernetes.grounds import Hosting
from harness.targets.kubernetes.notices import Notices
from harness.targets.kubernetes.pod_processes import send_all, states_of

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

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        """See ``Signalable``."""
        pods = self._hosts(victim)
        if victim.rank != WHOLE_ATTEMPT:
            return (self._rank_process(victim),)
        return tuple(pid for pod in pods for pid in self.execution.processes.of(pod))

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        """See ``Signalable``. What ends goes to the first process of each container, or to that of the rank."""
        execution = self.execution
        pods = self._hosts(victim)
        if victim.rank != WHOLE_ATTEMPT:
            pids: Sequence[int] = (self._rank_process(victim),)
        elif signal_number in STANDING_STILL:
            pids = self.process_ids(victim)
        else:
            pids = tuple(execution.processes.firsts_of(pods).values())
        if signal_number not in STANDING_STILL:
            execution.attempts.note_signal(self._pods_of_processes(pods, pids), cause)
        reached = send_all(pids, signal_number)
        execution.pending.append(self._sent(victim, signal_number, cause, reached))
        return reached

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        """See ``Signalable``."""
        return states_of(pids)

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        """See ``Terminable``."""
        execution = self.execution
        uids = {uid_of(pod) for pod in self._hosts(victim)}
        reached = self.signal(victim, signal.SIGTERM, cause=cause)
        clock, launch = execution.grounds.clock, execution.grounds.launch
        self._notices.give(victim, uids, due_s=clock.monotonic_s() + launch.grace_s)
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
        return reached

    def notice_due_s(self) -> float:
        """When the next notice is over; infinite when there is none."""
        return self._notices.next_due_s

    def end_notices(self) -> None:
        """SIGKILL to what outlives its notice."""
        execution = self.execution
        for victim, uids in self._notices.take_due(execution.grounds.clock.monotonic_s()):
            pods = [pod for pod in execution.grounds.inventory.pods(victim.task) if uid_of(pod) in uids]
            with contextlib.suppress(LookupError):  # it has ended meanwhile
                if victim.rank == WHOLE_ATTEMPT:
                    pids = [pid for pod in pods if (pid := execution.processes.first_of(pod))]
                else:
                    pids = [self._rank_process(victim)]
                reached = send_all(pids, signal.SIGKILL)
                execution.attempts.note_signal(uids, "grace")
                execution.pending.append(self._sent(victim, signal.SIGKILL, "grace", reached))

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

    def _rank_process(self, victim: Processes) -> int:
        """The process of a rank.

        Raises:
            LookupError: When it has not said which it is.
        """
        return self.execution.voices.pid_of(AttemptKey(victim.task, victim.attempt), victim.rank)

    def _pods_of_processes(self, pods: Iterable[Object], pids: Sequence[int]) -> list[str]:
        """The pods that these processes are the first ones of: only such an end ends a pod."""
        processes = self.execution.processes
        return [uid_of(pod) for pod in pods if processes.first_of(pod) in pids]

    def _sent(self, victim: Processes, number: int, cause: Cause, pids: tuple[int, ...]) -> SignalSent:
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        t_s = self.execution.grounds.t_s()
        return SignalSent(t_s=t_s, task=victim.task, attempt=victim.attempt, signal=name, cause=cause, pids=pids, rank=victim.rank)
