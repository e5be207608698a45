"""A gang of ranks in one task, in the standard library: a launcher, and a meeting point where ranks share values.

Each rank has one end of a socket pair, the launcher the other: a rank sends a line, and when all have sent theirs each
gets all of them. The end of a rank's stream is its death, so nobody waits for a rank that is gone: the launcher ends the
others and exits with the code of the first that failed. A rank that is alive and silent is waited for without limit, as
the collectives of real training stacks do.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import time
from typing import TypeVar

Value = TypeVar("Value")

GRACE_S = 2.0  # for ranks that lost a peer: they have nothing to save that the others could complete
LINE_BYTES_MAX = 65536
EXIT_TERMINATED = 128 + signal.SIGTERM


class Gang:
    """A rank's end of its stream to the launcher."""

    def __init__(self, size: int) -> None:
        self.size = size
        with socket.socket(fileno=int(os.environ["GANG_DESCRIPTOR"])) as end:
            self.stream = end.makefile("rwb")  # keeps the connection open

    def gather(self, value: Value) -> list[Value]:
        """Send a value and wait for those of all ranks, in rank order.

        Raises:
            ConnectionError: another rank or the launcher is gone.
        """
        self.stream.write(json.dumps(value).encode() + b"\n")
        self.stream.flush()
        line = self.stream.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the gang has lost a rank")
        values: list[Value] = json.loads(line)
        return values


class Launcher:
    """Starts the ranks, brings them together, and ends them together."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.streams: list[socket.socket] = []
        self.lines: dict[int, bytes] = {}
        self.codes: dict[int, int] = {}
        self.terminated = False

    def run(self, command: list[str], size: int) -> int:
        """Run ``size`` ranks to their end; returns the exit code of the task."""
        signal.signal(signal.SIGTERM, self.forward_sigterm)
        for rank in range(size):
            self.start_rank(command, rank, size)
        while len(self.codes) < size:
            for key, _ in self.selector.select():
                self.hear(key.data)
            if self.is_broken():
                self.end_ranks()
        return self.exit_code()

    def start_rank(self, command: list[str], rank: int, size: int) -> None:
        """Start one rank; a SIGTERM that came while the others started is passed on."""
        ours, theirs = socket.socketpair()
        environment = os.environ | {"RANK": str(rank), "RANKS": str(size), "GANG_DESCRIPTOR": str(theirs.fileno())}
        self.processes.append(subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()]))
        theirs.close()
        self.streams.append(ours)
        self.selector.register(ours, selectors.EVENT_READ, rank)
        if self.terminated:
            self.processes[rank].terminate()

    def forward_sigterm(self, *_: object) -> None:
        """Pass the platform's signal on: each rank decides for itself, together with the others."""
        self.terminated = True
        for process in self.processes:
            process.terminate()

    def hear(self, rank: int) -> None:
        """Take what a rank says; when all have spoken, tell everyone."""
        try:
            received = self.streams[rank].recv(LINE_BYTES_MAX)
        except ConnectionError:
            received = b""
        if not received:
            self.selector.unregister(self.streams[rank])
            self.streams[rank].close()
            self.codes[rank] = exit_code_of(self.processes[rank].wait())
            return
        self.lines[rank] = self.lines.get(rank, b"") + received
        if len(self.lines) == len(self.streams) and all(line.endswith(b"\n") for line in self.lines.values()):
            self.answer()

    def answer(self) -> None:
        """Send all values to every rank; one that has just died is noticed by the end of its stream."""
        values = b"[" + b",".join(self.lines[rank].rstrip() for rank in sorted(self.lines)) + b"]\n"
        self.lines.clear()
        for stream in self.streams:
            try:
                stream.sendall(values)
            except OSError:
                continue

    def is_broken(self) -> bool:
        """Whether a rank failed, or left while another waits to meet it."""
        return any(code not in (0, EXIT_TERMINATED) for code in self.codes.values()) or bool(self.codes and self.lines)

    def end_ranks(self) -> None:
        """End the ranks that are left: SIGTERM and the end of their streams, then SIGKILL."""
        left = [rank for rank in range(len(self.processes)) if rank not in self.codes]
        for rank in left:
            self.processes[rank].terminate()
            self.selector.unregister(self.streams[rank])
            self.streams[rank].close()
        deadline = time.monotonic() + GRACE_S
        for rank in left:
            try:
                self.processes[rank].wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.processes[rank].kill()
                self.processes[rank].wait()
            self.codes[rank] = EXIT_TERMINATED  # whatever it made of losing its peers is not the cause

    def exit_code(self) -> int:
        """The code of the rank that failed first; without one, 143 when a signal ended the gang, 0 when it finished."""
        failed = [code for code in self.codes.values() if code not in (0, EXIT_TERMINATED)]
        return failed[0] if failed else max(self.codes.values())


def launch(command: list[str], size: int) -> int:
    """Run a command on ``size`` ranks as one task; returns its exit code."""
    return Launcher().run(command, size)


def exit_code_of(returncode: int) -> int:
    """A shell's view of a child's end: 128 + the signal that killed it."""
    return 128 - returncode if returncode < 0 else returncode
