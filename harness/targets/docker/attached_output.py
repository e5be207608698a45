"""Stdout and stderr of a container, as the engine sends them: one stream of pieces, each behind a header.

Source: https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach (stream format)
"""

import os
import struct
from collections import deque
from collections.abc import Iterator

from harness.protocol.output import PIPE_READ_BYTES

_HEADER = struct.Struct(">BxxxL")
"""Which stream (1 stdout, 2 stderr), and how many bytes follow."""

STDOUT, STDERR = 1, 2


class AttachedOutput:
    """Takes the stream apart.

    Attributes:
        descriptor: Becomes readable when something has come.
        stdout, stderr: What each of the two has said.
        is_at_end: Whether the container has closed both.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        os.set_blocking(descriptor, False)
        self._received = bytearray()
        self._stream, self._left = 0, 0
        self.is_at_end = False
        self.stdout, self.stderr = AttachedStream(self, STDOUT), AttachedStream(self, STDERR)

    def pull(self) -> bool:
        """Read one piece from the connection; whether there was one."""
        if self.is_at_end:
            return False
        try:
            data = os.read(self.descriptor, PIPE_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # the engine was stopped
            data = b""
        self.is_at_end = not data
        self._take_apart(data)
        return bool(data)

    def hold(self, budget_bytes: int) -> None:
        """Read what has come, at most that much, and keep it until it is asked for."""
        while budget_bytes > 0 and self.pull():
            budget_bytes -= PIPE_READ_BYTES

    def close(self) -> None:
        """Close the connection."""
        os.close(self.descriptor)

    def _take_apart(self, data: bytes) -> None:
        self._received += data
        while self._received:
            if not self._left:
                if len(self._received) < _HEADER.size:
                    return
                self._stream, self._left = _HEADER.unpack_from(self._received)
                del self._received[: _HEADER.size]
                continue
            piece = bytes(self._received[: self._left])
            del self._received[: len(piece)]
            self._left -= len(piece)
            (self.stderr if self._stream == STDERR else self.stdout).take(piece)


class AttachedStream:
    """One of the two; see ``harness.protocol.output.Source``."""

    def __init__(self, output: AttachedOutput, number: int) -> None:
        self.number = number
        self._output = output
        self._pieces: deque[bytes] = deque()

    @property
    def descriptor(self) -> int:
        """See ``Source``."""
        return self._output.descriptor

    @property
    def is_open(self) -> bool:
        """See ``Source``."""
        return not self._output.is_at_end or bool(self._pieces)

    def take(self, piece: bytes) -> None:
        """Something was said."""
        self._pieces.append(piece)

    def read(self, budget_bytes: int) -> Iterator[bytes]:
        """See ``Source``. What comes for the other stream meanwhile counts, too: it waits in memory until that one is read."""
        pulled_bytes_max = budget_bytes
        while budget_bytes > 0:
            if self._pieces:
                piece = self._pieces.popleft()
                budget_bytes -= len(piece)
                yield piece
            elif pulled_bytes_max <= 0 or not self._output.pull():
                return
            else:
                pulled_bytes_max -= PIPE_READ_BYTES
