"""The file ``data`` of a recording: contents are read, hashed and copied from it, a piece at a time."""

import hashlib
import mmap
import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.errors import StoreError
from harness.explore.content import ZEROS, Content, Span

if TYPE_CHECKING:
    from hashlib import _Hash

CHUNK_BYTES = 1 << 20
"""Read at once: large enough that system calls do not show."""

HASHERS_MAX = 256
"""Hashes that can be gone on with: a file that grows write by write is read once, not once a write. As many files may grow at a time."""

_ADVICE = "the recording is not whole; record again"


class DataFile:
    """Reads contents. One at a time: it keeps what it has hashed, for contents come again in thousands of states.

    Raises:
        StoreError: When the file cannot be opened, or later, when it is shorter than a content says.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digests: dict[tuple[Span, ...], str] = {}
        self._hashers: OrderedDict[tuple[tuple[Span, ...], int], tuple[int, _Hash]] = OrderedDict()
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(path=path, attempted="open the recorded data", reason=error.strerror or str(error), advice=_ADVICE) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; digests that are known stay known."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def digest(self, content: Content) -> str:
        """SHA-256 of a content, in hexadecimal."""
        known = self._digests.get(content.spans)
        if known is None:
            known = self._digests[content.spans] = self._hash(content.spans)
        return known

    def chunks(self, content: Content) -> Iterator[bytes]:
        """The bytes of a content, at most ``CHUNK_BYTES`` at a time."""
        for span in content.spans:
            yield from self._read(span)

    def read(self, content: Content) -> bytes:
        """All bytes of a content that is known to be small."""
        return b"".join(self.chunks(content))

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether anything that was written has it, in whatever file."""
        if not os.fstat(self._descriptor).st_size:
            return False
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as data:
            return pattern.search(data) is not None

    def _hash(self, spans: tuple[Span, ...]) -> str:
        if not spans:
            return hashlib.sha256().hexdigest()
        hasher, first, done = self._resume(spans)
        for index in range(first, len(spans)):
            begin, size = spans[index]
            skipped = done if index == first else 0
            for chunk in self._read((begin if begin == ZEROS else begin + skipped, size - skipped)):
                hasher.update(chunk)
        self._hashers[spans[:-1], spans[-1][0]] = (spans[-1][1], hasher)
        if len(self._hashers) > HASHERS_MAX:
            self._hashers.popitem(last=False)
        return hasher.hexdigest()

    def _resume(self, spans: tuple[Span, ...]) -> "tuple[_Hash, int, int]":
        """A hash to go on with: of all spans before the one that is returned, and of so many bytes of that one."""
        last = len(spans) - 1
        done, hasher = self._hashers.get((spans[:last], spans[last][0]), (0, None))
        if hasher is not None and done <= spans[last][1]:
            return hasher.copy(), last, done
        if last:
            done, hasher = self._hashers.get((spans[: last - 1], spans[last - 1][0]), (0, None))
            if hasher is not None and done == spans[last - 1][1]:
                return hasher.copy(), last, 0
        return hashlib.sha256(), 0, 0

    def _read(self, span: Span) -> Iterator[bytes]:
        begin, left = span
        while left:
            size = min(left, CHUNK_BYTES)
            chunk = bytes(size) if begin == ZEROS else os.pread(self._descriptor, size, begin)
            if not chunk:
                reason = f"{left} bytes are missing at {begin}"
                raise StoreError(path=self._path, attempted="read the recorded data", reason=reason, advice=_ADVICE)
            yield chunk
            left -= len(chunk)
            begin = begin if begin == ZEROS else begin + len(chunk)
