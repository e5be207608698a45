"""How a process ended that is no child of ours, from the kernel where it says so.

The engine writes an end by a signal as exit code 128 and the signal, so that 137 is a SIGKILL and an ``exit 137`` alike. Linux 6.15 tells a
holder of the process's descriptor the wait status itself.

Source: include/uapi/linux/pidfd.h of Linux 6.15 (PIDFD_GET_INFO), and tools/testing/selftests/pidfd/pidfd_info_test.c there.
"""

import fcntl
import os
import signal
import struct

PIDFD_GET_INFO = 0xC040FF0B
"""``_IOWR(0xFF, 11, struct pidfd_info)`` for its first version of 64 bytes. Source: include/uapi/linux/pidfd.h."""

PIDFD_INFO_EXIT = 1 << 3
"""Asks for the wait status, and is set in the answer when it is there. Source: include/uapi/linux/pidfd.h."""

_INFO = struct.Struct("=QQ11Ii")
"""The mask first, the wait status last."""

FORCED_SIGNALS = frozenset({signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS})
"""What can end the first process of a container from within: the kernel drops every other signal that it has no handler for.

Source: https://man7.org/linux/man-pages/man7/pid_namespaces.7.html
"""


def exit_status(descriptor: int) -> int | None:
    """The end of a process by its descriptor (``os.pidfd_open``), as ``subprocess`` writes it; None when the kernel does not say (yet)."""
    answer = bytearray(_INFO.pack(PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(descriptor, PIDFD_GET_INFO, answer)
    except OSError:  # an older kernel, or the process was not waited for yet
        return None
    mask, *_, status = _INFO.unpack(answer)
    return os.waitstatus_to_exitcode(status) if mask & PIDFD_INFO_EXIT else None


def status_of_engine(exit_code: int, *, was_killed: bool) -> int:
    """The same from the engine's exit code, where the kernel says nothing: by what can have ended a first process.

    An ``exit 139`` of the job's own is then taken for a SIGSEGV; 137 is a SIGKILL only where one is known of, sent by us or for want of
    memory; 143 is always the job's own exit, for no SIGTERM ends a first process.
    """
    number = exit_code - 128
    is_signal = number in FORCED_SIGNALS or (number == signal.SIGKILL and was_killed)
    return -number if is_signal else exit_code
