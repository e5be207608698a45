"""One attempt as a container: its first process is PID 1 of a namespace of its own, and the kernel ends all with it."""

import contextlib
import os
import select
import signal
from collections.abc import Sequence

from harness.cloud_run.attempt import ForeignKill
from harness.cloud_run.platform_lines import memory_line
from harness.process_table import ProcessRow, read_table, send_to, state_of
from harness.protocol.attempt_key import WHOLE_ATTEMPT
from harness.targets.docker.attached_output import AttachedOutput
from harness.targets.docker.engine import Engine
from harness.targets.docker.exit_status import exit_status, status_of_engine
from harness.targets.docker.memory import MemoryWatch
from harness.targets.docker.process_namespace import ProcessNamespace

_SIGNALS_FOR_ALL = {signal.SIGSTOP, signal.SIGCONT}

END_ROUND_S = 0.01
"""The engine notices an end after a tenth of a second, and an answer of it takes some milliseconds."""


class Container:
    """See ``harness.cloud_run.attempt.AttemptProcesses``. The container has been started.

    Signals go by the processes' ids on this machine: for one rank as for all, without a process more in the container. What the platform
    sends to PID 1 goes to the first process alone; SIGKILL of that one is, by the kernel, the end of all.

    Attributes:
        pid: The first process by its id on this machine; 0 when it had ended before the engine could name it.
        leftover_count: Always 0: the kernel ends what outlives the first process together with it, and nobody counts.
    """

    def __init__(self, container: str, *, engine: Engine, output: AttachedOutput, namespace: ProcessNamespace, memory_mib: int) -> None:
        self._container = container
        self._engine = engine
        self._output = output
        self._namespace = namespace
        self._memory_mib = memory_mib
        self.returncode: int | None = None
        self.leftover_count = 0
        self.end_round_s = END_ROUND_S
        self.pid = namespace.first
        self.exit_descriptor = _open_exit_descriptor(self.pid)
        self._memory = MemoryWatch(self.pid)
        self._is_over = self._is_out_of_memory = self._is_removed = self._was_killed = False
        self._exit_code = 0
        self._first = namespace.row
        self._known: dict[int, ProcessRow] = {}

    def poll(self) -> int | None:
        """See ``AttemptProcesses``. The kernel's word comes first, the engine's where the kernel has none."""
        if self.returncode is not None:
            return self.returncode
        if self.exit_descriptor is not None:
            if not _is_readable(self.exit_descriptor):
                return None
            self._memory.look()
            self.returncode = exit_status(self.exit_descriptor)
        if self.returncode is None and self._is_known_to_be_over():
            self.returncode = self._status_in_the_end()
        return self.returncode

    def signal(self, number: int, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """See ``AttemptProcesses``."""
        rows = self._addressed(number, rank_pid)
        if number == signal.SIGKILL and rows[0].pid == self.pid:
            return tuple(row.pid for row in rows) if self._send(rows[:1], number) else ()
        return self._send(rows, number)

    def kill(self, pids: Sequence[int]) -> tuple[int, ...]:
        """See ``AttemptProcesses``."""
        table = read_table()
        return self._send([row for row in self._namespace.members(table) if row.pid in pids], signal.SIGKILL)

    def find(self, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """See ``AttemptProcesses``."""
        return tuple(row.pid for row in self._find(rank_pid))

    def state_of(self, pid: int) -> str | None:
        """See ``AttemptProcesses``."""
        if pid in self._known:
            return state_of(self._known[pid])
        return next((row.state for row in self._namespace.members(read_table()) if row.pid == pid), None)

    def sweep(self) -> bool:
        """See ``AttemptProcesses``. All is gone with the first process; here the engine must know it, and its output be read."""
        return self._is_known_to_be_over()

    def foreign_kill(self) -> ForeignKill | None:
        """See ``AttemptProcesses``: for memory, by the engine's word or the control group's count; else by somebody who may.

        A first process cannot have done it itself: the kernel drops a SIGKILL that comes from within.
        """
        is_whole = self.returncode == -signal.SIGKILL and not self._was_killed
        if self._is_short_of_memory:
            return ForeignKill(line=memory_line(limit_mib=self._memory_mib, used_mib=self._memory.peak_mib), is_whole=is_whole)
        return ForeignKill(line="", is_whole=True) if is_whole else None

    def close(self) -> None:
        """See ``AttemptProcesses``: the container is removed."""
        self._output.close()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
            self.exit_descriptor = None
        self._engine.remove(self._container)

    @property
    def _is_short_of_memory(self) -> bool:
        return self._is_out_of_memory or self._memory.kills > 0

    def _find(self, rank_pid: int) -> tuple[ProcessRow, ...]:
        if self.poll() is not None or self._first is None:
            raise LookupError(f"container {self._container[:12]} has ended already")
        if rank_pid == self.pid:
            return (self._first,)
        members = self._namespace.members(read_table())
        if not members:
            raise LookupError(f"container {self._container[:12]} has ended already")
        if rank_pid == WHOLE_ATTEMPT:
            return members
        found = tuple(row for row in members if row.pid == rank_pid)
        if not found:
            raise LookupError(f"process {rank_pid} does not run, or is none of this attempt")
        return found

    def _addressed(self, number: int, rank_pid: int) -> tuple[ProcessRow, ...]:
        if rank_pid != WHOLE_ATTEMPT:
            return self._find(rank_pid)
        goes_to_all = number in _SIGNALS_FOR_ALL or number == signal.SIGKILL
        return self._find(WHOLE_ATTEMPT if goes_to_all else self.pid)

    def _send(self, rows: Sequence[ProcessRow], number: int) -> tuple[int, ...]:
        """Send a signal to these very processes: an id may be somebody else's by now, on this machine and not in the container."""
        self._known.update({row.pid: row for row in rows})
        self._was_killed = self._was_killed or (number == signal.SIGKILL and self.pid in [row.pid for row in rows])
        return tuple(row.pid for row in rows if send_to(row, number))

    def _status_in_the_end(self) -> int:
        """By the time when the engine knows of the end, the kernel says it where it ever does."""
        status = None if self.exit_descriptor is None else exit_status(self.exit_descriptor)
        if status is not None:
            return status
        was_killed = self._was_killed or self._is_removed or self._is_short_of_memory
        return status_of_engine(self._exit_code, was_killed=was_killed)

    def _is_known_to_be_over(self) -> bool:
        """Asked only when all output is read: before, the engine would wait for us, and we for it."""
        state = None if self._is_over or not self._output.is_at_end else self._engine.state(self._container)
        if state is not None:
            self._is_over, self._exit_code, self._is_removed = state.is_over, state.exit_code, state.is_removed
            self._is_out_of_memory = state.is_out_of_memory
        return self._is_over


def _open_exit_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None when it has ended already."""
    with contextlib.suppress(OSError):
        return os.pidfd_open(pid) if pid else None
    return None


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
