"""Reads the content of files that a job may be writing, never more than a run can wait for.

Nothing but a regular file is opened: a FIFO would block for ever, a device has no end. No symbolic link is followed.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HASH_BYTES_MAX = 256 << 20
"""A larger file is known by its size and its edges: 256 MiB take half a second on one core, and the run waits meanwhile."""

EDGE_BYTES = 1 << 20
"""Read at each end of a larger file: headers and trailers, where formats keep their indices, fit in."""

LOOK_BYTES_MAX = 2 << 30
"""Hashed in one look, all files together: about four seconds, less than a grace period and than the patience of a watchdog."""

LOOK_ENTRIES_MAX = 50_000
"""Files and directories that one look visits: about two seconds; a checkpoint of many small files has some thousands."""

CHUNK_BYTES = 1 << 20
"""Read at once: large enough that system calls do not show, small enough to stay in the cache."""

PARTIAL = "partial-"
"""Begins a fingerprint that does not cover every byte: equal ones do not prove equal contents."""


class LimitReachedError(Exception):
    """There is more to look at than a run can wait for; it does not leave this package."""

    def __init__(self, *, limit: int) -> None:
        self.limit = limit
        super().__init__(f"more than {limit} files and directories in one look, and the run waits meanwhile")


@dataclass(slots=True)
class Budget:
    """What one look may still spend, so that a job that fills its directory cannot stall the run."""

    hash_bytes_max: int = HASH_BYTES_MAX
    entries_left: int | None = LOOK_ENTRIES_MAX
    bytes_left: int = LOOK_BYTES_MAX

    def spend_entry(self) -> None:
        """Pay for one file or directory.

        Raises:
            LimitReachedError: When there were too many.
        """
        if self.entries_left is None:
            return
        if self.entries_left <= 0:
            raise LimitReachedError(limit=LOOK_ENTRIES_MAX)
        self.entries_left -= 1

    def spend_bytes(self, size: int) -> bool:
        """Pay for reading ``size`` bytes; False when they are too many."""
        if size > self.bytes_left:
            return False
        self.bytes_left -= size
        return True


def fingerprint(path: Path, status: os.stat_result, budget: Budget) -> tuple[int, str]:
    """The size and the fingerprint of one file; ``status`` is that of the path itself, not of what a link leads to.

    The fingerprint is the SHA-256, or begins with ``partial-``, ``link-`` (where it points) or ``special-`` (what it is); it is empty when
    the budget is spent.

    Raises:
        OSError: When the file vanished, changed or failed while it was read.
    """
    if stat.S_ISLNK(status.st_mode):
        return 0, f"link-{hashlib.sha256(os.fsencode(path.readlink())).hexdigest()}"
    if not stat.S_ISREG(status.st_mode):
        return 0, f"special-{stat.filemode(status.st_mode)[0]}"
    if not budget.spend_bytes(status.st_size if status.st_size <= budget.hash_bytes_max else 2 * EDGE_BYTES):
        return status.st_size, ""
    return _hash_regular(path, budget.hash_bytes_max)


def read_small(path: Path, bytes_max: int) -> bytes | None:
    """The content of a regular file; None when it is larger, or no regular file.

    Raises:
        OSError: When it vanished, changed or failed while it was read.
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > bytes_max:
        return None
    descriptor = _open(path)
    try:
        size = os.fstat(descriptor).st_size
        return None if size > bytes_max else b"".join(_read(descriptor, 0, size))
    finally:
        os.close(descriptor)


def _hash_regular(path: Path, hash_bytes_max: int) -> tuple[int, str]:
    descriptor = _open(path)
    try:
        before = os.fstat(descriptor)
        size = before.st_size
        edge = min(size, EDGE_BYTES)
        spans = ((0, size),) if size <= hash_bytes_max else ((0, edge), (size - edge, edge))
        hasher = hashlib.sha256()
        for start, length in spans:
            for chunk in _read(descriptor, start, length):
                hasher.update(chunk)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise OSError(errno.ESTALE, "changed while it was read", str(path))
    return size, ("" if size <= hash_bytes_max else PARTIAL) + hasher.hexdigest()


def _open(path: Path) -> int:
    """Open a regular file; what was put in its place since it was looked at cannot block or lead elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.ESTALE, "is no longer a regular file", str(path))


def _read(descriptor: int, start: int, length: int) -> Iterator[bytes]:
    end = start + length
    while start < end:
        chunk = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
        if not chunk:
            raise OSError(errno.ESTALE, "became shorter while it was read")
        yield chunk
        start += len(chunk)
