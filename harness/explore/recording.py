"""The caller's side of the recorder: one run of a command, with all that it did to its checkpoint directory."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import harness.supervision
from harness.clock import SystemClock
from harness.errors import BrokenHarnessError
from harness.explore.operations import LOG_NAME
from harness.supervision.syscalls import this_architecture

SCRIPT = Path(harness.supervision.__path__[0], "recorder_script.py")

EVENTS_NAME, OUTPUT_NAME, ERRORS_NAME = "events.jsonl", "stdout", "stderr"
"""Beside the log: what the job said and printed."""

EXIT_BROKEN = 70
"""Of the recorder itself; then its log has no last line."""

GRACE_S = 10.0
"""From SIGTERM to SIGKILL when the time is up, as Cloud Run has it."""

PROBE_TIMEOUT_S = 30.0
"""The probe starts two interpreters, 0.2 s on an idle machine."""

_SHOWN_MAX = 2000

_MAKE_A_FILE = "import sys; open(sys.argv[1], 'x').write('seen')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A run that was recorded.

    Attributes:
        log_directory: Where the log lies, with the job's events and output beside it.
        exit_code: Of the command; None: a signal ended it.
        signal: The signal; None: it ended by itself.
        timed_out: Whether it had to be ended: the log may have no last line.
        seconds: How long it took, recorder included.
    """

    log_directory: Path
    exit_code: int | None
    signal: int | None
    timed_out: bool
    seconds: float

    @property
    def events(self) -> Path:
        """What the job said."""
        return self.log_directory / EVENTS_NAME

    def errors(self) -> str:
        """The end of what it wrote to its standard error."""
        return (self.log_directory / ERRORS_NAME).read_text(errors="replace")[-_SHOWN_MAX:]


def record(
    command: Sequence[str], *, root: Path, log_directory: Path, environment: Mapping[str, str], cwd: Path, timeout_s: float
) -> Recording:
    """Run a command to its end and record what it does. Processes that outlive it are ended, unless the recorder itself was killed.

    Args:
        command: Program and arguments.
        root: The checkpoint directory; it exists.
        log_directory: Where the log is made; there must be none yet, and it lies outside of ``root``.
        environment: All of the command's variables; ``HARNESS_EVENTS`` is put in.
        cwd: Where the command runs.
        timeout_s: After so long it gets SIGTERM, and ``GRACE_S`` later it is killed.

    Raises:
        BrokenHarnessError: When the recorder could not begin, or broke.
    """
    log_directory.mkdir(parents=True, exist_ok=True)
    events = log_directory / EVENTS_NAME
    clock = SystemClock()
    began_s = clock.monotonic_s()
    with (log_directory / OUTPUT_NAME).open("wb") as output, (log_directory / ERRORS_NAME).open("wb") as errors:
        process = subprocess.Popen(
            _command_line(command, root=root, log_directory=log_directory, events=events),
            env={**environment, "HARNESS_EVENTS": str(events)},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        timed_out = not _waits(process, timeout_s)
    seconds = clock.monotonic_s() - began_s
    code = process.returncode
    if code == EXIT_BROKEN and not _has_ended(log_directory):
        said = (log_directory / ERRORS_NAME).read_text(errors="replace")[-_SHOWN_MAX:].strip()
        raise BrokenHarnessError(f"the recorder of {command[0]!r} in {root} broke: {said or 'it said nothing'}")
    return Recording(
        log_directory=log_directory,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=timed_out,
        seconds=seconds,
    )


@functools.cache
def recorder_available() -> str:
    """Empty when commands can be recorded here, else why not: found out by recording one, for sandboxes differ in what they forbid."""
    if sys.platform != "linux":
        return f"seccomp user notification is Linux only; this is {sys.platform}"
    if this_architecture() is None:
        return f"no table of system calls for {os.uname().machine}"
    with tempfile.TemporaryDirectory(prefix="recorder-") as scratch:
        root, log = Path(scratch, "root"), Path(scratch, "log")
        root.mkdir()
        command = (sys.executable, "-S", "-c", _MAKE_A_FILE, str(root / "probe"))
        environment = dict(os.environ)
        try:
            done = record(command, root=root, log_directory=log, environment=environment, cwd=root, timeout_s=PROBE_TIMEOUT_S)
        except (OSError, BrokenHarnessError) as error:
            return f"the recorder does not run: {error}"
        kinds = [part for part in (b'"kind":"create"', b'"kind":"write"') if part not in (log / LOG_NAME).read_bytes()]
        if done.exit_code != 0 or kinds:
            return f"system calls cannot be recorded: {(done.errors().strip().splitlines() or ['one was not seen'])[-1]}"
    return ""


def _command_line(command: Sequence[str], *, root: Path, log_directory: Path, events: Path) -> tuple[str, ...]:
    """``-P`` keeps the job's directory from standing in front of the standard library."""
    options = ("--root", str(root), "--log", str(log_directory), "--events", str(events))
    return (sys.executable, "-P", str(SCRIPT), *options, "--", *command)


def _waits(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for the recorder; False when it had to be ended, with all that is in its session."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return False
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return True


def _has_ended(log_directory: Path) -> bool:
    try:
        return b'"kind":"end"' in (log_directory / LOG_NAME).read_bytes().splitlines()[-1]
    except (OSError, IndexError):
        return False
