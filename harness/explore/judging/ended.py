"""A command run to its end, with all that it starts, within a time."""

import os
import selectors
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from harness.clock import Clock
from harness.explore.judging.grant import Grant
from harness.explore.judging.speech import Hear, Output
from harness.explore.judging.strays import end_strays
from harness.targets.local.subreaper import subreaper

LOOK_S = 0.02
"""Between two looks whether a process has ended, where no descriptor tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it went.

    Attributes:
        exit_code: None when a signal ended it, or when it had to be ended.
        signal: The signal that ended it, when it was not ours.
        timed_out: Whether it had to be ended.
        slept: Whether it had to be ended and had used no processor time for the last half of its time.
        seconds: How long it took.
        said: The end of its output.
        printed: The end of its standard output alone.
    """

    exit_code: int | None
    signal: int | None = None
    timed_out: bool = False
    slept: bool = False
    seconds: float = 0.0
    said: str = ""
    printed: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it ended by itself, with 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run: ``marks`` are entries of its environment by which its processes are known."""

    words: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    marks: Collection[bytes]


def run_to_end(command: Command, *, timeout_s: float, clock: Clock, keep: int = 0, hear: Hear | None = None) -> Ended:
    """Run a command in a session of its own; when it has ended, or its time is over, everything that it started is ended.

    Args:
        command: What.
        timeout_s: From its start.
        clock: The machine's.
        keep: A child of this process that has nothing to do with it and stays.
        hear: Gets each line that it prints.

    Raises:
        OSError: When it cannot be started.
        TimeoutError: When something of it withstands SIGKILL.
    """
    grant = Grant(timeout_s, clock)
    process = subprocess.Popen(
        list(command.words),
        cwd=command.directory,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    subreaper.add_leader(process.pid)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        output = Output({"stdout": process.stdout.fileno(), "stderr": process.stderr.fileno()}, hear)
        try:
            has_ended = grant.wait(lambda until_s: await_end(process, output, deadline_s=until_s, clock=clock))
            slept, seconds = not has_ended and grant.was_slept_through(), grant.seconds
        finally:
            if process.returncode is None:
                process.kill()
            code = process.wait()
            subreaper.remove_leader(process.pid)
            end_strays(command.marks, clock, keep=keep)
        output.drain()
    ended = ended_of(code, timed_out=not has_ended, seconds=seconds, said=output.end)
    return replace(ended, slept=slept, printed=output.end_of("stdout"))


def ended_of(code: int, *, timed_out: bool, seconds: float, said: str) -> Ended:
    """From a return code as ``subprocess`` writes it: a signal is negative. When we ended it, neither says anything of the job."""
    return Ended(
        exit_code=code if code >= 0 and not timed_out else None,
        signal=-code if code < 0 and not timed_out else None,
        timed_out=timed_out,
        seconds=seconds,
        said=said,
    )


def await_end(process: "subprocess.Popen[bytes]", output: Output, *, deadline_s: float, clock: Clock) -> bool:
    """Listen until it has ended; False when it has not by then."""
    with EndWatch(process.pid) as watch:
        output.watch_in(watch.selector)
        while process.poll() is None:
            left_s = deadline_s - clock.monotonic_s()
            if left_s <= 0:
                return False
            output.take({key.fd for key, _ in watch.select(left_s)}, watch.selector)
    return True


class EndWatch:
    """A selector that wakes when a child process has ended, or, where the system has no descriptors of processes, often."""

    def __init__(self, pid: int) -> None:
        self.selector = selectors.DefaultSelector()
        self._descriptor: int | None = None
        try:
            self._descriptor = os.pidfd_open(pid)
            self.selector.register(self._descriptor, selectors.EVENT_READ)
        except (OSError, AttributeError):
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()
        if self._descriptor is not None:
            os.close(self._descriptor)

    def select(self, left_s: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until something has come, or the time is over."""
        return self.selector.select(left_s if self._descriptor is not None else min(left_s, LOOK_S))
