"""What a run leaves behind when the harness itself is killed, and its end: for ``harness clean``."""

import psutil

from harness.clock import Clock
from harness.targets.local.processes import end_processes, find_processes
from harness.targets.local.scratch import find_scratch_directories, remove_scratch_directories

LOOKS_MAX = 3
"""One finds it all, as a rule; what is ended may have made something in its last moment."""


def left_behind(run_id: str) -> list[str]:
    """The run's processes and scratch directories, one line each."""
    processes = [_words(pid) for pid in find_processes(run_id)]
    return processes + [f"scratch directory {path}" for path in find_scratch_directories(run_id)]


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """End and remove it all; one line for each thing done. Doing it twice is harmless.

    A process that withstands SIGKILL, for its disk or driver hangs, is left: ``left_behind`` tells it still.
    """
    found: list[str] = []
    left = left_behind(run_id)
    for _ in range(LOOKS_MAX):
        found += left
        survivors = end_processes(run_id, clock)
        remove_scratch_directories(run_id)
        left = left_behind(run_id)
        if not left or survivors:
            break
    return [f"removed {thing}" for thing in dict.fromkeys(found) if thing not in left]


def _words(pid: int) -> str:
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:
        return f"process {pid} (ended meanwhile)"
