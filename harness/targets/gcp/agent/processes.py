"""The processes of the container: all that descends from this one, since orphans come to it.

Source: proc(5), prctl(2) (PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections import defaultdict
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36

GONE, RUNNING, STOPPED = "gone", "running", "stopped"

_STATES = {"Z": GONE, "X": GONE, "x": GONE, "T": STOPPED, "t": STOPPED}


class Row(NamedTuple):
    """A process as the kernel lists it; ``started`` tells it from a later one of the same id."""

    pid: int
    parent: int
    state: str
    started: str


def adopt_orphans() -> bool:
    """Become the parent of orphans, as the first process of a container is; whether that was done."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0) == 0)
    return False


def read_row(pid: int) -> Row | None:
    """One process; None when it is not there, or the system does not list processes."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  pathlib would be slower
            fields = file.read().rpartition(b")")[2].decode("ascii", "replace").split()
        return Row(pid, int(fields[1]), _STATES.get(fields[0], RUNNING), fields[19])
    except (OSError, IndexError, ValueError):
        return None


def descendants(pid: int) -> list[Row]:
    """The living children of a process, their children, and so on."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    children: dict[int, list[Row]] = defaultdict(list)
    for row in map(read_row, pids):
        if row is not None:
            children[row.parent].append(row)
    found: list[Row] = []
    pending = [pid]
    while pending:
        born = children[pending.pop()]
        found += [row for row in born if row.state != GONE]
        pending += [row.pid for row in born]
    return found


def send(pid: int, number: int) -> bool:
    """Send a signal; whether there was somebody to get it."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_signal(number: int) -> bool:
    """Whether a signal has this number."""
    return 1 <= number < signal.NSIG
