"""Runs the command lines of docker, kind, kubectl and the builders: each with a deadline, each failure with its own words."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import BrokenHarnessError

OUTPUT_SHOWN_MAX = 2000
"""Characters of a failed command's output in its error: enough for the last messages, few enough for a terminal."""


class CommandFailedError(BrokenHarnessError):
    """A command ended with an error, did not end in time, or is not there."""

    def __init__(self, *, command: Sequence[str], outcome: str, output: str = "") -> None:
        self.command, self.outcome, self.output = tuple(command), outcome, output
        shown = output.strip()[-OUTPUT_SHOWN_MAX:]
        super().__init__(f"`{' '.join(command)}` {outcome}" + (f": {shown}" if shown else ""))


def run_command(
    command: Sequence[str],
    *,
    deadline_s: float,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    log: Path | None = None,
    ends_with_us: bool = False,
) -> str:
    """Run a command to its end and return what it printed.

    Args:
        command: The program and its arguments.
        deadline_s: After this it is killed, with all that it started.
        stdin: What it reads; nothing by default.
        environment: Variables beside the inherited ones.
        directory: Where it runs.
        log: A file to which both its outputs are appended instead; the returned text is then empty.
        ends_with_us: It is killed when this process is, however that ends, though not what it has started itself: for what makes
            things that a later attempt would remove.

    Raises:
        CommandFailedError: When it ends with another code than 0, not in time, or cannot be started.
    """
    command = bound_to_us(command) if ends_with_us else command
    joined = {**os.environ, **environment} if environment else None
    try:
        if log is None:
            return _finish(command, deadline_s, stdin, _popen(command, joined, directory, subprocess.PIPE, subprocess.PIPE))
        with log.open("ab") as file:
            return _finish(command, deadline_s, stdin, _popen(command, joined, directory, file.fileno(), subprocess.STDOUT), log=log)
    except OSError as error:
        raise CommandFailedError(command=command, outcome=f"cannot be started: {error.strerror or error}") from error


def bound_to_us(command: Sequence[str]) -> Sequence[str]:
    """The command under Linux's parent-death signal, where the tool for it is there."""
    return ["setpriv", "--pdeathsig", "KILL", *command] if shutil.which("setpriv") else command


def _popen(
    command: Sequence[str], environment: Mapping[str, str] | None, directory: Path | None, stdout: int, stderr: int
) -> subprocess.Popen[str]:
    """Start it in a session of its own, so that a deadline ends all of it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        cwd=directory,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _finish(
    command: Sequence[str], deadline_s: float, stdin: str | None, process: subprocess.Popen[str], *, log: Path | None = None
) -> str:
    with process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=deadline_s)
        except subprocess.TimeoutExpired as error:
            _kill_session(process)
            raise CommandFailedError(command=command, outcome=f"did not end within {deadline_s:g} s", output=_tail(log)) from error
        except BaseException:
            _kill_session(process)
            raise
    if process.returncode != 0:
        output = _tail(log) if log else f"{stdout or ''}{stderr or ''}"
        raise CommandFailedError(command=command, outcome=f"ended with {process.returncode}", output=output)
    return stdout or ""


def _kill_session(process: subprocess.Popen[str]) -> None:
    """End the command with all that it started; it led a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _tail(log: Path | None) -> str:
    """The end of a log."""
    return log.read_text(errors="replace")[-OUTPUT_SHOWN_MAX:] if log and log.exists() else ""
