"""The processes of one attempt: a first one in a session of its own, and whatever comes from it.

They stand for a container: the first process is its PID 1. What the platform sends to PID 1 goes to the first process alone, what ends the
container (SIGKILL) or freezes it (SIGSTOP, SIGCONT) goes to all, those that left the session included.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.cloud_run.attempt import ForeignKill
from harness.errors import BrokenHarnessError
from harness.process_table import ProcessTable, read_row, read_table, send
from harness.protocol.attempt_key import WHOLE_ATTEMPT
from harness.targets.local.processes import END_ROUND_S
from harness.targets.local.subreaper import subreaper

_SIGNALS_FOR_ALL = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT}
_STANDSTILL = {signal.SIGSTOP, signal.SIGCONT}


class ProcessGroup:
    """One attempt's processes; started on construction.

    Args:
        command: Program and arguments.
        directory: Where it runs.
        environment: All of its variables.
        marks: Entries of the environment by which its processes are known.
        is_held: Whether the first process is a supervisor of ours that holds the job in its calls: a standstill of the job is none of it,
            for whoever is held stands still only when it is let go.

    Attributes:
        pid: The first process: also the id of its group and session.
        stdout, stderr: The descriptors that its output comes from.
        returncode: Its wait status as ``subprocess`` writes it (a signal is negative); None until it has been waited for.
        leftover_count: How many processes outlived it and were killed by ``sweep``.

    Raises:
        OSError: When the program cannot be started.
    """

    def __init__(
        self, command: Sequence[str], *, directory: Path, environment: Mapping[str, str], marks: Sequence[bytes], is_held: bool = False
    ) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]
        self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes)
        self.pid = self._process.pid
        self.returncode: int | None = None
        self.leftover_count = 0
        self.end_round_s = END_ROUND_S
        self._marks = marks
        self._is_held = is_held
        self._killed: set[int] = set()
        self._started: dict[int, float] = {}
        self.exit_descriptor = _open_exit_descriptor(self.pid)
        self._identify([self.pid])

    def poll(self) -> int | None:
        """Wait for the first process without blocking.

        Raises:
            BrokenHarnessError: When somebody else has taken the exit status.
        """
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError as error:
                message = f"the exit status of process {self.pid} was taken by other code of this process; it must not wait for any child"
                raise BrokenHarnessError(message) from error
            if pid:
                self.returncode = self._process.returncode = os.waitstatus_to_exitcode(status)
                subreaper.remove_leader(self.pid)
        return self.returncode

    def signal(self, number: int, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """Send a signal to the attempt, or to the one process that a rank named; returns who got it.

        Raises:
            LookupError: When there is nobody: the first process has ended, or the named process is none of this attempt.
        """
        pids = self.find(rank_pid) if rank_pid != WHOLE_ATTEMPT or number in _SIGNALS_FOR_ALL else self.find(self.pid)
        if self._is_held and number in _STANDSTILL:
            pids = tuple(pid for pid in pids if pid != self.pid)
        self._identify(pids)
        if number == signal.SIGKILL:
            self._killed.update(pids)
            if rank_pid == WHOLE_ATTEMPT:
                _kill_group(self.pid)
        return tuple(pid for pid in pids if send(pid, number) or pid in self._killed)

    def kill(self, pids: Sequence[int]) -> tuple[int, ...]:
        """SIGKILL to some of the attempt's processes and to nobody else; returns who got it."""
        self._identify(pids)
        self._killed.update(pids)
        return tuple(pid for pid in pids if send(pid, signal.SIGKILL))

    def sweep(self) -> bool:
        """Kill what has outlived the first process; whether all of it is gone. Called again until it says so."""
        if not subreaper.may_have_orphans() and not self._killed:
            return True
        table = read_table()
        family = table.family(self._seeds(table))
        alive = {pid for pid in family if table.is_alive(pid)}
        self.leftover_count += len(alive - self._killed)
        for pid in alive:
            send(pid, signal.SIGKILL)
        self._killed |= alive
        ending = [pid for pid in (family | self._killed) - {self.pid} if subreaper.reap(pid)]  # without an environment: in no family
        return not alive and not ending

    def state_of(self, pid: int) -> str | None:
        """``running``, ``stopped`` or ``gone``; None when this attempt knows no such process."""
        if pid in self._started:
            row = read_row(pid)
            return row.state if row is not None and row.started == self._started[pid] else "gone"
        table = read_table()
        return table.rows[pid].state if pid in self._members(table) else None

    def find(self, rank_pid: int = WHOLE_ATTEMPT) -> tuple[int, ...]:
        """The processes of the attempt that are alive, the first one first; or the one that a rank named, if it is among them.

        Raises:
            LookupError: When there is nobody.
        """
        if self.poll() is not None:
            raise LookupError(f"process {self.pid} has ended already")
        if rank_pid == self.pid:
            return (self.pid,)
        members = self._members(read_table())
        if rank_pid == WHOLE_ATTEMPT:
            return members
        if rank_pid not in members:
            raise LookupError(f"process {rank_pid} does not run, or is none of this attempt")
        return (rank_pid,)

    def foreign_kill(self) -> ForeignKill | None:
        """Cannot be told: a process may kill itself, and what the kernel counts for want of memory it counts for our whole group."""
        return None

    def close(self) -> None:
        """Close the pipes and the exit descriptor."""
        if self._process.returncode is None:
            self._process.returncode = -signal.SIGKILL  # not known, and nobody asks; else ``subprocess`` would wait for it on its own
        for pipe in self._pipes:
            pipe.close()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
            self.exit_descriptor = None

    def _seeds(self, table: ProcessTable) -> set[int]:
        """Where the family starts: the first process, its session, and those that carry the attempt's environment.

        Its id is its own until it has been waited for and its session is empty; whoever bears it then is a stranger.
        """
        first = table.rows.get(self.pid)
        if first is not None and first.started != self._started.get(self.pid):
            return table.carrying(self._marks)
        session = {row.pid for row in table.rows.values() if row.session == self.pid}
        return session | {self.pid} | table.carrying(self._marks)

    def _members(self, table: ProcessTable) -> tuple[int, ...]:
        family = table.family(self._seeds(table))
        return tuple(sorted((pid for pid in family if table.is_alive(pid)), key=lambda pid: (pid != self.pid, pid)))

    def _identify(self, pids: Sequence[int]) -> None:
        for pid in pids:
            row = read_row(pid)
            if row is not None:
                self._started[pid] = row.started


def _kill_group(pid: int) -> None:
    """At once for all of the group, also those born since we looked."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _open_exit_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has such (Linux 5.3)."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
