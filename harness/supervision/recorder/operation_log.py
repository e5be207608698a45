"""Writes the operation log: a header and one entry a line, and beside them the data."""
# ruff: noqa: PTH118 - pathlib would cost a tenth of the start

import json
import os
import zlib

from harness.clock import SystemClock

LOG_NAME, DATA_NAME, LOG_SCHEMA = "operations.jsonl", "data", 1
"""As in ``harness.explore.operations``, which is above this room."""

_UNDECODABLE = {0xDC00 + byte: 0x10FF00 + byte for byte in range(0x80, 0x100)}
"""JSON has no word for a byte that is no UTF-8: see ``operations.real_path``."""


class LogBrokenError(Exception):
    """The log could not be written: a fault of ours, never the job's."""


def as_text(data: bytes) -> str:
    """A path, or the line of a job, as the log has it."""
    return data.decode(errors="surrogateescape").translate(_UNDECODABLE)


class OperationLog:
    """Every entry is handed to the kernel before its call is answered: it outlives our own ``kill -9``, though not the machine."""

    def __init__(self, directory: str) -> None:
        """Raises OSError when there is a log already, or the directory cannot be made."""
        os.makedirs(directory, exist_ok=True)  # noqa: PTH103 - see above
        flags = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._lines = os.open(os.path.join(directory, LOG_NAME), flags | os.O_WRONLY | os.O_APPEND, 0o644)
        self._data = os.open(os.path.join(directory, DATA_NAME), flags | os.O_RDWR, 0o644)
        self._clock = SystemClock()
        self._index = self._crc32 = 0
        self.size = 0

    @property
    def index(self) -> int:
        """Of the last entry."""
        return self._index

    def begin(self, root: bytes, command: list[str], initial: list[dict[str, object]]) -> None:
        """Write the header."""
        words = [as_text(os.fsencode(word)) for word in command]
        started_s = self._clock.monotonic_s()
        self._write({"schema": LOG_SCHEMA, "root": as_text(root), "command": words, "started_s": started_s, "initial": initial})

    def append(self, kind: str, *, process: int = 0, thread: int = 0, **fields: object) -> None:
        """Write an entry."""
        self._index += 1
        entry = {"kind": kind, "index": self._index, "t_s": self._clock.monotonic_s(), "process": process, "thread": thread}
        self._write(entry | fields)

    def store(self, data: memoryview) -> None:
        """Append to the data."""
        try:
            while data:
                written = os.write(self._data, data)
                self.size += written
                data = data[written:]
        except OSError as error:
            raise LogBrokenError(f"cannot write the data of the log: {error}") from error

    def read(self, start: int, size: int) -> bytes:
        """Some of the data."""
        return os.pread(self._data, size, start)

    def _write(self, document: dict[str, object]) -> None:
        body = json.dumps(document, separators=(",", ":")).encode()[:-1]
        self._crc32 = zlib.crc32(body, self._crc32)
        line = b'%b,"crc32":"%08x"}\n' % (body, self._crc32)
        try:
            while line:
                line = line[os.write(self._lines, line) :]
        except OSError as error:
            raise LogBrokenError(f"cannot write the log: {error}") from error
