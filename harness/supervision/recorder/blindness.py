"""Calls after which a file can change without another call: let go, and said in the log."""

import struct

from harness.supervision.recorder.caller import Caller, ElsewhereError
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import Call

_REQUEST = struct.Struct("=QIIHhIQQq")
"""The first fields of ``struct iocb``: data, key, flags (in little-endian order), opcode, priority, file, buffer, size, offset.

Source: Linux ``include/uapi/linux/aio_abi.h``.
"""
_WRITES = {1, 8}
"""IOCB_CMD_PWRITE, IOCB_CMD_PWRITEV."""

_REQUESTS_MAX = 1024
"""Enough to see that there is one of ours."""


def note_mapping(record: Record, caller: Caller, _: Call, arguments: list[int]) -> None:
    """``mmap`` of a file that can be written to, shared: a store into it, or after an ``mprotect``, is no call.

    Raises:
        ElsewhereError: Always; the call goes on.
    """
    number = as_int(arguments[4])
    try:
        node = record.file_of(caller, caller.stat(number), number)
    except ElsewhereError:
        if caller.can_write(number):
            record.staged.note_unseen(caller, number)
        raise
    if node.kind == "file" and caller.can_write(number):
        record.unsure.add(node)
        detail = "a shared mapping of a file that is open for writing: what is stored through it is not seen"
        record.note_blind("mapped", detail, path=record.nodes.path_of(node), thread=caller.thread)
    raise ElsewhereError


def note_aio(record: Record, caller: Caller, _: Call, arguments: list[int]) -> None:
    """``io_submit`` with a write to a file of the directory: when it is done is not seen.

    Raises:
        ElsewhereError: Always; the call goes on.
    """
    count = min(max(as_int(arguments[1]), 0), _REQUESTS_MAX)
    for (address,) in struct.iter_unpack("=Q", caller.read(arguments[2], 8 * count)):
        fields = _REQUEST.unpack(caller.read(address, _REQUEST.size))
        opcode, number = fields[3], fields[5]
        if opcode in _WRITES:
            _note_request(record, caller, number)
    raise ElsewhereError


def _note_request(record: Record, caller: Caller, number: int) -> None:
    try:
        node = record.file_of(caller, caller.stat(number), number)
    except ElsewhereError:
        record.staged.note_unseen(caller, number)
        return
    record.unsure.add(node)
    detail = "Linux AIO writes to it: when it is done is not seen"
    record.note_blind("aio", detail, path=record.nodes.path_of(node), thread=caller.thread)
