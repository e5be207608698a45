"""Process ids in a container, and the ids of the same processes on this machine.

A job says the ids that it knows, which are those of its own namespace; signals go, and undos are written, by those of this machine. Source:
https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
"""

from pathlib import Path

from harness.process_table import ProcessTable, read_table

UNKNOWN = 0
"""As in a line of the protocol that names no process."""

SEARCHES_A_MOMENT = 8
"""A look at all processes takes some 5 ms: a job that names ids that are not there must not make us do nothing else."""


class ProcessNamespace:
    """The processes of one container: its first one and all that descend from it, for orphans come to the first one.

    Attributes:
        first: The first process, by its id here; 0 until it runs.
    """

    def __init__(self) -> None:
        self.first = UNKNOWN
        self._here: dict[int, int] = {}
        self._searched_s, self._searches = -1.0, 0

    def begin(self, first: int) -> None:
        """The first process runs."""
        self.first = first
        self._here = {1: first} if first else {}

    def here(self, inside: int, now_s: float) -> int:
        """The id on this machine of the process that the job names so; ``UNKNOWN`` when there is none, or none any more."""
        if inside not in self._here and inside > 0 and self._may_search(now_s):
            self._here |= {_inside(pid): pid for pid in self.members(read_table())}
        return self._here.get(inside, UNKNOWN)

    def members(self, table: ProcessTable) -> tuple[int, ...]:
        """Those that are alive, by their ids here, the first one first."""
        if not self.first:
            return ()
        alive = (pid for pid in table.descendants(self.first) if table.is_alive(pid))
        return (self.first, *sorted(alive))

    def _may_search(self, now_s: float) -> bool:
        if now_s != self._searched_s:
            self._searched_s, self._searches = now_s, 0
        self._searches += 1
        return self._searches <= SEARCHES_A_MOMENT


def is_first_of_a_namespace(pid: int) -> bool:
    """Whether a process of this machine is the first one of a namespace below ours: what the engine has named is then seen here."""
    return _inside(pid) == 1 and pid != 1


def _inside(pid: int) -> int:
    """The id of a process in its innermost namespace; ``UNKNOWN`` when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return UNKNOWN
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), UNKNOWN)
