"""Files that a job writes where nothing is recorded: a part of what it saves may lie there.

Noted are openings for writing and renames, not each write. What a job appends to is most often a log of its own, and what has a name with a
dot a cache or somebody's settings: these are noted as ``quiet``, and count only where what was saved names them.
"""
# ruff: noqa: PTH115, PTH118 - the kernel's paths are bytes, and pathlib knows only text

import os
import stat

from harness.supervision.recorder.caller import Caller, CallerGoneError, ElsewhereError, UnseenError
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Key, key_of
from harness.supervision.recorder.operation_log import as_text
from harness.supervision.recorder.places import anchor_of, located
from harness.supervision.recorder.record import Record
from harness.supervision.syscalls import NO_ARGUMENT, OPEN, RENAME, Call

PATHS_MAX, TIMES_MAX = 20_000, 64
"""Of so many files it is noted, an import of all that a large program needs among them, and of each so often."""

_KERNEL = (b"/proc", b"/sys")
_ACCESS = os.O_WRONLY | os.O_RDWR


class Elsewhere:
    """What a job wrote outside of the directory, and when.

    Args:
        record: The state of the recording.
        ignored: Directories in which nothing is kept from one attempt of the job to the next.
        events: The file in which the job says what it does.
    """

    def __init__(self, record: Record, *, ignored: tuple[bytes, ...], events: Key) -> None:
        self._record, self._events = record, events
        self._ignored = (*_KERNEL, *(os.path.realpath(path) for path in ignored if path))
        self._times: dict[bytes, list[int]] = {}
        self._quiet: dict[bytes, list[int]] = {}
        self._renamed: set[bytes] = set()

    def note(self, caller: Caller, call: Call, arguments: list[int]) -> None:
        """Note a call that goes on, since it does not concern the directory."""
        if call.kind not in (OPEN, RENAME):
            return
        try:
            flags = os.O_WRONLY if call.kind == RENAME else _flags(caller, call, arguments)
            if flags & _ACCESS:
                self.put(self._path(caller, call, arguments), is_renamed=call.kind == RENAME, is_quiet=bool(flags & os.O_APPEND))
        except (OSError, ElsewhereError, CallerGoneError, UnseenError):
            return  # it fails, or is none of ours to look into

    def log(self) -> None:
        """At the end: log what is still there, with something in it; temporary files, locks and devices are not."""
        for path, times in self._times.items():
            if self._holds(path):
                self._record.log.append("elsewhere", path=as_text(path), at=times)
        for path, times in self._quiet.items():
            if path not in self._times and self._holds(path):
                self._record.log.append("elsewhere", path=as_text(path), at=times, quiet=True)

    def _holds(self, path: bytes) -> bool:
        try:
            status = os.lstat(path)
        except OSError:
            return False
        holds = (path in self._renamed and stat.S_ISDIR(status.st_mode)) or (stat.S_ISREG(status.st_mode) and status.st_size > 0)
        return holds and key_of(status) != self._events

    def _path(self, caller: Caller, call: Call, arguments: list[int]) -> bytes:
        directory, number = call.paths[-1]
        with located(self._record, caller, anchor_of(arguments, directory), caller.read_path(arguments[number]), follows=True) as place:
            return os.path.join(os.readlink(b"/proc/self/fd/%d" % place.parent), place.name)

    def put(self, path: bytes, *, is_renamed: bool = False, is_quiet: bool = False) -> None:
        """Note a path; beyond ``PATHS_MAX`` of them the log says that it is blind."""
        if any(path == ignored or path.startswith(ignored + b"/") for ignored in (*self._ignored, self._record.root)):
            return
        is_quiet |= any(name[:1] == b"." or name == b"__pycache__" for name in path.split(b"/"))
        noted = self._quiet if is_quiet else self._times
        if path not in noted and len(self._times) + len(self._quiet) >= PATHS_MAX:
            self._record.note_blind("many", f"more than the {PATHS_MAX:,} that are followed")
            return
        times = noted.setdefault(path, [])
        if len(times) < TIMES_MAX:
            times.append(self._record.log.index)
        self._renamed.update((path,) if is_renamed else ())


def _flags(caller: Caller, call: Call, arguments: list[int]) -> int:
    if call.flags == NO_ARGUMENT:  # creat
        return os.O_WRONLY
    return int.from_bytes(caller.read(arguments[2], 8), "little") if call.name == "openat2" else as_int(arguments[call.flags])
