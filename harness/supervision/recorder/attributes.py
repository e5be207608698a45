"""Changes of mode, times and extended attributes: what the log has no word for is said, where a recovery could go by it.

Not said is what every copy and temporary file does: rights of the group and of others, the right to execute, the time that a file gets
from whoever has just written it, and a time that leaves a directory's files in the order in which they were written. Owners are not
looked at.
"""

import os
import stat
import struct
from collections.abc import Callable

from harness.clock import SystemClock
from harness.supervision.recorder.caller import Caller, ElsewhereError
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Node, key_of
from harness.supervision.recorder.operation_log import as_text
from harness.supervision.recorder.places import anchor_of, located
from harness.supervision.recorder.record import MARKING, OWNER_OF, Record
from harness.supervision.syscalls import NO_ARGUMENT, Call

_AT_SYMLINK_NOFOLLOW = 0x100
_UTIME_NOW, _UTIME_OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_SECONDS = struct.Struct("=q")
_TIME = struct.Struct("=qq")

_SIZE_MAX = 65536
"""Of the value of an attribute; xattr(7)."""

NEIGHBOURS_MAX = 1000
"""Of a directory with more files it is not known what a time means."""

FUTURE_S = 1.0
"""A time so far ahead is no copy's."""

PLAUSIBLE_S = 1e8
"""Earlier than 1973: a number that stands for something else, as the step does in ``os.utime(path, (step, step))``."""


