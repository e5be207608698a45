"""The caller's side of the supervisor that holds a job at operations: starting a command under it, hearing who is held, letting go."""

import contextlib
import functools
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

import harness.supervision
from harness.history import OperationReached
from harness.protocol.attempt_key import AttemptKey
from harness.scenario.triggers import AtOperation
from harness.supervision.syscalls import this_architecture

SCRIPT = Path(harness.supervision.__path__[0], "stops_script.py")

PROBE_TIMEOUT_S = 30.0
"""The probe starts two interpreters, 0.2 s on an idle machine."""

READ_BYTES = 64 << 10

UNSEEN = ("close",)
"""Nobody tells a supervisor of it: it is found out later that a file is open no longer."""

_MAKE_A_FILE = "import sys; open(sys.argv[1], 'x')"


class StopLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who is held, as the supervisor says it."""

    stop: int
    process: int
    thread: int
    path: str


_lines = msgspec.json.Decoder(StopLine)


def held_at(command: Sequence[str], stops: Sequence[AtOperation], *, door: Path, root: Path, events: Path) -> tuple[str, ...]:
    """The command line that runs ``command`` under a supervisor.

    ``-P`` keeps the job's directory from standing in front of the standard library.

    Args:
        command: Program and arguments.
        stops: Where it is held.
        door: Where the supervisor tells it; somebody listens there already.
        root: The directory whose operations are counted; it exists.
        events: The file that the job writes its events to.
    """
    asked = json.dumps([{name: getattr(at, name) for name in at.__struct_fields__} for at in stops])
    options = ("--root", str(root), "--events", str(events), "--door", str(door), "--stops", asked)
    return (sys.executable, "-P", str(SCRIPT), *options, "--", *command)


class StopsDoor:
    """The socket at which the supervisor of one attempt tells who is held."""

    def __init__(
        self, path: Path, key: AttemptKey, stops: Sequence[AtOperation], *, epoch_s: float, selector: selectors.BaseSelector
    ) -> None:
        self._key, self._stops, self._epoch_s, self._selector = key, tuple(stops), epoch_s, selector
        self._supervisor: socket.socket | None = None
        self._heard = bytearray()
        self._held: dict[int, OperationReached] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(os.fspath(path))
            self._listener.listen(1)
            self._listener.settimeout(0.0)
            selector.register(self._listener, selectors.EVENT_READ)
        except OSError:
            self._listener.close()
            raise

    def receive(self, now_s: float) -> list[OperationReached]:
        """See ``harness.cloud_run.attempt.Stops``."""
        if self._supervisor is None and not self._accept():
            return []
        assert self._supervisor is not None
        while data := self._read(self._supervisor):
            self._heard += data
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard[:] = rest
        return [self._reached(_lines.decode(line), now_s) for line in lines]

    def resume(self, reached: OperationReached) -> None:
        """See ``harness.cloud_run.attempt.Stops``."""
        index = next((index for index, held in self._held.items() if held == reached), None)
        if index is None or self._supervisor is None:
            return
        del self._held[index]
        with contextlib.suppress(OSError):  # it has ended, and the job with it
            self._supervisor.sendall(b"%d\n" % index)

    def close(self) -> None:
        """See ``harness.cloud_run.attempt.Stops``."""
        for door in (self._supervisor, self._listener):
            if door is not None and door.fileno() >= 0:
                self._forget(door)
                door.close()

    def _accept(self) -> bool:
        try:
            self._supervisor, _ = self._listener.accept()
        except OSError:
            return False
        self._supervisor.settimeout(0.0)
        self._selector.register(self._supervisor, selectors.EVENT_READ)
        return True

    def _read(self, supervisor: socket.socket) -> bytes:
        """What it has said since; nothing when it has said nothing, or has ended."""
        try:
            data = supervisor.recv(READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._forget(supervisor)  # an end would never let the selector sleep
        return data

    def _forget(self, door: socket.socket) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(door)

    def _reached(self, line: StopLine, now_s: float) -> OperationReached:
        at = self._stops[line.stop]
        asked = {name: getattr(at, name) for name in at.__struct_fields__}
        reached = OperationReached(t_s=now_s - self._epoch_s, task=self._key.task, attempt=self._key.attempt, pid=line.process, **asked)
        self._held[line.stop] = reached
        return reached


@functools.cache
def stops_available() -> str:
    """Empty when a command can be held at operations here, else why not: found out by holding one, as sandboxes differ."""
    if sys.platform != "linux":
        return f"seccomp user notification is Linux only; this is {sys.platform}"
    if this_architecture() is None:
        return f"no table of system calls for {os.uname().machine}"
    with tempfile.TemporaryDirectory(prefix="stops-") as scratch, selectors.DefaultSelector() as selector:
        root, path = Path(scratch, "root"), Path(scratch, "door")
        root.mkdir()
        probe = (sys.executable, "-S", "-c", _MAKE_A_FILE, str(root / "probe"))
        stops = (AtOperation(operation="create", path="probe", when="before"),)
        with contextlib.closing(StopsDoor(path, AttemptKey(0, 0), stops, epoch_s=0.0, selector=selector)) as door:
            command = held_at(probe, stops, door=path, root=root, events=Path(scratch, "events"))
            return _problem_with(command, door, selector, made=root / "probe")


def _problem_with(command: Sequence[str], door: StopsDoor, selector: selectors.BaseSelector, *, made: Path) -> str:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            selector.select(PROBE_TIMEOUT_S)
            door.receive(0.0)
            selector.select(PROBE_TIMEOUT_S)
            reached = door.receive(0.0)
            is_held = bool(reached) and not made.exists()
            for held in reached:
                door.resume(held)
            _, said = process.communicate(timeout=PROBE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"the supervisor does not end within {PROBE_TIMEOUT_S:g} s"
    if not is_held or process.returncode != 0:
        why = said.strip().splitlines() or [f"exit code {process.returncode}"]
        return f"a job cannot be held at its operations: {why[-1]}"
    return ""
