"""What a run leaves behind when the harness itself is killed, and its end: for ``harness clean``."""

import psutil

from harness.clock import Clock
from harness.targets.local.processes import end_processes, find_processes
from harness.targets.local.scratch import find_scratch_directories, remove_scratch_directories


def left_behind(run_id: str) -> list[str]:
    """The run's processes and scratch directories, one line each."""
    processes = [f"process {pid} ({_name_of(pid)})" for pid in find_processes(run_id)]
    return processes + [f"scratch directory {path}" for path in find_scratch_directories(run_id)]


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """End and remove it all; one line for each thing done or not possible. Doing it twice is harmless."""
    found = left_behind(run_id)
    survivors = end_processes(run_id, clock)
    remove_scratch_directories(run_id)
    return [f"removed {thing}" for thing in found] + [f"process {pid} withstands SIGKILL: its disk or driver hangs" for pid in survivors]


def _name_of(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "ended meanwhile"
