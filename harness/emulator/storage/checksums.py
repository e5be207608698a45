"""The checksums that Cloud Storage keeps of each object."""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator

from harness.emulator.storage.generations import Checksums

CHUNK_BYTES = 1 << 20


class RunningChecksums:
    """Checksums of what is fed piece by piece."""

    def __init__(self) -> None:
        from google_crc32c import extend

        self._extend: Callable[[int, bytes], int] = extend
        self._crc32c = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def update(self, data: bytes) -> None:
        """Add data."""
        self._crc32c = self._extend(self._crc32c, data)
        self._md5.update(data)
        self._size += len(data)

    def result(self) -> Checksums:
        """Of all data so far."""
        return Checksums(
            crc32c=base64.b64encode(self._crc32c.to_bytes(4)).decode(), md5=base64.b64encode(self._md5.digest()).decode(), size=self._size
        )


def sum_up(pieces: Iterable[bytes]) -> Checksums:
    """The checksums of pieces in a row."""
    running = RunningChecksums()
    for piece in pieces:
        running.update(piece)
    return running.result()


def read_pieces(descriptor: int, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """The bytes ``first`` to ``last``, both included, of an open file; the descriptor's own offset is left alone."""
    offset = first
    while last is None or offset <= last:
        wanted = CHUNK_BYTES if last is None else min(CHUNK_BYTES, last + 1 - offset)
        piece = os.pread(descriptor, wanted, offset)
        if not piece:
            return
        offset += len(piece)
        yield piece
