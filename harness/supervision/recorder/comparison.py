"""At the end: is the directory what the logged operations make of it? If not, somebody has written whom we did not see."""
# ruff: noqa: PTH112, PTH115, PTH118 - the kernel's paths are bytes, and pathlib knows only text

import errno
import os
from collections.abc import Iterator

from harness.supervision.recorder.caller import CHUNK_SIZE
from harness.supervision.recorder.nodes import Node, kind_of
from harness.supervision.recorder.operation_log import OperationLog
from harness.supervision.recorder.record import Record

Difference = tuple[str, bytes, str]
"""What the log must say (``foreign`` or ``call``), of which path, and why."""


def differences(record: Record) -> Iterator[Difference]:
    """What is there, missing or different without a logged operation that made it so."""
    root = record.nodes.root
    if root is None:
        if os.path.lexists(record.root):
            yield "foreign", b".", "it is there, and no call that was seen has made it"
        return
    if not os.path.isdir(record.root):
        yield "foreign", b".", "it is gone, and no call that was seen has removed it"
        return
    pending = [(root, b"")]
    while pending:  # deeper than any recursion may go
        directory, path = pending.pop()
        yield from _in(record, directory, path)
        below = [(node, os.path.join(path, name)) for name, node in sorted(directory.children.items(), reverse=True)]
        pending += [each for each in below if each[0].kind == "directory" == _kind(os.path.join(record.root, each[1]))]


def _in(record: Record, directory: Node, path: bytes) -> Iterator[Difference]:
    try:
        there = set(os.listdir(os.path.join(record.root, path)))
    except OSError as error:
        yield "call", path or b".", f"it cannot be read: {error.strerror}"
        return
    for name in sorted(there | set(directory.children)):
        where = os.path.join(path, name)
        node = directory.children.get(name)
        kind = _kind(os.path.join(record.root, where)) if name in there else "none"
        if kind is None:
            yield "call", where, "it is a pipe, a socket or a device, for which the log has no word"
        elif kind == "none":
            yield "foreign", where, "it is gone, and no call that was seen has removed it"
        elif node is None or node.kind != kind:
            yield "foreign", where, "it is there, and no call that was seen has made it"
        elif node.kind != "directory" and node not in record.unsure:
            yield from _difference(record, node, where)


def _kind(path: bytes) -> str | None:
    try:
        return kind_of(os.lstat(path).st_mode)
    except OSError:
        return "none"  # it has gone meanwhile


def _difference(record: Record, node: Node, path: bytes) -> Iterator[Difference]:
    try:
        if not _is_same(record, node, os.path.join(record.root, path)):
            yield "foreign", path, "its content is not what the calls that were seen have written"
    except OSError as error:
        yield "call", path, f"it cannot be read: {error.strerror}"


def _is_same(record: Record, node: Node, path: bytes) -> bool:
    if node.kind == "link":
        return os.readlink(path) == node.target
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor).st_size == node.pieces.size and _has_pieces(descriptor, node, record.log)
    finally:
        os.close(descriptor)


def _has_pieces(descriptor: int, node: Node, log: OperationLog) -> bool:
    seen = 0
    for begins, ends, data in node.pieces:
        if not _is_zeros(descriptor, seen, begins):
            return False
        for at in range(begins, ends, CHUNK_SIZE):
            size = min(CHUNK_SIZE, ends - at)
            if os.pread(descriptor, size, at) != log.read(data + at - begins, size):
                return False
        seen = ends
    return _is_zeros(descriptor, seen, node.pieces.size)


def _is_zeros(descriptor: int, begins: int, ends: int) -> bool:
    """Holes are not read: a sparse file may be larger than anything that can be.

    Source: lseek(2): a file system that knows no holes takes all of a file for data.
    """
    at = _next_data(descriptor, begins, ends)
    while at < ends:
        size = min(CHUNK_SIZE, ends - at)
        if os.pread(descriptor, size, at) != bytes(size):
            return False
        at = _next_data(descriptor, at + size, ends)
    return True


def _next_data(descriptor: int, at: int, ends: int) -> int:
    if at >= ends:
        return ends
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left
            return ends
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            return at
        raise
