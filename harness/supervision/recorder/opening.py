"""Opens that can change something: performed by us, and the descriptor put into the caller."""

import errno
import os
import stat
import struct

from harness.supervision import seccomp
from harness.supervision.recorder.attributes import note_new_mode
from harness.supervision.recorder.caller import Caller, ElsewhereError
from harness.supervision.recorder.native import as_int, system_call
from harness.supervision.recorder.nodes import Node, key_of
from harness.supervision.recorder.operation_log import as_text
from harness.supervision.recorder.places import Place, anchor_of, located
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import WRITING_FLAGS, Call
from harness.supervision.tracee import O_TMPFILE

_O_PATH = getattr(os, "O_PATH", 0)
_ACCESS = os.O_WRONLY | os.O_RDWR
_HOW_SIZE = 24
"""Of the first version of ``struct open_how``; later ones only add to it."""


class Opening:
    """What a call asks for."""

    __slots__ = ("flags", "how", "mode")

    def __init__(self, flags: int, mode: int, how: bytes = b"") -> None:
        self.flags, self.mode, self.how = flags, mode, how

    @property
    def writes(self) -> bool:
        """Whether one can write through it."""
        return bool(self.flags & _ACCESS)

    @property
    def reads(self) -> bool:
        """Whether one can write and read through it."""
        return self.flags & _ACCESS == os.O_RDWR

    def follows(self, name: bytes) -> bool:
        """Whether a link at the end of the path is followed; not if a file must be new, nor by one that is to be made with a slash."""
        if self.flags & os.O_CREAT and (self.flags & os.O_EXCL or name.endswith(b"/")):
            return False
        return not self.flags & os.O_NOFOLLOW


def open_file(record: Record, caller: Caller, call: Call, arguments: list[int], listener: int) -> int | None:
    """Open for the caller, give it the descriptor, and log what became of it.

    Returns:
        The descriptor's number; None: the caller is gone.

    Raises:
        ElsewhereError: When it concerns no file of the directory.
        OSError: When it fails.
    """
    opening = _asked_for(caller, call, arguments)
    if not opening.flags & WRITING_FLAGS or opening.flags & _O_PATH:
        raise ElsewhereError
    directory, path = call.paths[0]
    name = caller.read_path(arguments[path])
    anchor = anchor_of(arguments, directory)
    is_unnamed = bool(opening.flags & O_TMPFILE)
    with located(record, caller, anchor, name, follows=is_unnamed or opening.follows(name)) as place:
        node = _known(record, place)
        if is_unnamed:
            _check_directory(record, place)
        elif not _concerns(place, node):
            raise ElsewhereError
        caller.confirm()
        _announce(record, caller, opening, node=node, place=place)
        record.log_closed()
        descriptor = _open(record, place, opening, caller, name=name, anchor=anchor)
        is_new = is_unnamed or node is None
        if node is None or is_new:
            node = record.nodes.make(key_of(os.fstat(descriptor)), "file", None if is_unnamed else place.holder)
    return _give(record, caller, listener, descriptor=descriptor, opening=opening, node=node, kind="create" if is_new else "open")


def _announce(record: Record, caller: Caller, opening: Opening, *, node: Node | None, place: Place) -> None:
    """Of an open that will be refused, or one that changes nothing, nothing is said; nor of a file without a name."""
    if opening.flags & O_TMPFILE:
        return
    if node is None:
        if opening.flags & os.O_CREAT and place.status is None:
            record.announce("create", caller, holder=place.holder)
    elif opening.flags & (os.O_CREAT | os.O_EXCL) != os.O_CREAT | os.O_EXCL:
        if opening.writes:
            record.announce("open", caller, node=node)
        elif opening.flags & os.O_TRUNC:
            record.announce("truncate", caller, node=node)


def _concerns(place: Place, node: Node | None) -> bool:
    """Whether an open changes a file of the directory, or fails there; what is no regular file is let go, lest we wait for a pipe."""
    if node is not None:
        return True
    return place.holder is not None and (place.status is None or stat.S_ISLNK(place.status.st_mode))


def _asked_for(caller: Caller, call: Call, arguments: list[int]) -> Opening:
    if call.name == "creat":
        return Opening(os.O_CREAT | os.O_WRONLY | os.O_TRUNC, arguments[1])
    if call.name == "openat2":
        how = caller.read(arguments[2], _HOW_SIZE)
        flags, mode, resolve = struct.unpack("=QQQ", how)
        return Opening(flags, mode, how if resolve else b"")
    return Opening(as_int(arguments[call.flags]), arguments[call.flags + 1])


def _known(record: Record, place: Place) -> Node | None:
    """The node of a regular file that is there, by whatever name."""
    if place.status is None or not stat.S_ISREG(place.status.st_mode):
        return None
    node = record.nodes.find(key_of(place.status))
    return node if node is not None and (node.names or place.is_magic) else None


def _check_directory(record: Record, place: Place) -> None:
    """A file without a name belongs to the directory that it is made in."""
    if place.status is None or not stat.S_ISDIR(place.status.st_mode):
        raise ElsewhereError  # fails
    descriptor = os.open(place.given, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.parent)
    try:
        node = record.directory_of(descriptor)
    finally:
        os.close(descriptor)
    if node is None or node is record.nodes.above:
        raise ElsewhereError


def _open(record: Record, place: Place, opening: Opening, caller: Caller, *, name: bytes, anchor: int) -> int:
    os.umask(caller.umask)
    if opening.flags & os.O_CREAT and place.given != place.name:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if opening.how:  # its restrictions concern the whole path
        start = b"/proc/%d/cwd" % caller.thread if anchor < 0 else b"/proc/%d/fd/%d" % (caller.thread, anchor)
        directory = os.open(start, _O_PATH | os.O_CLOEXEC)
        try:
            return system_call(record.numbers["openat2"], directory, name, opening.how, _HOW_SIZE)
        finally:
            os.close(directory)
    # A link has been followed already, so if there is one now the caller does not want it followed.
    flags = opening.flags if place.is_magic or opening.flags & O_TMPFILE else opening.flags | os.O_NOFOLLOW
    return os.open(place.given, flags | os.O_CLOEXEC, opening.mode & 0o7777, dir_fd=place.parent)


def _give(record: Record, caller: Caller, listener: int, *, descriptor: int, opening: Opening, node: Node, kind: str) -> int | None:
    """Log what has become of it and give the caller its descriptor; one that is gone, or has no room, has made the file all the same."""
    failure: OSError | None = None
    number: int | None = None
    try:
        closes = bool(opening.flags & os.O_CLOEXEC)
        number = seccomp.add_descriptor(listener, caller.id, descriptor, closes_on_exec=closes)
    except OSError as error:
        failure = error
    finally:
        os.close(descriptor)  # while the caller still waits: a lock that it takes must not be ours too
    truncates = bool(opening.flags & os.O_TRUNC) and kind == "open"
    if truncates:
        node.pieces.truncate(0)
    if opening.writes:
        record.open_handle(caller, number, node, kind=kind, told={"truncates": truncates, "reads": opening.reads})
    elif kind == "create":
        record.note("create", caller, path=as_text(record.nodes.path_of(node)), node=node.number)
    elif truncates:
        record.note("truncate", caller, node=node.number, size=0)
    if kind == "create":
        note_new_mode(record, caller, node, opening.mode)
    record.nodes.release(node)
    if failure is not None:
        raise failure
    return number
