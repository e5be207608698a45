"""A thread that waits in a held call: its memory, its descriptors, and what else the kernel would know of it.

Source: https://man7.org/linux/man-pages/man2/pidfd_getfd.2.html, https://man7.org/linux/man-pages/man5/proc_pid_mem.5.html
"""
# ruff: noqa: PTH116 - the kernel's paths are bytes, and pathlib knows only text

import errno
import mmap
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from harness.supervision import seccomp
from harness.supervision.recorder.native import system_call
from harness.supervision.recorder.thread_status import ThreadStatus, own_status
from harness.supervision.seccomp import Notification
from harness.supervision.tracee import PATH_SIZE_MAX

Segment = tuple[int, int]
"""Address and size of some of a caller's memory."""

CHUNK_SIZE = 1 << 20
"""What is moved at a time: so much stays in the processor's cache between reading it and writing it twice."""

_PIDFD_GETFD = 438
"""The same number in every instruction set."""
_PIDFD_THREAD = os.O_EXCL
"""Linux 6.9: a thread can be named; before, only its process by the first thread, which may have ended."""

_staging = memoryview(mmap.mmap(-1, CHUNK_SIZE))
"""Page-aligned, as files opened with ``O_DIRECT`` ask."""


class CallerGoneError(Exception):
    """The caller was killed while we looked; nobody waits for an answer."""


class ElsewhereError(Exception):
    """The call does not concern the directory: the kernel answers it."""


class UnseenError(Exception):
    """The caller cannot be looked into, or is not who we are: the call goes on, and the log must say so."""


class Caller:
    """Who waits. What is read of it is its own if ``confirm`` holds afterwards."""

    __slots__ = ("_listener", "_status", "id", "thread")

    def __init__(self, notification: Notification, listener: int) -> None:
        self._listener, self.id, self.thread = listener, notification.id, notification.thread
        self._status: ThreadStatus | None = None

    def confirm(self) -> None:
        """Make sure that it still waits, and that it may do to files what we may.

        Raises:
            CallerGoneError, UnseenError: When not.
        """
        rights = self._look().rights
        if not seccomp.still_waits(self._listener, self.id):
            raise CallerGoneError
        if rights != own_status().rights:
            raise UnseenError(f"it has other rights than the recorder: it runs as user {rights[0]}, group {rights[1]}")

    @property
    def process(self) -> int:
        """Process id."""
        return self._look().process

    @property
    def umask(self) -> int:
        """What it takes from the mode of new files."""
        return self._look().umask

    def stat(self, descriptor: int) -> os.stat_result:
        """What file a descriptor is.

        Raises:
            ElsewhereError: When it is none.
            UnseenError: When it cannot be looked into.
        """
        try:
            return os.stat(b"/proc/%d/fd/%d" % (self.thread, descriptor))
        except PermissionError as error:
            raise UnseenError(str(error.strerror)) from error
        except OSError as error:
            raise ElsewhereError from error

    def can_write(self, descriptor: int) -> bool:
        """Whether it was opened for writing: the kernel shows it as the permissions of the link in ``/proc``."""
        return bool(os.lstat(b"/proc/%d/fd/%d" % (self.thread, descriptor)).st_mode & 0o200)

    def take(self, descriptor: int) -> int:
        """A descriptor of ours for the same opening of the file, with the offset that they share.

        Raises:
            OSError: EBADF when it has none of that number.
            UnseenError: When the kernel does not let us.
        """
        try:
            holder = os.pidfd_open(self.thread, _PIDFD_THREAD)
        except OSError:
            holder = os.pidfd_open(self.process)
        try:
            return system_call(_PIDFD_GETFD, holder, descriptor, 0)
        except PermissionError as error:
            raise UnseenError(str(error.strerror)) from error
        finally:
            os.close(holder)

    def read(self, address: int, size: int) -> bytes:
        """Some of its memory.

        Raises:
            OSError: EFAULT when not all of it is there.
        """
        data = b"".join(bytes(chunk) for chunk in self.chunks([(address, size)]))
        if len(data) < size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def read_path(self, address: int) -> bytes:
        """A path of its memory.

        Raises:
            OSError: EFAULT, or ENAMETOOLONG when it does not end.
        """
        data = b"".join(bytes(chunk) for chunk in self.chunks([(address, PATH_SIZE_MAX)]))
        path, end, _ = data.partition(b"\0")
        if not end:
            number = errno.ENAMETOOLONG if len(data) == PATH_SIZE_MAX else errno.EFAULT
            raise OSError(number, os.strerror(number))
        return path

    def chunks(self, segments: list[Segment]) -> Iterator[memoryview]:
        """Its memory, one segment after the other, as far as it is there; a chunk is valid until the next one is asked for."""
        with self._memory(os.O_RDONLY) as memory:
            filled = 0
            for address, size in segments:
                while size:
                    count = _read_memory(memory, address, _staging[filled : filled + size])
                    filled, address, size = filled + count, address + count, size - count
                    if filled == CHUNK_SIZE or (not count and filled):
                        yield _staging[:filled]
                        filled = 0
                    if not count:
                        return
            if filled:
                yield _staging[:filled]

    def put(self, address: int, data: bytes) -> None:
        """Change its memory, as a call does that gives back more than a number."""
        with self._memory(os.O_RDWR) as memory:
            os.pwrite(memory, data, address)

    def file_size_max(self) -> int | None:
        """How large it may make a file in bytes; None: no limit."""
        try:
            limit = resource.prlimit(self.process, resource.RLIMIT_FSIZE)[0]
        except OSError:
            return None
        return None if limit == resource.RLIM_INFINITY else limit

    def exceed_file_size(self) -> None:
        """What the kernel does to a caller that is over it.

        Raises:
            OSError: EFBIG.
        """
        os.kill(self.process, signal.SIGXFSZ)
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    @contextmanager
    def _memory(self, flags: int) -> Iterator[int]:
        try:
            memory = os.open(b"/proc/%d/mem" % self.thread, flags | os.O_CLOEXEC)
        except PermissionError as error:
            raise UnseenError(str(error.strerror)) from error
        except OSError as error:
            raise CallerGoneError from error
        try:
            yield memory
        finally:
            os.close(memory)

    def _look(self) -> ThreadStatus:
        if self._status is None:
            try:
                self._status = ThreadStatus(self.thread)
            except OSError as error:
                raise CallerGoneError from error
        return self._status


def _read_memory(memory: int, address: int, into: memoryview) -> int:
    try:
        return os.preadv(memory, [into], address) if address < 1 << 63 else 0
    except OSError:  # EIO: nothing is mapped there
        return 0
