"""The kernel's side of the supervisor: a filter that hands file-changing system calls to another process, which answers for the kernel.

Unprivileged: a process may filter itself once it has renounced new privileges (``no_new_privs``). Its children inherit both.

Source: seccomp_unotify(2), seccomp(2); Linux ``include/uapi/linux/seccomp.h``.
"""

import ctypes
import errno
import fcntl
import os
import struct

from harness.targets.local.syscalls import IO_URING_SETUP, NO_ARGUMENT, WRITING_FLAGS, Architecture

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38

_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE = 1 << 5
"""Linux 5.19: once its call is being answered, a thread wakes for a fatal signal only. Without it a SIGTERM would make ``mkdir`` or
``rename`` fail with EINTR, which no local storage does and few jobs expect."""

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_EMPTY = bytes(_NOTIFICATION.size)  # the kernel insists on zeros

# Classic BPF: load a word of the call's data, jump if equal, if greater or equal, if any bit is set, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _NOTIFY, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS
_X32_CALLS = 0x40000000
"""From this number on stand the calls of the x32 interface, a second way to the same kernel functions."""


class Notification:
    """A system call that waits for an answer; ``thread`` is the caller's thread id, ``id`` names this very call."""

    __slots__ = ("arguments", "id", "number", "thread")

    def __init__(self, data: bytes) -> None:
        self.id, self.thread, _, self.number, _, _, *arguments = _NOTIFICATION.unpack(data)
        self.arguments: list[int] = arguments


def filter_program(architecture: Architecture) -> list[tuple[int, int, int, int]]:
    """The filter as (code, jump if true, jump if false, operand).

    Calls of another instruction set would pass under numbers of their own, and io_uring writes without any call: both are refused as a
    kernel without them would, so that nothing escapes unseen.
    """
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32_CALLS),
        (_RETURN, 0, 0, _REFUSE),
        (_EQUAL, 0, 1, IO_URING_SETUP),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for number, call in architecture.calls.items():
        if call.flags == NO_ARGUMENT or call.name == "openat2":  # openat2 keeps its flags in memory, where no filter can look
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _NOTIFY)]
            continue
        program += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * call.flags),
            (_ANY_BIT, 0, 1, WRITING_FLAGS),
            (_RETURN, 0, 0, _NOTIFY),
            (_RETURN, 0, 0, _ALLOW),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    return program


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(architecture: Architecture) -> int:
    """Filter this process and all it will start; returns the descriptor on which a supervisor answers.

    Raises:
        OSError: EINVAL when the kernel has no user notification (before 5.0), EBUSY when a supervisor is in force already.
    """
    program = filter_program(architecture)
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    control(_PR_SET_NO_NEW_PRIVS, 1)
    library = ctypes.CDLL(None, use_errno=True)
    listener = -1
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        arguments = ctypes.byref(_Program(len(program), packed))
        listener = library.syscall(ctypes.c_long(architecture.seccomp), ctypes.c_ulong(_SET_MODE_FILTER), ctypes.c_ulong(flags), arguments)
        if listener >= 0:
            return int(listener)
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def control(option: int, value: int) -> None:
    """``prctl``.

    Raises:
        OSError: When the kernel refuses.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(ctypes.c_int(option), ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    control(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends: they stay ours to look into, and ours to wait for."""
    control(_PR_SET_CHILD_SUBREAPER, 1)


def leave_no_core() -> None:
    """Write no memory image of this process when a signal ends it."""
    control(_PR_SET_DUMPABLE, 0)


def receive(listener: int) -> Notification | None:
    """The next call that waits; None when it was interrupted before we came to it."""
    try:
        return Notification(fcntl.ioctl(listener, _RECEIVE, _EMPTY))
    except OSError:
        return None


def let_go(listener: int, notification_id: int) -> bool:
    """Let a call go on into the kernel; False when the caller is gone."""
    return _send(listener, _RESPONSE.pack(notification_id, 0, 0, _CONTINUE))


def refuse(listener: int, notification_id: int, error_number: int) -> bool:
    """Make a call fail without being executed; False when the caller is gone."""
    return _send(listener, _RESPONSE.pack(notification_id, 0, -error_number, 0))


def _send(listener: int, response: bytes) -> bool:
    try:
        fcntl.ioctl(listener, _SEND, response)
    except OSError:
        return False
    return True
