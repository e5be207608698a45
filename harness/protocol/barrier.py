"""The barrier of the workload protocol: a Unix socket at which a process of the job waits until the harness has acted.

One socket an attempt, so that who asks is known from where it asks and not from what it says. Nothing listens on TCP.
"""

import contextlib
import hashlib
import os
import selectors
import shutil
import socket
import tempfile
from collections.abc import Collection
from pathlib import Path

import msgspec

from harness.history import BarrierReached, read_regular
from harness.protocol.job_lines import JobLineReader
from harness.protocol.lines import LINE_BYTES_MAX
from harness.store import Owner
from harness.undo import identify

SOCKET_PATH_BYTES_MAX = 103
"""``sun_path`` holds 108 bytes on Linux and 104 on macOS, its closing zero included."""

CONNECTIONS_MAX = 2048
"""A job has at most 1024 ranks; twice that leaves room for those that were killed while they waited."""

READ_BYTES = 64 << 10

OWNER_NAME = "owner.json"
"""In a socket directory: whose it is, for when the run's own directory is not there to say so."""

SHORT_ROOT = Path("/tmp")  # noqa: S108 - mkdtemp makes what is in it ours alone; every POSIX system has it, and nothing shorter


def socket_directory_prefix(run_id: str) -> str:
    """How the names of a run's socket directories begin: short, and found again by ``harness clean``."""
    return f"harness-{hashlib.sha256(run_id.encode()).hexdigest()[:10]}-"


def make_socket_directory(run_id: str) -> Path:
    """A new directory, ours alone, with a path short enough for sockets: away from a long ``TMPDIR`` where there is one."""
    prefix = socket_directory_prefix(run_id)
    longest = len(os.fsencode(tempfile.gettempdir())) + len(f"/{prefix}12345678/control-10000-10")
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=None if longest <= SOCKET_PATH_BYTES_MAX else SHORT_ROOT))
    owner = Owner(run_id=run_id, process=identify([os.getpid()])[0], host=os.uname().nodename)
    with contextlib.suppress(OSError):  # a full disk: then it is found by the run's own directory alone
        (path / OWNER_NAME).write_bytes(msgspec.json.encode(owner))
    return path


def dead_owners() -> list[str]:
    """The ids of runs of this machine whose process is gone and whose socket directory is there still."""
    found: set[str] = set()
    for root in {Path(tempfile.gettempdir()), SHORT_ROOT}:
        for path in root.glob(f"harness-*-*/{OWNER_NAME}"):
            with contextlib.suppress(OSError, msgspec.MsgspecError):  # it goes away just now, or is no such thing
                owner = msgspec.json.decode(read_regular(path), type=Owner)
                is_ours = path.parent.stat().st_uid == os.getuid() and path.parent.name.startswith(socket_directory_prefix(owner.run_id))
                if is_ours and owner.is_dead:
                    found.add(owner.run_id)
    return sorted(found)


def find_socket_directories(run_id: str) -> list[Path]:
    """Those of a run, wherever they were made."""
    prefix = socket_directory_prefix(run_id)
    return sorted({path for root in (Path(tempfile.gettempdir()), SHORT_ROOT) for path in root.glob(f"{prefix}*")})


def remove_socket_directories(run_id: str) -> list[Path]:
    """Remove what a run that was killed has left; returns what there was."""
    found = find_socket_directories(run_id)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


class _Connection:
    """One process at the barrier: first it says where it is, then it waits."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.received = bytearray()
        self.reached: BarrierReached | None = None


class Barrier:
    """The socket of one attempt.

    Attributes:
        garbage_count: Requests that were no line of the protocol; their senders were let go at once.
    """

    def __init__(self, path: Path, reader: JobLineReader, *, armed: Collection[str], selector: selectors.BaseSelector) -> None:
        self._reader = reader
        self._armed = frozenset(armed)
        self._selector = selector
        self._connections: list[_Connection] = []
        self.garbage_count = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(os.fspath(path))
            self._listener.listen(128)
            self._listener.settimeout(0.0)
            selector.register(self._listener, selectors.EVENT_READ)
        except OSError:
            self._listener.close()
            raise

    def receive(self, now_s: float) -> list[BarrierReached]:
        """Who has come to wait since; whoever asks for what is not armed is let go at once."""
        self._accept()
        reached: list[BarrierReached] = []
        for connection in list(self._connections):
            if connection.reached is None:
                reached += self._read_request(connection, now_s)
            else:
                self._notice_end(connection)
        return reached

    def release(self, reached: BarrierReached) -> None:
        """Let one process go that waits there; nothing happens when none does."""
        for connection in self._connections:
            if connection.reached == reached:
                self._let_go(connection)
                return

    def close(self) -> None:
        """Let all go and stop listening."""
        for connection in list(self._connections):
            self._let_go(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def _reader_for(self, peer: socket.socket) -> JobLineReader | None:
        """Who reads what a process asks; None: it is not known yet who asks, and it waits until it is."""
        del peer
        return self._reader

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:  # nobody there any more, or no descriptor left: then they wait in the backlog
                return
            if len(self._connections) >= CONNECTIONS_MAX:
                peer.close()
                continue
            peer.settimeout(0.0)
            self._selector.register(peer, selectors.EVENT_READ)
            self._connections.append(_Connection(peer))

    def _read_request(self, connection: _Connection, now_s: float) -> list[BarrierReached]:
        data = _receive(connection.socket)
        connection.received += data or b""
        line, newline, _ = connection.received.partition(b"\n")
        if not newline:
            if data == b"" or len(line) > LINE_BYTES_MAX:
                self._let_go(connection, is_garbage=bool(line))
            return []
        reader = self._reader_for(connection.socket)
        if reader is None:
            if data == b"":
                self._let_go(connection)
            return []
        try:
            reached = reader.read_barrier(bytes(line), now_s)
        except ValueError:
            self._let_go(connection, is_garbage=True)
            return []
        if f"{reached.event}:{reached.when}" not in self._armed:
            self._let_go(connection)
            return []
        connection.reached = reached
        return [reached]

    def _notice_end(self, connection: _Connection) -> None:
        """Watch a connection no more whose other side has closed or speaks on: it may still wait, or be dead."""
        if connection.socket in self._selector.get_map() and _receive(connection.socket) is not None:
            self._selector.unregister(connection.socket)

    def _let_go(self, connection: _Connection, *, is_garbage: bool = False) -> None:
        self.garbage_count += is_garbage
        self._connections.remove(connection)
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection.socket)
        with contextlib.suppress(OSError):
            connection.socket.send(b"\n")
        connection.socket.close()


def _receive(peer: socket.socket) -> bytes | None:
    """What has come; empty at the end of the stream, None when nothing has come yet."""
    try:
        return peer.recv(READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
