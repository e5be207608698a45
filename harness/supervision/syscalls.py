"""The system calls that change files: their numbers, where their paths stand, and which of them a failing storage refuses.

Standard library only: the supervisor starts in front of every attempt that it watches.

Not in the table, so never hit: stores through a writable ``mmap``, Linux AIO (``io_submit``), reflinks by ``ioctl``, sockets that are bound
to a path, and changes of mode, owner, times and attributes. A recorder is told of all but owners. Refused (``ENOSYS``) are io_uring, for
which every library that uses it has a fallback, and ``open_by_handle_at``, which opens without a path.
"""

import errno
import os

CREATE = "create"
OPEN = "open"
WRITE = "write"
COPY = "copy"
SYNC = "sync"
TRUNCATE = "truncate"
ALLOCATE = "allocate"
MKDIR = "mkdir"
RENAME = "rename"
UNLINK = "unlink"
LINK = "link"
"""What a call does to storage. ``open`` opens for writing or empties what is there; ``create`` is an open that makes a new file."""

DESCRIBE = "describe"
"""Changes what is told of a file, not what is in it: mode, times, extended attributes. No storage that fails refuses it here."""

_NEEDS_ROOM = frozenset({CREATE, WRITE, COPY, ALLOCATE, MKDIR, LINK})
_MOVES_DATA = frozenset({WRITE, COPY, SYNC, TRUNCATE, ALLOCATE})
EVERYTHING = frozenset({CREATE, OPEN, WRITE, COPY, SYNC, TRUNCATE, ALLOCATE, MKDIR, RENAME, UNLINK, LINK})

REFUSED = {
    # A full disk still deletes, renames, empties and syncs: room was taken when the bytes were written.
    "ENOSPC": _NEEDS_ROOM,
    "EDQUOT": _NEEDS_ROOM,
    # The data path. A failing disk that loses metadata aborts the journal instead, which a job sees as EROFS.
    "EIO": _MOVES_DATA,
    # Another writer has replaced the file: the handle is stale, paths are looked up afresh and still work. A real mount also says it at
    # `close`; a supervisor can refuse a close but then the descriptor stays open, which no storage does, so `close` is left alone.
    "ESTALE": _MOVES_DATA,
    # As ext4 after an error (errors=remount-ro): descriptors that were open for writing are refused too.
    "EROFS": EVERYTHING,
}
"""Which calls fail with which error.

Source: the ERRORS of write(2), open(2), mkdir(2), link(2), fallocate(2), fsync(2); Linux ``fs/ext4/ext4_jbd2.c``
    (``ext4_journal_check_start``) for EROFS; gcsfuse ``docs/semantics.md`` (concurrent writers) for ESTALE.
"""

ERROR_NUMBERS = {name: getattr(errno, name) for name in REFUSED}

WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
"""An open with none of these flags changes nothing, and the kernel's filter lets it pass unseen: reading stays as fast as it was."""

NO_ARGUMENT = -1
"""Stands for a directory descriptor that a call does not have: its path is relative to the working directory."""


class Call:
    """One system call.

    Attributes:
        name: As in its manual page.
        kind: What it does to storage; ``open`` may turn out to be ``create``.
        paths: Pairs of argument numbers (directory descriptor, path) for each path that it changes.
        descriptor: Number of the argument that is the file written to; ``NO_ARGUMENT`` when it takes paths.
        flags: Number of the argument with the open flags; ``NO_ARGUMENT`` when it has none.
        guards: (argument, test, values) that must all hold, else the kernel's filter lets it pass unseen. ``has``: any of these bits;
            ``lacks``: none of them; ``equals``: one of these values.
    """

    __slots__ = ("descriptor", "flags", "guards", "kind", "name", "paths")

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        paths: tuple[tuple[int, int], ...] = (),
        descriptor: int = NO_ARGUMENT,
        flags: int = NO_ARGUMENT,
        guards: tuple[tuple[int, str, tuple[int, ...]], ...] = (),
    ) -> None:
        self.name, self.kind, self.paths, self.descriptor, self.flags = name, kind, paths, descriptor, flags
        if flags != NO_ARGUMENT and name != "openat2":  # openat2 keeps its flags in memory, where no filter can look
            guards = ((flags, "has", (WRITING_FLAGS,)),)
        self.guards = guards


def _on_path(name: str, kind: str, *, argument: int = 0, directory: int = NO_ARGUMENT, flags: int = NO_ARGUMENT) -> Call:
    return Call(name, kind, paths=((directory, argument),), flags=flags)


_CALLS = (
    Call("write", WRITE, descriptor=0),
    Call("pwrite64", WRITE, descriptor=0),
    Call("writev", WRITE, descriptor=0),
    Call("pwritev", WRITE, descriptor=0),
    Call("pwritev2", WRITE, descriptor=0),
    Call("sendfile", COPY, descriptor=0),
    Call("copy_file_range", COPY, descriptor=2),
    Call("splice", COPY, descriptor=2),
    Call("fsync", SYNC, descriptor=0),
    Call("fdatasync", SYNC, descriptor=0),
    Call("sync_file_range", SYNC, descriptor=0),
    Call("syncfs", SYNC, descriptor=0),
    Call("ftruncate", TRUNCATE, descriptor=0),
    Call("fallocate", ALLOCATE, descriptor=0),
    _on_path("truncate", TRUNCATE),
    _on_path("open", OPEN, flags=1),
    _on_path("creat", OPEN),
    _on_path("openat", OPEN, directory=0, argument=1, flags=2),
    _on_path("openat2", OPEN, directory=0, argument=1, flags=2),
    _on_path("mkdir", MKDIR),
    _on_path("mkdirat", MKDIR, directory=0, argument=1),
    _on_path("unlink", UNLINK),
    _on_path("rmdir", UNLINK),
    _on_path("unlinkat", UNLINK, directory=0, argument=1),
    _on_path("link", LINK, argument=1),
    _on_path("linkat", LINK, directory=2, argument=3),
    _on_path("symlink", LINK, argument=1),
    _on_path("symlinkat", LINK, directory=1, argument=2),
    _on_path("mknod", LINK),
    _on_path("mknodat", LINK, directory=0, argument=1),
    Call("rename", RENAME, paths=((NO_ARGUMENT, 0), (NO_ARGUMENT, 1))),
    Call("renameat", RENAME, paths=((0, 1), (2, 3))),
    Call("renameat2", RENAME, paths=((0, 1), (2, 3))),
)

FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20

_ONLY_RECORDED = (
    Call("sync", SYNC),
    Call("mmap", WRITE, descriptor=4, guards=((3, "lacks", (_MAP_ANONYMOUS,)), (3, "has", (_MAP_SHARED,)))),
    Call("io_submit", WRITE),
    Call("ioctl", COPY, descriptor=0, guards=((1, "equals", (FICLONE, FICLONERANGE)),)),
    Call("bind", LINK),
    _on_path("chmod", DESCRIBE),
    Call("fchmod", DESCRIBE, descriptor=0),
    _on_path("fchmodat", DESCRIBE, directory=0, argument=1),
    _on_path("fchmodat2", DESCRIBE, directory=0, argument=1),
    _on_path("utime", DESCRIBE),
    _on_path("utimes", DESCRIBE),
    _on_path("futimesat", DESCRIBE, directory=0, argument=1),
    _on_path("utimensat", DESCRIBE, directory=0, argument=1),
    _on_path("setxattr", DESCRIBE),
    _on_path("lsetxattr", DESCRIBE),
    Call("fsetxattr", DESCRIBE, descriptor=0),
    _on_path("removexattr", DESCRIBE),
    _on_path("lremovexattr", DESCRIBE),
    Call("fremovexattr", DESCRIBE, descriptor=0),
)
"""What a recorder must know of too. ``sync_file_range`` it need not: that leaves out metadata, so nothing is durable after it.

Source: sync_file_range(2), mmap(2), io_submit(2), ioctl_ficlone(2), unix(7), chmod(2), utimensat(2), setxattr(2); Linux
    ``include/uapi/linux/fs.h``.
"""

_X86_64 = {
    "write": 1, "open": 2, "pwrite64": 18, "writev": 20, "sendfile": 40, "fsync": 74, "fdatasync": 75, "truncate": 76,
    "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "mknod": 133,
    "openat": 257, "mkdirat": 258, "mknodat": 259, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266,
    "splice": 275, "sync_file_range": 277, "fallocate": 285, "pwritev": 296, "syncfs": 306, "renameat2": 316,
    "copy_file_range": 326, "pwritev2": 328, "openat2": 437, "sync": 162, "mmap": 9, "ioctl": 16, "io_submit": 209,
    "bind": 49, "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "utime": 132, "utimes": 235, "futimesat": 261,
    "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
}  # fmt: skip
_AARCH64 = {
    "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45, "ftruncate": 46,
    "fallocate": 47, "openat": 56, "write": 64, "writev": 66, "pwrite64": 68, "pwritev": 70, "sendfile": 71, "splice": 76,
    "fsync": 82, "fdatasync": 83, "sync_file_range": 84, "syncfs": 267, "renameat2": 276, "copy_file_range": 285, "pwritev2": 287,
    "openat2": 437, "sync": 81, "mmap": 222, "ioctl": 29, "io_submit": 2,
    "bind": 200, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7,
    "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
}  # fmt: skip


IO_URING_SETUP = 425
"""The same number in every instruction set, as for all calls added since Linux 5.1."""


class Architecture:
    """The numbers of one instruction set.

    Attributes:
        machine: As ``uname`` says it.
        audit: The kernel's identifier, by which the filter knows a call of another instruction set.
        seccomp: Number of the seccomp call itself.
        refused: Calls that no kernel without them would answer, with their names: nothing of what they do would be seen.
        calls: The calls of the table that exist here, by number.
        recorded: Those that a recorder must see.

    Source: Linux ``arch/x86/entry/syscalls/syscall_64.tbl``, ``include/uapi/asm-generic/unistd.h``, ``include/uapi/linux/audit.h``.
    """

    __slots__ = ("audit", "calls", "machine", "recorded", "refused", "seccomp")

    def __init__(self, machine: str, *, audit: int, seccomp: int, open_by_handle: int, numbers: dict[str, int]) -> None:
        self.machine, self.audit, self.seccomp = machine, audit, seccomp
        self.refused = {IO_URING_SETUP: "io_uring", open_by_handle: "open_by_handle_at"}
        self.calls = {numbers[call.name]: call for call in _CALLS if call.name in numbers}
        seen = (*(call for call in _CALLS if call.name != "sync_file_range"), *_ONLY_RECORDED)
        self.recorded = {numbers[call.name]: call for call in seen if call.name in numbers}


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", audit=0xC000003E, seccomp=317, open_by_handle=304, numbers=_X86_64),
    "aarch64": Architecture("aarch64", audit=0xC00000B7, seccomp=277, open_by_handle=265, numbers=_AARCH64),
}


def this_architecture() -> Architecture | None:
    """The table for this machine, or None when there is none."""
    return ARCHITECTURES.get(os.uname().machine)
