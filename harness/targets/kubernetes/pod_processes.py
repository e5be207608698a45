"""The processes of pods as this machine sees them: nodes are containers of its own kernel, so a pod's processes have ids here, too.

Where the engine's kernel is another machine's (Docker Desktop) none is found, and faults of processes are refused for want of a victim.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.process_table import ProcessTable, Searches, State, inside_id, read_row, read_table, send
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.kubernetes.api import Object, name_of, uid_of
from harness.targets.kubernetes.pod_edits import POD_UID_VARIABLE

FIRST = 1
"""The id of a container's first process in its own namespace."""


class PodProcesses:
    """Finds and signals the processes of one run."""

    def __init__(self, run_id: str) -> None:
        self._run_mark = f"{RUN_ID_VARIABLE}={run_id}".encode()
        self._here: dict[str, dict[int, int]] = {}
        self._searches = Searches()

    def of(self, pod: Object, table: ProcessTable | None = None) -> tuple[int, ...]:
        """Those of a pod that are alive, its first one first; none when it has not started, or they are not seen here."""
        return tuple(sorted(self._of(uid_of(pod), table or read_table()), key=lambda pid: (inside_id(pid) != FIRST, pid)))

    def first_of(self, pod: Object, table: ProcessTable | None = None) -> int:
        """The first process of a pod's container; 0 when it is not seen."""
        return next((pid for pid in self.of(pod, table) if inside_id(pid) == FIRST), 0)

    def here(self, uid: str, inside: int, now_s: float) -> int:
        """The id on this machine of the process that a pod names so; 0 when there is none, or it is gone before it was looked for."""
        known = self._here.setdefault(uid, {})
        if inside not in known and inside > 0 and self._searches.may_go_on(now_s):
            known |= {inside_id(pid): pid for pid in self._of(uid, read_table())}
        return known.get(inside, 0)

    def firsts_of(self, pods: Sequence[Object]) -> dict[str, int]:
        """The first process of each pod, by the pod's uid.

        Raises:
            LookupError: When one is not there.
        """
        table = read_table()
        found = {uid_of(pod): self.first_of(pod, table) for pod in pods}
        missing = [name_of(pod) for pod in pods if not found[uid_of(pod)]]
        if missing:
            raise LookupError(f"no process of {', '.join(missing)} runs, as far as this machine sees")
        return found

    def left(self) -> set[int]:
        """All of the run that are alive."""
        table = read_table()
        return {pid for pid in table.carrying((self._run_mark,)) if table.is_alive(pid)}

    def _of(self, uid: str, table: ProcessTable) -> list[int]:
        return [pid for pid in table.carrying((self._run_mark, f"{POD_UID_VARIABLE}={uid}".encode())) if table.is_alive(pid)]


def states_of(pids: Iterable[int]) -> dict[int, str]:
    """The state of each process."""
    return {pid: _state_of(pid) for pid in pids}


def send_all(pids: Iterable[int], number: int) -> tuple[int, ...]:
    """Send a signal; who got it.

    Raises:
        LookupError: When nobody did.
    """
    reached = tuple(pid for pid in pids if send(pid, number))
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


def _state_of(pid: int) -> State:
    row = read_row(pid)
    return "gone" if row is None else row.state
