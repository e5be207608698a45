"""Which rank a process is: as it says itself in its events, else by ``RANK`` of its environment, else as the process it comes from."""
# ruff: noqa: PTH123 - pathlib would cost a tenth of the start

from collections.abc import Callable

ANCESTORS_MAX = 64
"""No tree of processes of a job is so deep."""


class Ranks:
    """The ranks of a job's processes.

    Args:
        read_environment: The environment that a process began with, as ``/proc`` has it; raises OSError when it is not to be had.
        read_parent: Its parent's id; likewise.
    """

    def __init__(self, read_environment: Callable[[int], bytes] | None = None, read_parent: Callable[[int], int] | None = None) -> None:
        self._read_environment = read_environment or _environment_of
        self._read_parent = read_parent or _parent_of
        self._said: dict[int, int] = {}
        self._found: dict[int, int] = {}

    def say(self, process: int, rank: int) -> None:
        """A process has said in an event which rank it is."""
        if self._said.get(process) != rank:
            self._said[process] = rank
            self._found.clear()

    def of(self, process: int) -> int:
        """The rank of a process; 0 where nobody says: a job of one."""
        if process not in self._found:
            self._found[process] = self._find(process)
        return self._found[process]

    def _find(self, process: int) -> int:
        for _ in range(ANCESTORS_MAX):
            if process in self._said:
                return self._said[process]
            try:
                named = _named(self._read_environment(process))
                if named is not None:
                    return named
                process = self._read_parent(process)
            except OSError:
                return 0
        return 0


def _named(environment: bytes) -> int | None:
    """``RANK``, as launchers give it: torchrun, and many after it. Source: https://docs.pytorch.org/docs/stable/elastic/run.html."""
    for entry in environment.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"RANK" and value.isdigit():
            return int(value)
    return None


def _environment_of(process: int) -> bytes:
    return _read(f"/proc/{process}/environ")


def _parent_of(process: int) -> int:
    """The fourth field of ``stat``: the second is a name in brackets, in which anything may stand; proc_pid_stat(5)."""
    return int(_read(f"/proc/{process}/stat").rpartition(b")")[2].split()[1])


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
