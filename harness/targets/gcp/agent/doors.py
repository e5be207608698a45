"""Where the job speaks and waits: the event file and the barrier of the workload protocol (``workloads/protocol.md``)."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from typing import Callable, Iterator  # noqa: UP035  a container may have Python 3.8

from harness.targets.gcp.agent.points import Points, is_request

LINE_BYTES_MAX = 1 << 20
PIECE_BYTES = 64 << 10
SOCKET_PATH_BYTES_MAX = 103
CONNECTIONS_MAX = 2048


class EventTail:
    """Follows the event file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._partial = b""
        self._is_long = False
        self._long_count = self._cut_count = 0

    def read(self) -> Iterator[str]:
        """The lines that have ended since."""
        while True:
            data = os.read(self._descriptor, PIECE_BYTES)
            if not data:
                self._notice_cut()
                return
            *ended, rest = (self._partial + data).split(b"\n")
            for line in ended:
                if self._is_long or len(line) > LINE_BYTES_MAX:
                    self._long_count += 1
                    self._is_long = False
                elif line.strip():
                    yield line.decode("utf-8", "replace")
            self._is_long = self._is_long or len(rest) > LINE_BYTES_MAX
            self._partial = b"" if self._is_long else rest

    def _notice_cut(self) -> None:
        """A file that is shorter than what was read of it goes on from its end: what was between is not known."""
        size = os.fstat(self._descriptor).st_size
        if size < os.lseek(self._descriptor, 0, os.SEEK_CUR):
            self._cut_count += 1
            os.lseek(self._descriptor, size, os.SEEK_SET)

    def lost(self) -> dict[str, int]:
        """What could not be read of it, at the end: long lines and a torn last one, and what its job has done to the file."""
        try:
            is_same = os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))  # noqa: PTH116
        except OSError:
            is_same = False
        found = {
            "event": self._long_count + (bool(self._partial) or self._is_long),
            "events of a file that was cut short": self._cut_count,
            "events of a file that was replaced or removed": int(not is_same),
        }
        return {what: count for what, count in found.items() if count}

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class _Caller:
    """Who is at the barrier: first it says where it is, then it waits."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.said = b""
        self.number = 0
        self.since_s = 0.0
        self.why = ""


class Barrier:
    """The socket at which the job waits.

    Attributes:
        garbage_count: Requests that were none; their senders were let go at once.

    Args:
        path: Where.
        points: Where somebody is held; who asks for anything else goes on at once.
        reached: Told of a number and of the line of whoever waits now.
        passed: Told why somebody would have been held, and went on at once.
    """

    def __init__(
        self,
        path: str,
        points: Points,
        *,
        selector: selectors.BaseSelector,
        reached: Callable[[int, str], None],
        passed: Callable[[str], None],
    ) -> None:
        self._points, self._selector, self._reached, self._passed = points, selector, reached, passed
        self._passing: frozenset[str] = frozenset()
        self._callers: dict[int, _Caller] = {}
        self._count = self.garbage_count = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(128)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def is_holding(self) -> bool:
        """Whether anybody waits."""
        return any(caller.number for caller in self._callers.values())

    def let_pass(self, why: frozenset[str]) -> None:
        """Hold nobody for these reasons from now on; those that are held for them go on."""
        self._passing = why
        for caller in [caller for caller in self._callers.values() if caller.number and caller.why in why]:
            self._let_go(caller)
            self._passed(caller.why)

    def release(self, number: int) -> bool:
        """Let one go; whether it was there."""
        for caller in list(self._callers.values()):
            if caller.number == number and number:
                self._let_go(caller)
                return True
        return False

    def release_overdue(self, now_s: float, hold_s: float) -> list[int]:
        """Let those go that have waited too long: a job never depends on the harness."""
        overdue = [caller for caller in self._callers.values() if caller.number and now_s >= caller.since_s + hold_s]
        for caller in overdue:
            self._let_go(caller)
        return [caller.number for caller in overdue]

    def hold_from(self, number: int, now_s: float) -> None:
        """Count the time of one that waits."""
        for caller in self._callers.values():
            if caller.number == number:
                caller.since_s = now_s

    def close(self) -> None:
        """Let all go, and listen no more."""
        for caller in list(self._callers.values()):
            self._let_go(caller)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            peer, _ = self._listener.accept()
            if len(self._callers) >= CONNECTIONS_MAX:
                peer.close()
                return
            peer.setblocking(False)
            caller = _Caller(peer)
            self._callers[peer.fileno()] = caller
            self._selector.register(peer, selectors.EVENT_READ, lambda: self._hear(caller))

    def _hear(self, caller: _Caller) -> None:
        try:
            data = caller.socket.recv(PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if caller.number:
            self._unwatch(caller)  # it speaks on, or has closed its side: it may wait all the same
            return
        caller.said += data
        line, newline, _ = caller.said.partition(b"\n")
        if not newline:
            if not data or len(line) > LINE_BYTES_MAX:
                self.garbage_count += bool(line)
                self._let_go(caller)
            return
        caller.why = self._points.hold_for(line)
        if not caller.why or caller.why in self._passing:
            self.garbage_count += not is_request(line)
            self._let_go(caller)
            if caller.why:
                self._passed(caller.why)
            return
        self._count += 1
        caller.number = self._count
        self._reached(caller.number, line.decode("utf-8", "replace"))

    def _unwatch(self, caller: _Caller) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(caller.socket)

    def _let_go(self, caller: _Caller) -> None:
        self._callers.pop(caller.socket.fileno(), None)
        self._unwatch(caller)
        with contextlib.suppress(OSError):
            caller.socket.send(b"\n")
        caller.socket.close()
