"""Which processes belong to a run: those with the run id in their environment, and what descends from them.

A process that empties its environment, leaves the session and outlives its parents is not found: only a container holds on to it.
"""

import os
import signal

from harness.clock import Clock
from harness.process_table import ProcessTable, read_table, send
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.local.subreaper import subreaper

END_S_MAX = 5.0
"""SIGKILL acts within milliseconds; a process that large memory or a stuck disk keeps longer is left and named."""

BEGIN_S_MAX = 0.1
"""Between the moment at which a program is known to have been started and that at which its environment can be read lie microseconds."""

END_ROUND_S = 0.002
"""Between two looks whether the killed are gone."""


def find_processes(run_id: str) -> list[int]:
    """The processes of a run that are alive: those with the run id in their environment, and what descends from them.

    One that writes its title over its environment, as Ray's agents do, is known by its parents alone.
    """
    return _processes_in(read_table(), run_id)


def _processes_in(table: ProcessTable, run_id: str) -> list[int]:
    marked = table.carrying([f"{RUN_ID_VARIABLE}={run_id}".encode()])
    family = marked.union(*(table.descendants(pid) for pid in marked)) - {os.getpid()}
    return sorted(pid for pid in family if table.is_alive(pid))


def end_processes(run_id: str, clock: Clock) -> list[int]:
    """Kill all processes of a run and wait until they are gone; returns those that did not go within ``END_S_MAX``.

    The kernel closes the descriptors of ``execve`` before it sets up the new environment: one whose start is known already may not be
    known as the run's yet, and is waited for.
    """
    began_s = clock.monotonic_s()
    deadline_s = began_s + END_S_MAX
    killed: set[int] = set()
    while True:
        table = read_table()
        # Asked before who is the run's: whoever sets up its environment between the two looks is seen by one of them.
        are_beginning = clock.monotonic_s() < began_s + BEGIN_S_MAX and bool(table.beginners(os.getpid()))
        found = _processes_in(table, run_id)
        ending = [pid for pid in killed if subreaper.reap(pid)]  # without an environment
        if not found and not ending and not are_beginning:
            return []
        for pid in found:
            send(pid, signal.SIGKILL)
        killed.update(found)
        if clock.monotonic_s() >= deadline_s:
            return sorted({*found, *ending})
        clock.sleep(END_ROUND_S)
