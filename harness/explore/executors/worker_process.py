"""The executor's side of a worker: it is started, gets a task, answers or is lost, and is ended with all that it left."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import harness
from harness.clock import Clock
from harness.explore.executors.wire import Answer, Setup, decode, encode
from harness.explore.judging.place import PLACE_VARIABLE
from harness.explore.judging.trial import INSPECT_S_MAX
from harness.explore.judging.warm import IMPORT_S_MAX
from harness.explore.judging.wording import name_of_signal
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.process_table import read_table, send
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.local.processes import END_ROUND_S, END_S_MAX
from harness.targets.local.subreaper import subreaper

LOSSES_MAX = 2
"""A state whose worker is lost is tried again on a fresh one; when that is lost too, the state is why."""

SEND_S_MAX = 30.0
"""A worker that waits for a task reads it at once; one that has been stopped never does."""

OVERHEAD_S = 60.0
"""For copies and digests around a recovery, on a loaded machine."""

RECEIVE_BYTES = 256 << 10


class WorkerLostError(Exception):
    """A worker has ended, or does not listen or answer: nothing is known of the state that it had."""


class WorkerProcess:
    """A worker; started on construction. Whoever makes it adopts orphans (``subreaper``).

    Attributes:
        pid: Its process id.
        task: What it is trying; None while it is idle.
        overdue_s: When it is given up, on the monotonic clock.

    Raises:
        OSError: When it cannot be started.
        WorkerLostError: When it has ended at once.
    """

    def __init__(self, setup: Setup, clock: Clock) -> None:
        self.task: StateTask | None = None
        self.overdue_s = float("inf")
        self._setup, self._clock, self._received = setup, clock, b""
        Path(setup.place).mkdir(parents=True, exist_ok=True)
        own = {RUN_ID_VARIABLE: setup.run_id, PLACE_VARIABLE: str(Path(setup.place).resolve())}
        self._marks = [f"{name}={value}".encode() for name, value in own.items()]
        self._peer, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.worker", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(Path(harness.__file__).parents[1]), **own},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        subreaper.add_leader(self._process.pid)
        self.pid = self._process.pid
        try:
            self._send(encode(setup))
        except WorkerLostError:
            self.end()
            raise

    def fileno(self) -> int:
        """Readable when an answer, or the worker's end, has come."""
        return self._peer.fileno()

    def is_there(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def give(self, task: StateTask) -> None:
        """Have a state tried.

        Raises:
            WorkerLostError: When it does not take it.
        """
        self.task = task
        self.overdue_s = self._clock.monotonic_s() + longest_s(self._setup.recipe, task, has_company=self._setup.has_company)
        self._send(encode(task))

    def take(self) -> Answer | None:
        """The answer, when all of it has come; to be called when it is readable, or overdue.

        Raises:
            WorkerLostError: When the worker has ended instead, or has not answered in its time.
        """
        if self.overdue_s <= self._clock.monotonic_s():
            raise WorkerLostError("it did not answer in its time")
        try:
            data = self._peer.recv(RECEIVE_BYTES)
        except OSError:
            data = b""
        if not data:
            raise WorkerLostError(self._end_in_words())
        self._received += data
        if not self._received.endswith(b"\n"):
            return None
        line, self._received = self._received, b""
        try:
            answer = decode(line, Answer)
        except ValueError as error:
            raise WorkerLostError(f"its answer was none: {error}") from error
        self.task, self.overdue_s = None, float("inf")
        return answer

    def end(self) -> None:
        """Kill it and all that it started.

        Raises:
            TimeoutError: When something withstands.
        """
        known: set[int] = set()
        if self._process.returncode is None:
            known = read_table().family([self.pid])  # who ends with it has no environment any more to be known by
            self._process.kill()
            self._process.wait()
        self._peer.close()
        subreaper.remove_leader(self.pid)
        deadline_s = self._clock.monotonic_s() + END_S_MAX
        while left := self._left_behind() | {pid for pid in known if subreaper.reap(pid)}:
            if self._clock.monotonic_s() >= deadline_s:
                raise TimeoutError(f"processes {sorted(left)} of a worker were killed and are still there after {END_S_MAX:g} s")
            for pid in left:
                send(pid, signal.SIGKILL)
            known |= left
            self._clock.sleep(END_ROUND_S)

    def _left_behind(self) -> set[int]:
        table = read_table()
        marked = table.carrying(self._marks)
        family = marked.union(*(table.descendants(pid) for pid in marked))
        return {pid for pid in family if table.is_alive(pid)}

    def _send(self, line: bytes) -> None:
        self._peer.settimeout(SEND_S_MAX)
        try:
            self._peer.sendall(line)
        except OSError as error:
            raise WorkerLostError(f"it does not listen: {error}") from error

    def _end_in_words(self) -> str:
        """Its socket is closed, so it has ended or is about to; one that lives on without it is of no use."""
        try:
            code = self._process.wait(SEND_S_MAX)
        except subprocess.TimeoutExpired:
            return "it has closed its socket and does not end"
        return f"it was ended by {name_of_signal(-code)}" if code < 0 else f"it left with exit code {code}"


def longest_s(recipe: Recipe, task: StateTask, *, has_company: bool = False) -> float:
    """How long a worker may take for a task; one that has company waits for the others, may try it once more, and waits for that too."""
    once = once_s(recipe, again=task.again)
    return 2 * (once_s(recipe, again=True) + once) if has_company else once


def once_s(recipe: Recipe, *, again: bool) -> float:
    """How long a state may take: each recovery, at most twice in a warm process, and the inspections around it."""
    recoveries = (2 if again else 1) * (2 if recipe.recover else 1)
    inspections = 2 * recoveries if recipe.inspect else 0
    return recoveries * recipe.timeout_s + inspections * INSPECT_S_MAX + (2 * IMPORT_S_MAX if recipe.recover else 0.0) + OVERHEAD_S


def lost_for_good(task: StateTask, why: str) -> Tried:
    """What is said of a state that has lost ``LOSSES_MAX`` workers."""
    return Tried(state=task.state, lost=f"its worker was lost {LOSSES_MAX} times, the last time because {why}")
