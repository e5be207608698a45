"""The end of all that a recovery has started, wherever it hides: a worker is the parent of whatever loses its own."""

import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.clock import Clock
from harness.process_table import HAS_PROC, ProcessTable, read_table, send
from harness.targets.local.processes import END_ROUND_S, END_S_MAX
from harness.targets.local.subreaper import subreaper


def end_strays(marks: Collection[bytes], clock: Clock, *, keep: int = 0) -> int:
    """Kill every descendant of this process but ``keep``, whose own descendants go too; returns how many there were.

    This process must adopt orphans (``subreaper``); elsewhere than on Linux they are found by the entries ``marks`` of their environment.
    All our other children must have been waited for: what has ended is reaped.

    Raises:
        TimeoutError: When some do not go.
    """
    deadline_s = clock.monotonic_s() + END_S_MAX
    killed: set[int] = set()
    while _may_have_strays(keep):
        table = read_table()
        for row in table.rows.values():
            if row.state == "gone" and row.parent == os.getpid() and row.pid != keep:
                subreaper.reap(row.pid)
        strays = _strays(table, marks, keep)
        if not strays:
            break
        if clock.monotonic_s() >= deadline_s:
            raise TimeoutError(f"processes {sorted(strays)} were killed and are still there after {END_S_MAX:g} s")
        for pid in strays:
            send(pid, signal.SIGKILL)
        killed |= strays
        clock.sleep(END_ROUND_S)
    return len(killed)


def _strays(table: ProcessTable, marks: Collection[bytes], keep: int) -> set[int]:
    found = table.descendants(os.getpid()) | (set() if HAS_PROC else table.carrying(list(marks)))
    return {pid for pid in found if table.is_alive(pid)} - {keep}


def _may_have_strays(keep: int) -> bool:
    """Whether a look at all processes is worth its 5 ms."""
    if not HAS_PROC or not Path("/proc/thread-self/children").exists():  # CONFIG_PROC_CHILDREN
        return True
    children = set(_children_of(os.getpid()))
    return bool(children - {keep}) or bool(keep and any(_children_of(keep)))


def _children_of(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, path.read_bytes().split())
        except OSError:  # the thread has ended, and its children moved to another, which may have been read already
            yield -1
