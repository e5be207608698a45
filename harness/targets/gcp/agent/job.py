"""The job: a child in a session of its own, signalled as the platform would, and all that comes from it.

As with the first process of a container, what ends or freezes the container (SIGKILL, SIGSTOP, SIGCONT) goes to all of its processes, any
other signal to the first one alone.
"""

from __future__ import annotations

import os
import signal
import subprocess

from harness.targets.gcp.agent.orders import WHOLE
from harness.targets.gcp.agent.processes import GONE, RUNNING, STOPPED, Row, descendants, read_row, send

FOR_ALL = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT})

EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127
"""As every shell says it."""


class Job:
    """The job's processes, running from the moment this exists.

    Attributes:
        pid: The first one.
        status: How it ended, as ``subprocess`` writes it (a signal is negative); None while it runs.
        leftovers: How many processes outlived it and were killed.

    Raises:
        OSError: When the program cannot be started.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid = self._process.pid
        self.status: int | None = None
        self.leftovers = 0
        self._killed: set[int] = set()
        self._watched: dict[int, tuple[str, str]] = {}
        self._watch([self.pid])

    def reap(self) -> None:
        """Wait for all children that have ended, orphans among them, without blocking."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.pid:
                self.status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                self._process.returncode = self.status  # else ``subprocess`` would wait for it on its own

    def signal(self, number: int, pid: int = WHOLE) -> list[int]:
        """Send a signal to the job, or to one of its processes; returns who got it, nobody when it has ended or has no such process."""
        if self.status is not None:
            return []
        family = self._family()
        if pid not in (WHOLE, self.pid) and pid not in family:
            return []
        receivers = family if pid == WHOLE and number in FOR_ALL else [self.pid if pid == WHOLE else pid]
        self._watch(receivers)
        reached = [receiver for receiver in receivers if send(receiver, number)]
        if number == signal.SIGKILL:
            self._killed.update(reached)
        return reached

    def changes(self) -> dict[int, str]:
        """The states of those that were signalled, where they have changed since the last call."""
        changed: dict[int, str] = {}
        for pid, (started, state) in list(self._watched.items()):
            row = read_row(pid)
            now = row.state if row is not None and row.started == started else GONE
            if now != state:
                self._watched[pid] = (started, now)
                changed[pid] = now
        return changed

    def states(self, pids: list[int]) -> dict[int, str]:
        """The states of processes of the job, as they are now."""
        self.changes()
        return {pid: self._watched[pid][1] if pid in self._watched else GONE for pid in pids}

    def sweep(self) -> bool:
        """Kill what has outlived the first process; whether all of it is gone."""
        left = descendants(os.getpid())
        self.leftovers += sum(row.pid not in self._killed for row in left)
        for row in left:
            send(row.pid, signal.SIGKILL)
        self._killed.update(row.pid for row in left)
        self.reap()
        return not left

    def _family(self) -> list[int]:
        """The job's processes that are alive, the first one first."""
        found = [row.pid for row in descendants(os.getpid())]
        return sorted(found, key=lambda pid: (pid != self.pid, pid)) if self.pid in found else [self.pid, *sorted(found)]

    def _watch(self, pids: list[int]) -> None:
        for pid in pids:
            row: Row | None = read_row(pid)
            if pid not in self._watched and row is not None:
                self._watched[pid] = (row.started, row.state if row.state in (STOPPED, GONE) else RUNNING)


def exit_code_of(status: int) -> int:
    """The exit code that a shell would give."""
    return 128 - status if status < 0 else status
