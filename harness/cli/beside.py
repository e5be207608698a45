"""A command beside a service that it needs: it gets the variables, the terminal and the signals, and its exit code is ours."""

import math
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence

from harness.cli.interruptions import Interruptions
from harness.clock import Clock
from harness.errors import UsageError
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.local.processes import end_processes
from harness.targets.local.subreaper import subreaper

ROUND_S = 0.02
"""Between two looks at the command."""

GRACE_S = 10.0
"""So long a command may take to end that was told to: as a job on Cloud Run."""

KILLED_AT = 128
"""A shell's exit code of a command that a signal has ended is this and the signal's number."""


def run_beside(command: Sequence[str], variables: Mapping[str, str], interruptions: Interruptions, clock: Clock, *, run_id: str) -> int:
    """Run a command to its end, and end what it has left running; returns its exit code.

    A signal is passed on; after the second one, or when the grace is over, the command is killed.

    Args:
        command: Program and arguments.
        variables: What it gets besides our own environment.
        interruptions: What comes for us meanwhile.
        clock: For the grace.
        run_id: Carried by all its processes; ``harness clean`` finds them by it.

    Raises:
        UsageError: When it cannot be started.
    """
    try:
        process = subprocess.Popen(command, env={**os.environ, **variables, RUN_ID_VARIABLE: run_id})
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot run {command[0]!r}: {getattr(error, 'strerror', None) or error}") from error
    subreaper.add_leader(process.pid)
    try:
        code = _attend(process, interruptions, clock)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        subreaper.remove_leader(process.pid)
        end_processes(run_id, clock)
    return code if code >= 0 else KILLED_AT - code


def require_program(command: Sequence[str]) -> None:
    """Refuse a command whose program is not there, before anything is made for it.

    Raises:
        UsageError: When it is not.
    """
    if not command:
        raise UsageError("no command follows --; name one, or leave -- away")
    if shutil.which(command[0]) is None:
        raise UsageError(f"cannot run {command[0]!r}: there is no such program; name one of PATH, or its path")


def _attend(process: "subprocess.Popen[bytes]", interruptions: Interruptions, clock: Clock) -> int:
    passed_on, kill_at_s = 0, math.inf
    while (code := process.poll()) is None:
        if interruptions.count > passed_on:
            passed_on = interruptions.count
            kill_at_s = min(kill_at_s, clock.monotonic_s() + GRACE_S) if passed_on == 1 else clock.monotonic_s()
            if not _was_for_all(interruptions.last):
                process.send_signal(interruptions.last)
        if clock.monotonic_s() >= kill_at_s:
            process.kill()
            kill_at_s = math.inf
        clock.sleep(ROUND_S)
    return code


def _was_for_all(number: int) -> bool:
    """Whether a terminal has sent it to the whole foreground, and so to the command as well: said twice it would mean more."""
    if number != signal.SIGINT:
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
