"""Where a path of a caller leads: its directory, opened by us, and the last name in it."""
# ruff: noqa: PTH115, PTH116, PTH120 - the kernel's paths are bytes, and pathlib knows only text

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from harness.supervision.recorder.caller import Caller, ElsewhereError
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Node
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import NO_ARGUMENT
from harness.supervision.tracee import WORKING_DIRECTORY

LINKS_MAX = 40
"""So many symbolic links Linux follows; path_resolution(7)."""

_O_PATH = getattr(os, "O_PATH", 0)


class Place:
    """A name in a directory.

    Attributes:
        parent: Our descriptor of the directory.
        name: The name.
        given: The name as the caller gave it, perhaps with a slash at its end.
        status: What is there; None: nothing.
        holder: The directory and the name, where they belong to the checkpoint directory.
        is_magic: Whether it is a link of ``/proc`` to an open file; ``status`` is that file's.
    """

    __slots__ = ("given", "holder", "is_magic", "name", "parent", "status")

    def __init__(self, parent: int, name: bytes, given: bytes) -> None:
        self.parent, self.name, self.given = parent, name, given
        self.status: os.stat_result | None = None
        self.holder: tuple[Node, bytes] | None = None
        self.is_magic = False

    @property
    def path(self) -> bytes:
        """As a path of ours, for functions that take no directory."""
        return b"/proc/self/fd/%d/%s" % (self.parent, self.given)


@contextmanager
def located(record: Record, caller: Caller, anchor: int, name: bytes, *, follows: bool = False) -> Iterator[Place]:
    """Find a path's place, while nothing else changes in the directory.

    Args:
        record: The state, which is settled with what is there.
        caller: Whose path it is.
        anchor: The directory descriptor it is relative to.
        name: The path.
        follows: Whether a symbolic link at its end is followed.

    Raises:
        ElsewhereError: When it cannot be in the directory.
        OSError: When it is in the directory and not there: as the call would fail.
    """
    if not name.strip(b"/"):
        raise ElsewhereError  # the root of all, or nothing
    path = _start(caller, anchor, name)
    parents: list[int] = []
    try:
        for _ in range(LINKS_MAX):
            place = _look(record, path, parents)
            if place.status is None or not stat.S_ISLNK(place.status.st_mode) or not follows:
                break
            target = os.readlink(place.name, dir_fd=place.parent)
            if os.fstat(place.parent).st_dev == os.stat("/proc").st_dev:
                place.is_magic, place.status = True, os.stat(place.name, dir_fd=place.parent)
                break
            start = b"/proc/%d/root" % caller.thread if target[:1] == b"/" else b"/proc/self/fd/%d/" % place.parent
            path = start + target + place.given[len(place.name) :]
        else:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        place.holder = _holder(record, place)
        yield place
    finally:
        for parent in parents:
            os.close(parent)


def anchor_of(arguments: list[int], directory: int) -> int:
    """The directory descriptor of a call that has one, else the working directory."""
    return WORKING_DIRECTORY if directory == NO_ARGUMENT else as_int(arguments[directory])


def _start(caller: Caller, anchor: int, name: bytes) -> bytes:
    if name.startswith(b"/"):
        own = {b"/proc/self/": b"", b"/proc/thread-self/": b"/task/%d" % caller.thread, b"/dev/fd/": b"/fd"}
        for prefix, inside in own.items():
            if name.startswith(prefix):
                return b"/proc/%d%s/%s" % (caller.thread, inside, name[len(prefix) :])
        return b"/proc/%d/root%s" % (caller.thread, name)
    if anchor == WORKING_DIRECTORY:
        return b"/proc/%d/cwd/%s" % (caller.thread, name)
    return b"/proc/%d/fd/%d/%s" % (caller.thread, anchor, name)


def _look(record: Record, path: bytes, parents: list[int]) -> Place:
    whole = path.rstrip(b"/")
    head, name = os.path.split(whole)
    try:
        parents.append(os.open(head, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        _refuse_if_inside(record, head, error)
    place = Place(parents[-1], name, name + path[len(whole) :][:1])
    try:
        place.status = os.lstat(name, dir_fd=place.parent)
    except FileNotFoundError:
        place.status = None
    except OSError as error:
        _refuse_if_inside(record, head, error)
    return place


def _refuse_if_inside(record: Record, head: bytes, error: OSError) -> None:
    """A path that leads nowhere could lead somewhere an instant later: inside of the directory we say so ourselves.

    Raises:
        OSError: The error, when the part of the path that is there is in the directory.
        ElsewhereError: When it is not.
    """
    while head.count(b"/") > 2:  # /proc/PID is always there
        try:
            descriptor = os.open(head, _O_PATH | os.O_CLOEXEC)
        except OSError:
            head = os.path.dirname(head.rstrip(b"/"))
            continue
        try:
            path = os.readlink(b"/proc/self/fd/%d" % descriptor)
        finally:
            os.close(descriptor)
        if path == record.root or path.startswith(record.root + b"/"):
            raise error
        break
    raise ElsewhereError from error


def _holder(record: Record, place: Place) -> tuple[Node, bytes] | None:
    directory = record.directory_of(place.parent)
    if directory is None or (directory is record.nodes.above and place.name != record.nodes.name) or place.is_magic:
        return None
    if place.name not in (b".", b".."):
        record.settle((directory, place.name), place.status)
    return (directory, place.name)
