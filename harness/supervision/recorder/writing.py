"""Calls that change the bytes of a file, or make them durable: performed by us, logged with the bytes."""

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.supervision.recorder.caller import Caller, ElsewhereError, Segment
from harness.supervision.recorder.native import as_int, as_long, system_call
from harness.supervision.recorder.nodes import Node
from harness.supervision.recorder.places import located
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import Call
from harness.supervision.tracee import WORKING_DIRECTORY

SIZE_MAX = 0x7FFFF000
"""What Linux moves at most in one call; write(2)."""

_SEGMENTS_MAX = 1024
_RWF_DSYNC, _RWF_SYNC, _RWF_APPEND, _RWF_NOAPPEND = 0x02, 0x04, 0x10, 0x20
_FALLOC_KEEP_SIZE = 1
_SEGMENT = struct.Struct("=QQ")


class Writing:
    """A call of the ``write`` family: what is written, and where."""

    __slots__ = ("flags", "offset", "segments")

    def __init__(self, caller: Caller, call: Call, arguments: list[int]) -> None:
        """Raises OSError when the arguments are wrong."""
        self.flags = as_int(arguments[5]) if call.name == "pwritev2" else 0
        has_offset = call.name in ("pwrite64", "pwritev", "pwritev2")
        offset = as_long(arguments[3]) if has_offset else -1
        if has_offset and offset < 0 and (call.name != "pwritev2" or offset != -1):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.offset = None if offset == -1 else offset
        self.segments = [(arguments[1], arguments[2])] if call.name in ("write", "pwrite64") else _vector(caller, arguments)
        _limit(self.segments, SIZE_MAX)

    def perform(self, caller: Caller, descriptor: int, keep: Callable[[memoryview], None]) -> tuple[int, int]:
        """Write through a descriptor of ours, and keep what was written; returns how much, and where it begins in the file.

        Raises:
            OSError: When nothing could be written.
        """
        status = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        appends = bool(status & os.O_APPEND or self.flags & _RWF_APPEND) and not self.flags & _RWF_NOAPPEND
        self._keep_to_limit(caller, descriptor, appends=appends)
        total = 0
        for chunk in caller.chunks(self.segments):
            try:
                written = self._put(descriptor, chunk, total)
            except OSError:
                if total:
                    break
                raise
            keep(chunk[:written])
            total += written
            if written < len(chunk):
                break
        if not total:
            _fail_as_empty(descriptor, self.segments)
            return 0, 0
        if self.offset is None:
            return total, os.lseek(descriptor, 0, os.SEEK_CUR) - total
        return total, os.fstat(descriptor).st_size - total if appends else self.offset

    def sync(self, descriptor: int) -> str:
        """What is durable after each write through it: ``file``, ``data`` or nothing."""
        status = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        if status & os.O_SYNC == os.O_SYNC or self.flags & _RWF_SYNC:
            return "file"
        return "data" if status & os.O_DSYNC or self.flags & _RWF_DSYNC else ""

    def _put(self, descriptor: int, chunk: memoryview, done: int) -> int:
        if self.flags:
            return os.pwritev(descriptor, [chunk], -1 if self.offset is None else self.offset + done, self.flags)
        return os.write(descriptor, chunk) if self.offset is None else os.pwrite(descriptor, chunk, self.offset + done)

    def _keep_to_limit(self, caller: Caller, descriptor: int, *, appends: bool) -> None:
        size_max = caller.file_size_max()
        if size_max is None or not any(size for _, size in self.segments):
            return
        offset = os.lseek(descriptor, 0, os.SEEK_CUR) if self.offset is None else self.offset
        offset = os.fstat(descriptor).st_size if appends else offset
        if offset >= size_max:
            caller.exceed_file_size()
        _limit(self.segments, size_max - offset)


def _vector(caller: Caller, arguments: list[int]) -> list[Segment]:
    count = as_int(arguments[2])
    if not 0 <= count <= _SEGMENTS_MAX:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    segments = list(_SEGMENT.iter_unpack(caller.read(arguments[1], count * _SEGMENT.size))) if count else []
    if any(size >> 63 for _, size in segments):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return segments


def _limit(segments: list[Segment], size_max: int) -> None:
    for at, (address, size) in enumerate(segments):
        segments[at] = (address, min(size, size_max))
        size_max -= segments[at][1]


def _fail_as_empty(descriptor: int, segments: list[Segment]) -> None:
    """Nothing was there to be written: that still fails where the descriptor cannot be written to."""
    os.write(descriptor, b"")
    if any(size for _, size in segments):
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))


@contextmanager
def taken(caller: Caller, descriptor: int) -> Iterator[int]:
    """A descriptor of the caller as one of ours."""
    ours = caller.take(descriptor)
    try:
        caller.confirm()
        yield ours
    finally:
        os.close(ours)


