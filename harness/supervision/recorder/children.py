"""Processes that a job has left behind: they are ours, since we adopt orphans, so nothing hides them."""
# ruff: noqa: PTH123 - pathlib would cost a tenth of the start

import os
import signal

_PARENT = 1
"""Of what follows the name in ``/proc/PID/stat``, which may hold anything. Source: proc_pid_stat(5)."""


def end_children() -> int:
    """Kill the children of this process; returns how many there are. When they are waited for, theirs are ours, and so on."""
    found = [process for process in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent_of(process) == os.getpid()]
    for process in found:
        os.kill(process, signal.SIGKILL)  # not waited for yet, so the id is still its own
    return len(found)


def _parent_of(process: int) -> int:
    try:
        with open(f"/proc/{process}/stat", "rb", buffering=0) as file:
            return int(file.read().rpartition(b")")[2].split()[_PARENT])
    except OSError:
        return 0
