"""The processes of this machine at one moment, and who is related to whom: by environment, by session, by parents."""

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

State = Literal["running", "stopped", "gone"]

HAS_PROC = Path("/proc/self/stat").exists()
"""Linux: read directly, which is eight times faster than through psutil and matters at every exit."""

SEARCHES_A_MOMENT = 8
"""A look at all processes takes some 5 ms: a job that names ids that are not there must not make us do nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A process as the kernel lists it; ``started`` tells it from a later one of the same id and has no other meaning."""

    pid: int
    parent: int
    session: int
    state: State
    started: float


class ProcessTable:
    """All processes of this machine at one moment."""

    def __init__(self, rows: Iterable[ProcessRow]) -> None:
        self.rows = {row.pid: row for row in rows}

    def carrying(self, marks: Sequence[bytes]) -> set[int]:
        """Those whose environment has all the entries ``marks``: without any nobody, and this process is never among them."""
        if not marks:
            return set()
        return {pid for pid in self.rows if pid != os.getpid() and _carries(pid, marks)}

    def beginners(self, parent: int) -> set[int]:
        """The living children of a process whose environment is empty: of a program that begins it cannot be read yet."""
        return {row.pid for row in self.rows.values() if row.parent == parent and row.state != "gone" and _read_environment(row.pid) == b""}

    def family(self, seeds: Iterable[int]) -> set[int]:
        """The seeds, their descendants, and all that share a session with one of these, but for our own session."""
        children: dict[int, list[int]] = defaultdict(list)
        sessions: dict[int, list[int]] = defaultdict(list)
        for row in self.rows.values():
            children[row.parent].append(row.pid)
            sessions[row.session].append(row.pid)
        sessions.pop(os.getsid(0), None)
        found: set[int] = {os.getpid()}
        pending = [pid for pid in seeds if pid in self.rows]
        while pending:
            row = self.rows[pending.pop()]
            if row.pid not in found:
                found.add(row.pid)
                pending += children[row.pid] + sessions.get(row.session, [])
        return found - {os.getpid()}

    def descendants(self, pid: int) -> set[int]:
        """The living children of a process, their children, and so on."""
        children: dict[int, list[int]] = defaultdict(list)
        for row in self.rows.values():
            if row.state != "gone":
                children[row.parent].append(row.pid)
        found: set[int] = set()
        pending = [pid]
        while pending:
            born = [child for child in children[pending.pop()] if child not in found]
            found.update(born)
            pending += born
        return found - {pid}

    def is_alive(self, pid: int) -> bool:
        """Whether it is there and no zombie."""
        return pid in self.rows and self.rows[pid].state != "gone"


def read_table() -> ProcessTable:
    """List the processes of this machine."""
    return ProcessTable(row for pid in psutil.pids() if (row := read_row(pid)))


def read_row(pid: int) -> ProcessRow | None:
    """One process; None when it is not there. A zombie has the state ``gone``."""
    return _read_row_from_proc(pid) if HAS_PROC else read_row_portably(pid)


def read_row_portably(pid: int) -> ProcessRow | None:
    """As ``read_row``, by psutil: where there is no ``/proc``."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            status, parent, started = process.status(), process.ppid(), process.create_time()
        session = os.getsid(pid)
    except (psutil.Error, OSError):
        return None
    return ProcessRow(pid=pid, parent=parent, session=session, state=_STATES_OF_PSUTIL.get(status, "running"), started=started)


_STATES_OF_PSUTIL: dict[str, State] = {
    psutil.STATUS_STOPPED: "stopped",
    psutil.STATUS_TRACING_STOP: "stopped",
    psutil.STATUS_ZOMBIE: "gone",
    psutil.STATUS_DEAD: "gone",
}

_STATES_OF_PROC: dict[bytes, State] = {b"T": "stopped", b"t": "stopped", b"Z": "gone", b"X": "gone"}


class Searches:
    """Bounds how often all processes are looked at in one moment of a loop."""

    def __init__(self) -> None:
        self._moment_s, self._count = -1.0, 0

    def may_go_on(self, now_s: float) -> bool:
        """Whether there may be one more now; counts it."""
        if now_s != self._moment_s:
            self._moment_s, self._count = now_s, 0
        self._count += 1
        return self._count <= SEARCHES_A_MOMENT


def inside_id(pid: int) -> int:
    """The id of a process in its innermost namespace; 0 when it is gone.

    Source: https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
    """
    return int(_read_status(pid).get("NSpid", "0").split()[-1])


def send(pid: int, number: int) -> bool:
    """Send a signal; whether the process was there to get it."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def state_of(process: ProcessRow) -> State:
    """The state of this very process; who was given its id since is another, and it is gone."""
    now = read_row(process.pid)
    return now.state if now is not None and now.started == process.started else "gone"


def is_there(process: ProcessRow) -> bool:
    """Whether it lives still: not a zombie, and not another one that was given its id since."""
    return state_of(process) != "gone"


def send_to(process: ProcessRow, number: int) -> bool:
    """Send a signal to this very process, and to none that was given its id since; whether it was there to get it.

    Where the kernel has descriptors of processes (Linux 5.3) the id cannot change hands between the look and the signal.
    """
    descriptor = _hold(process.pid)
    try:
        if not is_there(process):
            return False
        if descriptor is None:
            return send(process.pid, number)
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _hold(pid: int) -> int | None:
    """A descriptor of whoever has the id now; None when nobody has, or the system has no such descriptors."""
    with contextlib.suppress(OSError, AttributeError):
        return os.pidfd_open(pid)
    return None


def _read_row_from_proc(pid: int) -> ProcessRow | None:
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may hold anything: fields are counted from its end. 0 state, 1 parent, 3 session, 19 start in ticks.
    fields = data.rpartition(b")")[2].split()
    state = "stopped" if fields[0] == b"D" and _is_held_by_its_child(pid) else _STATES_OF_PROC.get(fields[0], "running")
    return ProcessRow(pid=pid, parent=int(fields[1]), session=int(fields[3]), state=state, started=float(fields[19]))


def _is_held_by_its_child(pid: int) -> bool:
    """Whether a process that waits and cannot be interrupted was told to stop and waits for a child that has stopped.

    After ``vfork`` the parent waits, uninterruptible for all but SIGKILL, until its child has called ``execve`` or has ended; a
    SIGSTOP stays pending for as long, and the kernel shows it as D and never as T. Shells start their commands so.

    Source: https://man7.org/linux/man-pages/man2/vfork.2.html, https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    """
    status = _read_status(pid)
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    if not pending >> (signal.SIGSTOP - 1) & 1:
        return False
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
    except OSError:
        return False
    rows = [_read_row_from_proc(int(child)) for child in children]
    return any(row is not None and row.state == "stopped" for row in rows)


def _carries(pid: int, marks: Sequence[bytes]) -> bool:
    if not HAS_PROC:
        return _carries_portably(pid, marks)
    entries = (_read_environment(pid) or b"").split(b"\0")
    return all(mark in entries for mark in marks)


def _read_status(pid: int) -> dict[str, str]:
    """The fields of a process's status by name; empty when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _read_environment(pid: int) -> bytes | None:
    """As the kernel holds it; None when it cannot be read, as where there is no ``/proc``."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def _carries_portably(pid: int, marks: Sequence[bytes]) -> bool:
    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return False
    entries = {f"{name}={value}".encode() for name, value in environment.items()}
    return entries.issuperset(marks)
