"""The processes of pods as this machine sees them: nodes are containers of its own kernel, so a pod's processes have ids here, too.

An id alone names nobody: the kernel gives it away again, and this machine has other processes than ours. Whoever is to get a signal is
known by id and start, and was seen to carry the run's id and the pod's uid when it was found; later it may have covered them by its title.

Where the engine's kernel is another machine's (Docker Desktop) none is found, and faults of processes are refused for want of a victim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.process_table import ProcessRow, ProcessTable, Searches, State, inside_id, is_there, read_table, send_to, state_of
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.kubernetes.api import Object, name_of, uid_of
from harness.targets.kubernetes.pod_edits import POD_UID_VARIABLE

FIRST = 1
"""The id of a container's first process in its own namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodProcess:
    """A process of a pod of the run, which no later one of the same id is taken for.

    Attributes:
        row: What it is on this machine.
        pod_uid: The pod that it is of.
        is_first: Whether it is the first one of a container: its end ends that.
    """

    row: ProcessRow
    pod_uid: str
    is_first: bool

    @property
    def pid(self) -> int:
        """Its id on this machine."""
        return self.row.pid


class PodProcesses:
    """Finds the processes of one run."""

    def __init__(self, run_id: str) -> None:
        self._run_mark = f"{RUN_ID_VARIABLE}={run_id}".encode()
        self._named: dict[str, dict[int, PodProcess]] = {}
        self._looked_s: dict[tuple[str, int], float] = {}
        self._heard: dict[int, PodProcess] = {}
        self._searches = Searches()

    def of(self, pod: Object, table: ProcessTable | None = None) -> tuple[PodProcess, ...]:
        """Those of a pod that are alive, its first one first; none when it has not started, or they are not seen here."""
        return tuple(sorted(self._of(uid_of(pod), table or read_table()), key=lambda process: (not process.is_first, process.pid)))

    def first_of(self, pod: Object, table: ProcessTable | None = None) -> PodProcess | None:
        """The first process of a pod's container; None when it is not seen."""
        return next((process for process in self.of(pod, table) if process.is_first), None)

    def here(self, uid: str, inside: int, now_s: float) -> int:
        """The id on this machine of the process that a pod names so; 0 when there is none, or it is gone before it was looked for.

        A container that is started again counts anew: who is gone is looked for once more, and stays what it was where nobody is found.
        """
        named = self._named.setdefault(uid, {})
        if inside > 0 and not self._is_there_still(uid, inside, now_s) and self._searches.may_go_on(now_s):
            named |= {inside_id(process.pid): process for process in self._of(uid, read_table())}
        if inside not in named:
            return 0
        self._heard[named[inside].pid] = named[inside]
        return named[inside].pid

    def heard(self, pid: int) -> PodProcess | None:
        """Who was named last by that id of this machine, alive or not; None when nobody was."""
        return self._heard.get(pid)

    def firsts_of(self, pods: Sequence[Object]) -> tuple[PodProcess, ...]:
        """The first process of each pod.

        Raises:
            LookupError: When one is not there.
        """
        table = read_table()
        found = {name_of(pod): self.first_of(pod, table) for pod in pods}
        missing = [name for name, process in found.items() if process is None]
        if missing:
            raise LookupError(f"no process of {', '.join(missing)} runs, as far as this machine sees")
        return tuple(process for process in found.values() if process is not None)

    def left(self) -> list[ProcessRow]:
        """All of the run that are alive."""
        table = read_table()
        return [table.rows[pid] for pid in sorted(table.carrying((self._run_mark,))) if table.is_alive(pid)]

    def _of(self, uid: str, table: ProcessTable) -> list[PodProcess]:
        carrying = table.carrying((self._run_mark, f"{POD_UID_VARIABLE}={uid}".encode()))
        rows = [table.rows[pid] for pid in carrying if table.is_alive(pid)]
        return [PodProcess(row=row, pod_uid=uid, is_first=inside_id(row.pid) == FIRST) for row in rows]

    def _is_there_still(self, uid: str, inside: int, now_s: float) -> bool:
        """Whether a named process is there; looked at once a moment, however much it says in that."""
        found = self._named[uid].get(inside)
        if found is None:
            return False
        if self._looked_s.get((uid, inside)) != now_s:
            self._looked_s[uid, inside] = now_s
            return is_there(found.row)
        return True


def states_of(processes: Iterable[PodProcess]) -> dict[int, State]:
    """The state of each process; who has its id by now is another, and it is gone."""
    return {process.pid: state_of(process.row) for process in processes}


def send_all(processes: Iterable[PodProcess], number: int) -> tuple[PodProcess, ...]:
    """Send a signal; who got it.

    Raises:
        LookupError: When nobody did.
    """
    reached = tuple(process for process in processes if send_to(process.row, number))
    if not reached:
        raise LookupError("the processes have ended, or are not this user's to signal")
    return reached


def pod_uid_of(pid: int) -> str:
    """The pod that a process is of, by its environment; empty when it is gone or of none."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    mark = f"{POD_UID_VARIABLE}=".encode()
    return next((entry[len(mark) :].decode() for entry in entries if entry.startswith(mark)), "")