def note_mode(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``chmod`` and its relatives.

    Raises:
        ElsewhereError: Always; the call goes on.
    """
    follows = call.name != "fchmodat2" or not as_int(arguments[3]) & _AT_SYMLINK_NOFOLLOW
    node, status = _found(record, caller, call, arguments, follows=follows)
    mode = arguments[1 if call.descriptor != NO_ARGUMENT else call.paths[0][1] + 1]
    if (stat.S_IMODE(status.st_mode) ^ mode) & _owner_of(node):
        _say(record, caller, node, f"{call.name} changes what its owner may do, and modes are not kept")
    raise ElsewhereError


def note_new_mode(record: Record, caller: Caller, node: Node, mode: int) -> None:
    """Of something that has just been made."""
    if _owner_of(node) & ~(mode & ~caller.umask):
        _say(record, caller, node, "it is made with fewer rights for its owner, and modes are not kept")


def note_times(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``utimensat`` and its relatives.

    Raises:
        ElsewhereError: Always; the call goes on.
    """
    follows = call.name != "utimensat" or not as_int(arguments[3]) & _AT_SYMLINK_NOFOLLOW
    node, status = _found(record, caller, call, arguments, follows=follows)
    given_ns = _time_ns(caller, call, arguments[call.paths[0][1] + 1])
    if given_ns is None:
        raise ElsewhereError
    now_ns = SystemClock().utc().timestamp() * 1e9
    is_now = given_ns == _NOW
    time_ns = now_ns if is_now else given_ns
    is_empty = node.kind == "file" and not status.st_size
    is_copy = PLAUSIBLE_S * 1e9 <= time_ns <= now_ns + FUTURE_S * 1e9 and _has_just_made(record, caller, node)
    if not (is_copy or (is_now and is_empty)) and _takes_another_place(record, node, status.st_mtime_ns, time_ns):
        _say(record, caller, node, f"{call.name} gives it another place in the order of times, and times are not kept")
    raise ElsewhereError


_NOW = -(1 << 63)


def note_attribute(record: Record, caller: Caller, call: Call, arguments: list[int]) -> int:
    """``setxattr``, ``removexattr`` and their relatives: performed by us, for many a storage has no attributes, and then nothing happens.

    Raises:
        ElsewhereError: When it is no attribute of the job's.
        OSError: When it fails.
    """
    node, _ = _found(record, caller, call, arguments, follows=not call.name.startswith("l"))
    name = caller.read_path(arguments[1])
    if not name.startswith(MARKING):
        raise ElsewhereError
    where: bytes = b"/proc/%d/fd/%d" % (caller.thread, as_int(arguments[0]))
    if call.descriptor == NO_ARGUMENT:
        where = record.real_path(node.names[0])
    caller.confirm()
    follows = call.descriptor != NO_ARGUMENT
    if "remove" in call.name:
        os.removexattr(where, name, follow_symlinks=follows)
    else:
        size = arguments[3]
        value = caller.read(arguments[2], size) if 0 < size <= _SIZE_MAX else bytes(min(size, _SIZE_MAX + 1))
        os.setxattr(where, name, value, as_int(arguments[4]), follow_symlinks=follows)
    _say(record, caller, node, f"{call.name} changes {as_text(name)}, and attributes are not kept")
    return 0


def _found(record: Record, caller: Caller, call: Call, arguments: list[int], *, follows: bool) -> tuple[Node, os.stat_result]:
    """What a call is about.

    Raises:
        ElsewhereError: When it is nothing of the directory.
        OSError: When it is not there.
    """
    if call.descriptor != NO_ARGUMENT:
        return _opened(record, caller, as_int(arguments[call.descriptor]))
    directory, path = call.paths[0]
    anchor = anchor_of(arguments, directory)
    name = caller.read_path(arguments[path]) if arguments[path] else b""
    if not name:  # of the descriptor itself
        if anchor < 0:
            raise ElsewhereError
        return _opened(record, caller, anchor)
    with located(record, caller, anchor, name, follows=follows) as place:
        node = record.nodes.find(key_of(place.status)) if place.status is not None else None
        if node is None or node is record.nodes.above or place.status is None or not node.names:
            raise ElsewhereError
        return node, place.status


def _opened(record: Record, caller: Caller, descriptor: int) -> tuple[Node, os.stat_result]:
    status = caller.stat(descriptor)
    node = record.file_of(caller, status, descriptor)
    if node is record.nodes.above:
        raise ElsewhereError
    return node, status


def _owner_of(node: Node) -> int:
    return OWNER_OF["directory" if node.kind == "directory" else "file"]


def _time_ns(caller: Caller, call: Call, address: int) -> int | None:
    """The time of modification that is asked for; ``_NOW``; None: it stays as it is."""
    if not address:
        return _NOW
    if call.name == "utime":
        return int(_SECONDS.unpack(caller.read(address + _SECONDS.size, _SECONDS.size))[0]) * 10**9
    seconds, rest = _TIME.unpack(caller.read(address + _TIME.size, _TIME.size))
    if call.name != "utimensat":
        return int(seconds) * 10**9 + int(rest) * 1000
    if rest == _UTIME_OMIT:
        return None
    return _NOW if rest == _UTIME_NOW else int(seconds) * 10**9 + int(rest)


def _has_just_made(record: Record, caller: Caller, node: Node) -> bool:
    """Whether what a thread wrote last is that, or is below it: a copy sets times when it is done."""
    last = record.last_made.get(caller.thread)
    while last is not None and last is not node:
        last = last.names[0][0] if last.names else None
    return last is not None


def _takes_another_place(record: Record, node: Node, before_ns: float, after_ns: float) -> bool:
    """Whether any of its neighbours is older than it by one of the two times, and not by the other."""
    if not node.names or node is record.nodes.root:
        return False
    (holder, own), *_ = node.names
    if len(holder.children) > NEIGHBOURS_MAX:
        return True
    is_between = _between(before_ns, after_ns)
    return any(is_between(_modified_ns(record.real_path((holder, name)))) for name in holder.children if name != own)


def _between(before_ns: float, after_ns: float) -> Callable[[float], bool]:
    """What was written last may have the same time as what was written before: the kernel counts by milliseconds."""
    if after_ns > before_ns:
        return lambda other_ns: before_ns <= other_ns < after_ns
    return lambda other_ns: after_ns < other_ns <= before_ns


def _modified_ns(path: bytes) -> float:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return float("-inf")


def _say(record: Record, caller: Caller, node: Node, detail: str) -> None:
    record.note_blind("call", detail, path=record.nodes.path_of(node) or node.was, thread=caller.thread, once_alike=True)
