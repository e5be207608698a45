"""Calls that move bytes from one file to another inside of the kernel: performed by us, and the bytes read back for the log."""

import errno
import fcntl
import os
import select
import stat

from harness.supervision.recorder.caller import Caller
from harness.supervision.recorder.native import as_int, as_long
from harness.supervision.recorder.nodes import Node
from harness.supervision.recorder.record import Record, chunks_of
from harness.supervision.recorder.writing import SIZE_MAX, note_written, taken
from harness.supervision.syscalls import FICLONE, Call

_SPLICE_F_NONBLOCK = 2
_CLONE_RANGE_SIZE = 32
"""Of ``struct file_clone_range``: source, its offset, length, offset in the target; 8 bytes each."""


class NotYetError(Exception):
    """The call would wait for a pipe; ``descriptor`` (ours, to be closed) can be read when it is time to look again."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        super().__init__(descriptor)


class Copying:
    """``sendfile``, ``copy_file_range`` or ``splice``; the offsets are addresses in the caller's memory, or 0: the descriptor's own."""

    __slots__ = ("count", "flags", "name", "source", "source_at", "target", "target_at")

    def __init__(self, call: Call, arguments: list[int]) -> None:
        self.name = call.name
        if call.name == "sendfile":
            self.target, self.source, self.source_at, count = as_int(arguments[0]), as_int(arguments[1]), arguments[2], arguments[3]
            self.target_at, self.flags = 0, 0
        else:
            self.source, self.source_at, self.target, self.target_at = (
                as_int(arguments[0]),
                arguments[1],
                as_int(arguments[2]),
                arguments[3],
            )
            count, self.flags = arguments[4], as_int(arguments[5])
        self.count = min(count, SIZE_MAX)

    def perform(self, source: int, target: int, *, source_offset: int | None, target_offset: int | None) -> int:
        """Do it with descriptors of ours; returns how much was moved.

        Raises:
            OSError: When nothing could be.
        """
        if self.name == "sendfile":
            return os.sendfile(target, source, source_offset, self.count)
        if self.name == "splice":
            return os.splice(source, target, self.count, source_offset, target_offset, self.flags)
        if self.flags:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return os.copy_file_range(source, target, self.count, source_offset, target_offset)


def copy(record: Record, caller: Caller, call: Call, arguments: list[int], node: Node) -> int:
    """Copy into a file of the directory.

    Raises:
        NotYetError: When there is nothing to copy yet.
    """
    copying = Copying(call, arguments)
    with taken(caller, copying.source) as source, taken(caller, copying.target) as target:
        _wait_for_nothing(copying, source)
        source_offset = _offset(caller, copying.source_at)
        target_offset = _offset(caller, copying.target_at)
        _keep_to_limit(caller, copying, target, target_offset)
        if copying.count:
            record.announce("write", caller, node=node)
        moved = copying.perform(source, target, source_offset=source_offset, target_offset=target_offset)
        if not moved:
            return 0
        begins = os.lseek(target, 0, os.SEEK_CUR) - moved if target_offset is None else target_offset
        _note_stored(record, caller, node, descriptors=(copying.target, target), call=call.name, extent=(begins, moved))
        for address, offset in ((copying.source_at, source_offset), (copying.target_at, target_offset)):
            if offset is not None:
                caller.put(address, (offset + moved).to_bytes(8, "little", signed=True))
    return moved


def clone(record: Record, caller: Caller, call: Call, arguments: list[int], node: Node) -> int:
    """``ioctl`` with FICLONE or FICLONERANGE: the file shares the blocks of another one."""
    number, request = as_int(arguments[0]), arguments[1] & 0xFFFFFFFF
    is_whole = request == FICLONE
    described = b"" if is_whole else caller.read(arguments[2], _CLONE_RANGE_SIZE)
    source_number = as_int(arguments[2] if is_whole else int.from_bytes(described[:8], "little"))
    with taken(caller, number) as target, taken(caller, source_number) as source:
        record.announce("write", caller, node=node)
        if is_whole:
            fcntl.ioctl(target, request, source)
            begins, size = 0, os.fstat(source).st_size
        else:
            fcntl.ioctl(target, request, source.to_bytes(8, "little") + described[8:])
            offset, length, begins = (int.from_bytes(described[at : at + 8], "little") for at in (8, 16, 24))
            size = length or os.fstat(source).st_size - offset
        if size:
            _note_stored(record, caller, node, descriptors=(number, target), call=call.name, extent=(begins, size))
    return 0


def _offset(caller: Caller, address: int) -> int | None:
    if not address:
        return None
    offset = as_long(int.from_bytes(caller.read(address, 8), "little"))
    if offset < 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return offset


def _wait_for_nothing(copying: Copying, source: int) -> None:
    """A pipe that is empty would hold us, and with us the one who could fill it."""
    if copying.name == "copy_file_range":
        return  # never a pipe; and of a file without a name FUSE knows no status
    if not stat.S_ISFIFO(os.fstat(source).st_mode) or copying.flags & _SPLICE_F_NONBLOCK:
        return
    poll = select.poll()
    poll.register(source, select.POLLIN)
    if not poll.poll(0):
        raise NotYetError(os.dup(source))


def _keep_to_limit(caller: Caller, copying: Copying, target: int, offset: int | None) -> None:
    size_max = caller.file_size_max()
    if size_max is None or not copying.count:
        return
    begins = os.lseek(target, 0, os.SEEK_CUR) if offset is None else offset
    if begins >= size_max:
        caller.exceed_file_size()
    copying.count = min(copying.count, size_max - begins)


def _note_stored(record: Record, caller: Caller, node: Node, *, descriptors: tuple[int, int], call: str, extent: tuple[int, int]) -> None:
    """Read back what has been stored, and log it; ``descriptors`` are the caller's and ours."""
    begins, size = extent
    start = record.log.size
    try:
        reader = os.open(b"/proc/self/fd/%d" % descriptors[1], os.O_RDONLY | os.O_CLOEXEC)  # theirs need not be open for reading
    except OSError as error:
        record.unsure.add(node)
        record.note_blind("call", f"what {call} wrote cannot be read back: {error.strerror}", path=record.nodes.path_of(node))
        return
    try:
        for chunk in chunks_of(reader, begins, size):
            record.log.store(chunk)
    finally:
        os.close(reader)
    note_written(record, caller, node, descriptor=descriptors[0], call=call, extent=(begins, start, record.log.size - start))