def write(record: Record, caller: Caller, call: Call, arguments: list[int], node: Node) -> int:
    """``write`` and its relatives."""
    number = as_int(arguments[0])
    with taken(caller, number) as descriptor:
        writing = Writing(caller, call, arguments)
        if any(size for _, size in writing.segments):
            record.announce("write", caller, node=node)
        start = record.log.size
        total, offset = writing.perform(caller, descriptor, record.log.store)
        if total:
            note_written(record, caller, node, descriptor=number, call=call.name, extent=(offset, start, total))
            if scope := writing.sync(descriptor):
                record.note("sync", caller, node=node.number, scope=scope)
    return total


def note_written(record: Record, caller: Caller, node: Node, *, descriptor: int, call: str, extent: tuple[int, int, int]) -> None:
    """Log bytes that have been stored; ``extent`` is where in the file, where in the data, and how many."""
    offset, start, size = extent
    handle = record.handle(caller, descriptor, node)
    node.pieces.write(offset, size, start)
    record.last_made[caller.thread] = node
    record.note("write", caller, node=node.number, handle=handle, offset=offset, data=(start, size), call=call)


def truncate_descriptor(record: Record, caller: Caller, _: Call, arguments: list[int], node: Node) -> int:
    """``ftruncate``."""
    number, size = as_int(arguments[0]), as_long(arguments[1])
    with taken(caller, number) as descriptor:
        _check_size(caller, size, before=node.pieces.size)
        record.announce("truncate", caller, node=node)
        os.ftruncate(descriptor, size)
        _note_size(record, caller, node, size=size, handle=record.handle(caller, number, node))
    return 0


def truncate_path(record: Record, caller: Caller, _: Call, arguments: list[int]) -> int:
    """``truncate``."""
    size = as_long(arguments[1])
    if size < 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    with located(record, caller, WORKING_DIRECTORY, caller.read_path(arguments[0]), follows=True) as place:
        if place.status is None and place.holder is not None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        node = record.nodes.find((place.status.st_dev, place.status.st_ino)) if place.status else None
        if node is None or node.kind != "file" or not node.names:
            raise ElsewhereError
        caller.confirm()
        _check_size(caller, size, before=node.pieces.size)
        record.announce("truncate", caller, node=node)
        os.truncate(place.path, size)
        _note_size(record, caller, node, size=size, handle=0)
    return 0


def allocate(record: Record, caller: Caller, _: Call, arguments: list[int], node: Node) -> int:
    """``fallocate``: what only takes room is no change, what makes the file larger is one."""
    number, mode, offset, size = as_int(arguments[0]), as_int(arguments[1]), as_long(arguments[2]), as_long(arguments[3])
    with taken(caller, number) as descriptor:
        if not mode & _FALLOC_KEEP_SIZE and size > 0:
            _check_size(caller, offset + size, before=node.pieces.size)
            if not mode and offset + size > node.pieces.size:
                record.announce("truncate", caller, node=node)
        system_call(record.numbers["fallocate"], descriptor, mode, offset, size)
        if mode & ~_FALLOC_KEEP_SIZE:
            record.unsure.add(node)
            record.note_blind("call", f"fallocate with mode {mode}", path=record.nodes.path_of(node), thread=caller.thread)
        elif not mode and offset + size > node.pieces.size:
            _note_size(record, caller, node, size=offset + size, handle=record.handle(caller, number, node))
    return 0


def _check_size(caller: Caller, size: int, *, before: int) -> None:
    size_max = caller.file_size_max()
    if size_max is not None and before < size and size > size_max:
        caller.exceed_file_size()


def _note_size(record: Record, caller: Caller, node: Node, *, size: int, handle: int) -> None:
    node.pieces.truncate(size)
    record.last_made[caller.thread] = node
    record.note("truncate", caller, node=node.number, size=size, handle=handle)


def sync_file(record: Record, caller: Caller, call: Call, arguments: list[int], node: Node) -> int:
    """``fsync``, ``fdatasync``."""
    with taken(caller, as_int(arguments[0])) as descriptor:
        record.announce("sync", caller, node=node)
        (os.fsync if call.name == "fsync" else os.fdatasync)(descriptor)
        record.note("sync", caller, node=node.number, scope="file" if call.name == "fsync" else "data")
    return 0


def sync_all(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``sync``, and ``syncfs`` of the file system that the directory is on."""
    if call.name == "syncfs" and caller.stat(as_int(arguments[0])).st_dev != record.device:
        raise ElsewhereError
    if record.nodes.root is None:
        raise ElsewhereError
    caller.confirm()
    record.announce("sync", caller, node=record.nodes.root)
    if call.name == "sync":
        os.sync()
    else:
        with taken(caller, as_int(arguments[0])) as descriptor:
            system_call(record.numbers["syncfs"], descriptor)
    record.staged.unsynced.clear()
    record.note("sync", caller, node=record.nodes.root.number, scope="all")
    return 0
