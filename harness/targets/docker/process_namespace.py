"""Process ids in a container, and the ids of the same processes on this machine.

A job says the ids that it knows, which are those of its own namespace; signals go, and undos are written, by those of this machine. Source:
https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
"""

from harness.process_table import ProcessRow, ProcessTable, Searches, inside_id, read_row, read_table

UNKNOWN = 0
"""As in a line of the protocol that names no process."""


class ProcessNamespace:
    """The processes of one container: its first one and all that descend from it, for orphans come to the first one.

    Attributes:
        first: The first process, by its id here; 0 until it runs.
        row: The same as it began: its id may be somebody else's after its end. None until it runs, or when it had ended by then.
    """

    def __init__(self) -> None:
        self.first = UNKNOWN
        self.row: ProcessRow | None = None
        self._here: dict[int, int] = {}
        self._searches = Searches()

    def begin(self, first: int) -> None:
        """The first process runs."""
        self.first, self.row = first, read_row(first) if first else None
        self._here = {1: first} if first else {}

    def here(self, inside: int, now_s: float) -> int:
        """The id on this machine of the process that the job names so; ``UNKNOWN`` when there is none, or none any more."""
        if inside not in self._here and inside > 0 and self._searches.may_go_on(now_s):
            self._here |= {inside_id(row.pid): row.pid for row in self.members(read_table())}
        return self._here.get(inside, UNKNOWN)

    def members(self, table: ProcessTable) -> tuple[ProcessRow, ...]:
        """Those that are alive, the first one first; nobody when that has ended, for then all have."""
        first = table.rows.get(self.first)
        if self.row is None or first is None or first.started != self.row.started or not table.is_alive(self.first):
            return ()
        return (first, *(table.rows[pid] for pid in sorted(table.descendants(self.first)) if table.is_alive(pid)))


def is_first_of_a_namespace(pid: int) -> bool:
    """Whether a process of this machine is the first one of a namespace below ours: what the engine has named is then seen here."""
    return inside_id(pid) == 1 and pid != 1
