"""What a held system call is about to change, and where: read from the caller's memory and descriptors under ``/proc``.

The caller must be a descendant of ours, or the same user where the kernel does not restrict it (Yama).
"""
# ruff: noqa: PTH115, PTH118 - the kernel's paths are bytes, and pathlib knows only text

import os
import struct

from harness.supervision.seccomp import Notification
from harness.supervision.syscalls import CREATE, NO_ARGUMENT, OPEN, TRUNCATE, WRITING_FLAGS, Architecture, Call

PATH_SIZE_MAX = 4096
"""PATH_MAX of Linux, the closing zero included."""
WORKING_DIRECTORY = -100
"""AT_FDCWD."""
_WRITE_ACCESS = os.O_WRONLY | os.O_RDWR
O_TMPFILE = getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
"""Without the bit that every open of a directory has; 0 where there is no such flag."""
_O_PATH = getattr(os, "O_PATH", 0)


def change_under(root: bytes, notification: Notification, architecture: Architecture) -> str:
    """The kind of change that a call makes under ``root`` (a real path), or "" when it makes none there.

    A caller that cannot be looked into, or a path that does not exist, counts as elsewhere: the kernel then decides for itself.
    """
    call = architecture.calls[notification.number]
    thread, arguments = notification.thread, notification.arguments
    try:
        if call.descriptor != NO_ARGUMENT:
            return call.kind if _is_under(root, _descriptor_path(thread, arguments[call.descriptor])) else ""
        if call.kind == OPEN:
            return _opening_under(root, call, thread, arguments)
        for directory, path in call.paths:
            name = _read_path(thread, arguments[path])
            anchor = WORKING_DIRECTORY if directory == NO_ARGUMENT else arguments[directory]
            if _is_under(root, _locate(thread, anchor, name, follows=call.kind == TRUNCATE)):
                return call.kind
    except OSError:
        return ""
    return ""


def _opening_under(root: bytes, call: Call, thread: int, arguments: list[int]) -> str:
    directory, path = call.paths[0]
    flags = _open_flags(call, thread, arguments)
    if not flags & WRITING_FLAGS:
        return ""
    anchor = WORKING_DIRECTORY if directory == NO_ARGUMENT else arguments[directory]
    place = _locate(thread, anchor, _read_path(thread, arguments[path]), follows=not flags & os.O_NOFOLLOW)
    if not _is_under(root, place):
        return ""
    if flags & O_TMPFILE or (flags & os.O_CREAT and not os.path.lexists(place)):
        return CREATE
    return OPEN if flags & (_WRITE_ACCESS | os.O_TRUNC) else ""


def _open_flags(call: Call, thread: int, arguments: list[int]) -> int:
    if call.name == "creat":
        return os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    if call.name == "openat2":
        return int(struct.unpack("=Q", _read(thread, arguments[call.flags], 8))[0])  # the first field of struct open_how
    return arguments[call.flags]


def _is_under(root: bytes, path: bytes) -> bool:
    return path == root or path.startswith(root + b"/")


def _descriptor(argument: int) -> int:
    """A descriptor is an int of C; the upper half of its register means nothing."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


def _descriptor_path(thread: int, argument: int) -> bytes:
    return os.readlink(b"/proc/%d/fd/%d" % (thread, _descriptor(argument)))


def _locate(thread: int, anchor: int, name: bytes, *, follows: bool) -> bytes:
    """Where a path of the caller really lies, symbolic links resolved; its last part only when the call ``follows`` it."""
    if name.startswith(b"/"):
        start = b"/proc/%d/root" % thread
    elif _descriptor(anchor) == WORKING_DIRECTORY:
        start = b"/proc/%d/cwd/" % thread
    else:
        start = b"/proc/%d/fd/%d/" % (thread, _descriptor(anchor))
    path = (start + name).rstrip(b"/")
    parent, last = os.path.split(path)
    if follows or last in (b".", b".."):
        try:
            return _real_path(path)
        except FileNotFoundError:
            pass  # it is about to be made
    return os.path.join(_real_path(parent), last)


def _real_path(path: bytes) -> bytes:
    """The kernel's own answer, which also sees through ``/proc/PID/root``."""
    descriptor = os.open(path, _O_PATH | os.O_CLOEXEC)
    try:
        return os.readlink(b"/proc/self/fd/%d" % descriptor)
    finally:
        os.close(descriptor)


def _read_path(thread: int, address: int) -> bytes:
    return _read(thread, address, PATH_SIZE_MAX).split(b"\0", 1)[0]


def _read(thread: int, address: int, size: int) -> bytes:
    """Read the caller's memory; fewer bytes come back where its mapping ends."""
    memory = os.open(b"/proc/%d/mem" % thread, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, address)
    finally:
        os.close(memory)
