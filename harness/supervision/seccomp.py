"""The kernel's side of the supervisor: a filter that hands file-changing system calls to another process, which answers for the kernel.

Unprivileged: a process may filter itself once it has renounced new privileges (``no_new_privs``). Its children inherit both.

Source: seccomp_unotify(2), seccomp(2); Linux ``include/uapi/linux/seccomp.h``.
"""

import ctypes
import errno
import fcntl
import os
import struct
import sys

from harness.supervision.syscalls import Architecture, Call

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38

_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE = 1 << 5
"""Linux 5.19: once its call is being answered, a thread wakes for a fatal signal only. Without it a SIGTERM would make ``mkdir`` or
``rename`` fail with EINTR, which no local storage does and few jobs expect."""

_RECEIVE, _SEND, _IS_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_ADDITION = struct.Struct("=QIIII")
_EMPTY = bytes(_NOTIFICATION.size)  # the kernel insists on zeros

# Classic BPF: load a word of the call's data, jump if equal, if greater or equal, if any bit is set, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _NOTIFY, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS
_X32_CALLS = 0x40000000
"""From this number on stand the calls of the x32 interface, a second way to the same kernel functions."""


class Notification:
    """A system call that waits for an answer.

    Attributes:
        id: Names this very call.
        thread: The caller's thread id.
        audit: The kernel's identifier of the instruction set, to which the number belongs.
    """

    __slots__ = ("arguments", "audit", "id", "number", "thread")

    def __init__(self, data: bytes) -> None:
        self.id, self.thread, _, self.number, self.audit, _, *arguments = _NOTIFICATION.unpack(data)
        self.arguments: list[int] = arguments


Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


def filter_program(architecture: Architecture, calls: dict[int, Call], *, tells_what_is_refused: bool = False) -> list[Instruction]:
    """The filter that hands these calls over, by number; and, when asked to, what the supervisor is to refuse itself.

    Calls of another instruction set would pass under numbers of their own, io_uring writes without any call, and a file can be opened by a
    handle without a path: all are refused as a kernel without them would, so that nothing escapes unseen.
    """
    refuse = (_RETURN, 0, 0, _NOTIFY if tells_what_is_refused else _REFUSE)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture.audit),
        refuse,
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32_CALLS),
        refuse,
    ]
    for number in architecture.refused:
        program += [(_EQUAL, 0, 1, number), refuse]
    for number, call in calls.items():
        tests = [step for argument, test, values in call.guards for step in _guard(argument, test, values)]
        program += [(_EQUAL, 0, len(tests) + 1, number), *tests, (_RETURN, 0, 0, _NOTIFY)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return program


def _guard(argument: int, test: str, values: tuple[int, ...]) -> list[Instruction]:
    """Let the call pass unless its argument holds the test; only the argument's lower half is looked at, where all flags are."""
    load = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)
    if test == "equals":
        return [load, *((_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)), (_RETURN, 0, 0, _ALLOW)]
    (mask,) = values
    return [load, (_ANY_BIT, 1, 0, mask) if test == "has" else (_ANY_BIT, 0, 1, mask), (_RETURN, 0, 0, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(
    architecture: Architecture, calls: dict[int, Call], *, may_be_interrupted: bool = True, tells_what_is_refused: bool = False
) -> int:
    """Filter these calls of this process and of all it will start; returns the descriptor on which a supervisor answers.

    Args:
        architecture: Of this machine.
        calls: Those that are handed over.
        may_be_interrupted: Whether it will do that a signal interrupts a call that is being answered, as before Linux 5.19.
        tells_what_is_refused: Whether the supervisor refuses what must not be done.

    Raises:
        OSError: EINVAL when the kernel has no user notification (before 5.0), EBUSY when a supervisor is in force already.
    """
    program = filter_program(architecture, calls, tells_what_is_refused=tells_what_is_refused)
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    control(_PR_SET_NO_NEW_PRIVS, 1)
    library = ctypes.CDLL(None, use_errno=True)
    listener = -1
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER)[: 1 + may_be_interrupted]:
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


def answer(listener: int, notification_id: int, value: int) -> bool:
    """Give a call its result without executing it; False when the caller is gone."""
    return _send(listener, _RESPONSE.pack(notification_id, value, 0, 0))


def add_descriptor(listener: int, notification_id: int, descriptor: int, *, closes_on_exec: bool) -> int | None:
    """Give a caller, which goes on waiting, a descriptor of the file that ours is; returns its number there, None when the caller is gone.

    Raises:
        OSError: EMFILE when the caller has no room for it.

    Source: https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html
    """
    flags = os.O_CLOEXEC if closes_on_exec else 0
    try:
        request = bytearray(_ADDITION.pack(notification_id, 0, descriptor, 0, flags))
        return int(fcntl.ioctl(listener, _ADD_DESCRIPTOR, request))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise


def still_waits(listener: int, notification_id: int) -> bool:
    """Whether the caller is still there: if so, what was read of it since was its own."""
    try:
        fcntl.ioctl(listener, _IS_VALID, notification_id.to_bytes(8, sys.byteorder))
    except OSError:
        return False
    return True


def _send(listener: int, response: bytes) -> bool:
    try:
        fcntl.ioctl(listener, _SEND, response)
    except OSError:
        return False
    return True
