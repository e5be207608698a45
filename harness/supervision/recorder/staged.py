"""Files outside of the directory that may be moved into it when they are done: which of their bytes a crash could take then.

What was there before the recording counts as durable. A file that is cut by its path is not followed.
"""

import os
import stat

from harness.supervision.recorder.caller import Caller, CallerGoneError, ElsewhereError, UnseenError
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Key, key_of
from harness.supervision.syscalls import ALLOCATE, COPY, NO_ARGUMENT, SYNC, TRUNCATE, WRITE, Call

_CHANGES = frozenset({WRITE, COPY, TRUNCATE, ALLOCATE})


class Staged:
    """Regular files of the directory's file system, by their inodes; others cannot be moved into it.

    Attributes:
        unsynced: Those that were written since they were last synced.
        unseen: Those that may be written without a call.
    """

    def __init__(self, device: int) -> None:
        self.device = device
        self.unsynced: set[Key] = set()
        self.unseen: set[Key] = set()

    def note(self, caller: Caller, call: Call, arguments: list[int]) -> None:
        """Note a call that goes on, since it does not concern the directory."""
        if call.name == "sync":
            self.unsynced.clear()
        if call.descriptor == NO_ARGUMENT or call.kind not in (*_CHANGES, SYNC) or call.name in ("mmap", "syncfs"):
            return
        number = as_int(arguments[call.descriptor])
        try:
            key = self._key(caller, number)
            if key is not None and call.kind == SYNC:
                self.unsynced.discard(key)
            elif key is not None and key not in self.unsynced and not _syncs_always(caller, number):
                self.unsynced.add(key)
        except (OSError, ElsewhereError, CallerGoneError, UnseenError):
            return  # it fails, or is none of ours to look into

    def note_unseen(self, caller: Caller, descriptor: int) -> None:
        """Note a file that is outside, and whose writes are no calls."""
        key = self._key(caller, descriptor)
        if key is not None:
            self.unseen.add(key)

    def _key(self, caller: Caller, descriptor: int) -> Key | None:
        status = caller.stat(descriptor)
        return key_of(status) if status.st_dev == self.device and stat.S_ISREG(status.st_mode) else None


def _syncs_always(caller: Caller, descriptor: int) -> bool:
    """Whether each write through it is durable."""
    with open(b"/proc/%d/fdinfo/%d" % (caller.thread, descriptor), "rb") as file:  # noqa: PTH123 - a path of bytes
        flags = next(line.split()[1] for line in file if line.startswith(b"flags:"))
    return bool(int(flags, 8) & os.O_DSYNC)
