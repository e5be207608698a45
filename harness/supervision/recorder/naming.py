"""Calls that make, rename and remove names: performed by us, and logged if they succeed."""

import errno
import os
import socket
import stat
import struct

from harness.supervision.recorder.attributes import note_new_mode
from harness.supervision.recorder.caller import Caller, ElsewhereError
from harness.supervision.recorder.native import as_int, system_call
from harness.supervision.recorder.nodes import ROOT, Holder, Kind, Node, key_of
from harness.supervision.recorder.operation_log import as_text
from harness.supervision.recorder.places import Place, anchor_of, located
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import NO_ARGUMENT, Call
from harness.supervision.tracee import WORKING_DIRECTORY

_AT_REMOVEDIR, _AT_SYMLINK_FOLLOW, _AT_EMPTY_PATH = 0x200, 0x400, 0x1000
_RENAME_EXCHANGE = 2
_FAMILY = struct.Struct("=H")
_SOCKET_ADDRESS_SIZE_MAX = 110
"""Of ``struct sockaddr_un``: the family, and 108 bytes of path; unix(7)."""

_ROOT_CHANGED = "the checkpoint directory itself was removed, renamed or made again"


def make_directory(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``mkdir``, ``mkdirat``."""
    directory, path = call.paths[0]
    with located(record, caller, anchor_of(arguments, directory), caller.read_path(arguments[path])) as place:
        holder = _inside(caller, place)
        if place.status is None:
            record.announce("mkdir", caller, holder=holder)
        os.umask(caller.umask)
        mode = arguments[path + 1] & 0o7777
        os.mkdir(place.given, mode, dir_fd=place.parent)
        node = _new(record, place, "directory")
        if node.number == ROOT:
            record.note_blind("call", _ROOT_CHANGED, path=b".")
        else:
            record.note("mkdir", caller, path=as_text(record.nodes.path(*holder)), node=node.number)
            record.last_made[caller.thread] = node
            note_new_mode(record, caller, node, mode)
    return 0


def make_node(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``mknod``, ``mknodat``: a regular file; for pipes and devices the log has no word."""
    directory, path = call.paths[0]
    mode = arguments[path + 1] & 0xFFFF
    with located(record, caller, anchor_of(arguments, directory), caller.read_path(arguments[path])) as place:
        holder = _inside(caller, place)
        where = record.nodes.path(*holder)
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            record.note_blind("call", "a pipe, a socket or a device was made", path=where)
            raise ElsewhereError
        if place.status is None:
            record.announce("create", caller, holder=holder)
        os.umask(caller.umask)
        os.mknod(place.given, mode, dir_fd=place.parent)
        node = _new(record, place, "file")
        record.note("create", caller, path=as_text(where), node=node.number)
        record.last_made[caller.thread] = node
        note_new_mode(record, caller, node, mode)
    return 0


def bind_socket(record: Record, caller: Caller, _: Call, arguments: list[int]) -> int:
    """``bind`` of a socket to a path makes a file of its own kind there.

    Raises:
        ElsewhereError: Always; the call goes on.
    """
    size = min(as_int(arguments[2]), _SOCKET_ADDRESS_SIZE_MAX)
    address = caller.read(arguments[1], size) if size > _FAMILY.size else b""
    path = address[_FAMILY.size :].partition(b"\0")[0]
    if path and _FAMILY.unpack_from(address)[0] == socket.AF_UNIX:
        with located(record, caller, WORKING_DIRECTORY, path) as place:
            if place.holder is not None and place.status is None:
                record.note_blind("call", "a socket was made", path=record.nodes.path(*place.holder))
    raise ElsewhereError


def make_symlink(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``symlink``, ``symlinkat``."""
    directory, path = call.paths[0]
    with located(record, caller, anchor_of(arguments, directory), caller.read_path(arguments[path])) as place:
        target = caller.read_path(arguments[0])
        holder = _inside(caller, place)
        if place.status is None:
            record.announce("symlink", caller, holder=holder)
        os.symlink(target, place.given, dir_fd=place.parent)
        node = _new(record, place, "link", target)
        record.note("symlink", caller, path=as_text(record.nodes.path(*holder)), node=node.number, target=as_text(target))
    return 0


def remove(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``unlink``, ``rmdir``, ``unlinkat``."""
    directory, path = call.paths[0]
    removes_directory = call.name == "rmdir" or (call.name == "unlinkat" and bool(arguments[2] & _AT_REMOVEDIR))
    if call.name == "unlinkat" and as_int(arguments[2]) & ~_AT_REMOVEDIR:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    with located(record, caller, anchor_of(arguments, directory), caller.read_path(arguments[path])) as place:
        holder = _inside(caller, place)
        known = holder[0].children.get(holder[1])
        if known is not None and (known.kind == "directory") is removes_directory and not known.children:
            record.announce("rmdir" if removes_directory else "unlink", caller, holder=holder)
        record.log_closed()
        (os.rmdir if removes_directory else os.unlink)(place.given, dir_fd=place.parent)
        if holder[1] not in holder[0].children:
            return 0  # a pipe, a socket or a device: it was said when it was looked at
        where = record.nodes.path(*holder)
        node = record.nodes.remove(*holder)
        if node.number == ROOT:
            record.note_blind("call", _ROOT_CHANGED, path=b".")
            return 0
        record.note("rmdir" if removes_directory else "unlink", caller, path=as_text(where), node=node.number)
    return 0


def link(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``link``, ``linkat``: one more name for a file of the directory, or one in it for a file of another."""
    directory, path = call.paths[0]
    flags = as_int(arguments[4]) if call.name == "linkat" else 0
    if flags & ~(_AT_SYMLINK_FOLLOW | _AT_EMPTY_PATH):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    anchor = anchor_of(arguments, 0 if call.name == "linkat" else NO_ARGUMENT)
    source = caller.read_path(arguments[1 if call.name == "linkat" else 0])
    target = caller.read_path(arguments[path])
    if not source and flags & _AT_EMPTY_PATH:
        source, flags = b"/proc/self/fd/%d" % anchor, flags | _AT_SYMLINK_FOLLOW
    with located(record, caller, anchor, source, follows=bool(flags & _AT_SYMLINK_FOLLOW)) as origin:
        if origin.status is None or origin.given != origin.name:
            os.stat(origin.given, dir_fd=origin.parent)  # fails before the other path is looked at
        with located(record, caller, anchor_of(arguments, directory), target) as place:
            holder = _inside(caller, place)
            if place.status is None and origin.status is not None:
                record.announce("link" if _is_named(record, origin) else "move-in", caller, holder=holder)
            _link(origin, place)
            _log_arrival(record, caller, origin=origin, holder=holder)
    return 0


def rename(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``rename``, ``renameat``, ``renameat2``: within the directory, into it, or out of it."""
    (from_directory, from_path), (to_directory, to_path) = call.paths
    flags = as_int(arguments[4]) if call.name == "renameat2" else 0
    source, target = caller.read_path(arguments[from_path]), caller.read_path(arguments[to_path])
    with (
        located(record, caller, anchor_of(arguments, from_directory), source) as origin,
        located(record, caller, anchor_of(arguments, to_directory), target) as place,
    ):
        if origin.holder is None and place.holder is None:
            raise ElsewhereError
        caller.confirm()
        _announce_rename(record, caller, origin=origin, place=place)
        record.log_closed()
        if flags:
            system_call(record.numbers["renameat2"], origin.parent, origin.given, place.parent, place.given, flags)
        else:
            os.rename(origin.given, place.given, src_dir_fd=origin.parent, dst_dir_fd=place.parent)
        _log_rename(record, caller, origin=origin, place=place, exchanges=bool(flags & _RENAME_EXCHANGE))
    return 0


def _announce_rename(record: Record, caller: Caller, *, origin: Place, place: Place) -> None:
    """Of one that fails, or does nothing, nothing is said."""
    if origin.status is None or (place.status is not None and key_of(origin.status) == key_of(place.status)):
        return
    if origin.holder is None:
        record.announce("move-in", caller, holder=place.holder)
    else:
        record.announce("move-out" if place.holder is None else "rename", caller, holder=origin.holder)


def _inside(caller: Caller, place: Place) -> Holder:
    """Where in the directory a place is.

    Raises:
        ElsewhereError: When it is not in it.
    """
    if place.holder is None:
        raise ElsewhereError
    caller.confirm()
    return place.holder


def _new(record: Record, place: Place, kind: Kind, target: bytes = b"") -> Node:
    assert place.holder is not None
    key = key_of(os.lstat(place.name, dir_fd=place.parent))
    return record.nodes.make(key, kind, place.holder, target=target)


def _link(origin: Place, place: Place) -> None:
    if origin.is_magic:
        os.link(origin.path, place.given, dst_dir_fd=place.parent, follow_symlinks=True)
    else:
        os.link(origin.given, place.given, src_dir_fd=origin.parent, dst_dir_fd=place.parent, follow_symlinks=False)


def _log_arrival(record: Record, caller: Caller, *, origin: Place, holder: Holder) -> None:
    """A file has got a name in the directory: it is one of its files, or comes from outside."""
    assert origin.status is not None
    node = record.nodes.find(key_of(origin.status))
    where = as_text(record.nodes.path(*holder))
    if node is not None and _is_named(record, origin):
        record.nodes.put(node, *holder)
        record.note("link", caller, to=where, node=node.number)
    else:
        record.log_closed()
        record.log_arrival(holder, process=caller.process, thread=caller.thread)


def _is_named(record: Record, origin: Place) -> bool:
    """Whether a place is one of a file of the directory."""
    assert origin.status is not None
    node = record.nodes.find(key_of(origin.status))
    return node is not None and bool(node.names or origin.is_magic) and node.kind != "directory"


def _log_rename(record: Record, caller: Caller, *, origin: Place, place: Place, exchanges: bool) -> None:
    if origin.status is not None and place.status is not None and key_of(origin.status) == key_of(place.status):
        return  # two names of one file: nothing happens, rename(2)
    source, target = origin.holder, place.holder
    for holder in (source, target):
        if holder is not None and holder[0] is record.nodes.above:
            record.note_blind("call", _ROOT_CHANGED, path=b".")
    if source is not None and target is not None:
        _log_within(record, caller, source=source, target=target, exchanges=exchanges)
        return
    if source is not None:
        _log_departure(record, caller, source)
        if exchanges:
            _log_arrival(record, caller, origin=place, holder=source)
    if target is not None:
        if target[1] in target[0].children:
            if exchanges:
                _log_departure(record, caller, target)
            else:
                record.nodes.remove(*target)
        _log_arrival(record, caller, origin=origin, holder=target)


def _log_within(record: Record, caller: Caller, *, source: Holder, target: Holder, exchanges: bool) -> None:
    moved = source[0].children.get(source[1])
    path, to = record.nodes.path(*source), record.nodes.path(*target)
    replaced = target[0].children.get(target[1])
    if moved is None or (exchanges and replaced is None):
        record.note_blind("call", "a pipe, a socket or a device was renamed", path=path)
        return
    if exchanges:
        record.nodes.exchange(source, target)
    else:
        record.nodes.move(*source, to=target)
    record.note("rename", caller, path=as_text(path), to=as_text(to), node=moved.number, exchanges=exchanges)


def _log_departure(record: Record, caller: Caller, source: Holder) -> None:
    if source[1] in source[0].children:
        record.log_closed()
        record.log_departure(source, process=caller.process, thread=caller.thread)
