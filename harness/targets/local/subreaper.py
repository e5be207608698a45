"""Makes this process the parent of its orphaned descendants (Linux), so that what a job leaves behind can be found and waited for.

Without it an orphan goes to init and its end can only be guessed. Unrelated children are never waited for: an exit status belongs to
whoever started the process.

Source: https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


class Subreaper:
    """The setting of this process, shared by all targets in it; on other systems than Linux nothing is set and nothing is known.

    Several threads have it at once: an emulator runs each execution in a thread of its own, beside the runs of this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[object] = set()
        self._was_set_before = False
        self._leaders: set[int] = set()

    def acquire(self, holder: object) -> None:
        """Adopt orphans until this one releases it. SIGCHLD must not be ignored, or the kernel would swallow exit statuses."""
        with self._lock:
            if not self._holders:
                if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._was_set_before = adopts_orphans()
            self._holders.add(holder)  # first, so that who is interrupted here releases it
            _set(1)

    def release(self, holder: object) -> None:
        """Undo the ``acquire`` of this one, if it has come to that; the last one restores what was before."""
        with self._lock:
            if self._holders == {holder}:
                _set(int(self._was_set_before))
            self._holders.discard(holder)

    def add_leader(self, pid: int) -> None:
        """Name a child that is waited for by its own group: it is no orphan."""
        with self._lock:
            self._leaders.add(pid)

    def remove_leader(self, pid: int) -> None:
        """The child has been waited for."""
        with self._lock:
            self._leaders.discard(pid)

    def may_have_orphans(self) -> bool:
        """Whether this process has children besides the leaders: without any, nothing of an attempt can have outlived its leader.

        Every descendant is below one of our children, since orphans come to us, and listing those is cheap.
        """
        if not adopts_orphans():
            return True
        try:
            children = {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_bytes().split()}
        except OSError:  # a thread ended meanwhile, and its children moved to another
            return True
        with self._lock:
            have_none = children <= self._leaders
        return not have_none or not Path("/proc/thread-self/children").exists()  # CONFIG_PROC_CHILDREN

    def reap(self, pid: int) -> bool:
        """Wait for an adopted child without blocking; whether it has still to end. Nothing happens when it is not ours, or is a leader."""
        with self._lock:  # nobody becomes a leader between the two
            if pid not in self._leaders:
                with contextlib.suppress(ChildProcessError):
                    return os.waitpid(pid, os.WNOHANG)[0] == 0
        return False


subreaper = Subreaper()
"""The one of this process: the kernel keeps one setting a process."""


def _set(value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(value), 0, 0, 0)


def adopts_orphans() -> bool:
    """Whether this process is the parent of its orphaned descendants now."""
    if not sys.platform.startswith("linux"):
        return False
    value = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    return bool(value.value)
