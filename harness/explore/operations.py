"""The operation log: what one recorded run did to its checkpoint directory, in the order in which storage saw it, with the data.

On disk it is a directory: ``operations.jsonl``, a header and one entry a line, written by ``supervision`` without this module; and
``data``, the bytes that were written, one after the other, which entries point into. The last field of each line, ``crc32``, is of all
that stands before it and of the lines before, without theirs: what was damaged or edited is refused.

Paths are relative to the checkpoint directory, with ``/``, and ``.`` for the directory itself. A byte of a name that is no UTF-8 is a
character of a private plane, since JSON has no word for it: ``real_path`` gives the name back where files are made.
Files and directories are named by ``node``, a number that stays when they are renamed and is never used again; 0 is the checkpoint
directory itself. A ``handle`` is one opening of a file for writing; a descriptor that another process inherits and writes through is a
handle of its own.
"""

from typing import Literal

import msgspec

LOG_NAME, DATA_NAME = "operations.jsonl", "data"

LOG_SCHEMA = 1

UNDECODABLE = 0x10FF00
"""Code point of the byte 0 that is no UTF-8: the last private plane of Unicode, where no name has a character by accident."""


def real_path(path: str) -> bytes:
    """A path, or the target of a link, of the log as the kernel knows it."""
    return path.translate({UNDECODABLE + byte: 0xDC00 + byte for byte in range(0x80, 0x100)}).encode(errors="surrogateescape")


class Extent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes of the file ``data``: from ``start``, ``size`` of them."""

    start: int
    size: int


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A file, directory or symbolic link that was there when recording began, or that came from outside of the directory.

    Attributes:
        path: Relative to the checkpoint directory.
        node: Its number.
        kind: What it is.
        data: The content of a file.
        target: Where a symbolic link leads.
        unsynced: Of a file that comes from outside: whether it was written there and not synced since, so that a crash may take its bytes.
        older_than: The node that was changed next after it was; 0: it was changed last, or at the same time as another one.
    """

    path: str
    node: int
    kind: Literal["file", "directory", "link"]
    data: Extent = Extent(0, 0)
    target: str = ""
    unsynced: bool = False
    older_than: int = 0


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line.

    Attributes:
        root: The checkpoint directory, a real path.
        command: What was run.
        started_s: The monotonic clock when it began; all ``t_s`` are on the same clock.
        initial: What was there already, parents first; all of it counts as durable.
    """

    schema: int
    root: str
    command: tuple[str, ...]
    started_s: float
    initial: tuple[Item, ...] = ()


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    """One line. An operation has succeeded and was complete before the next one began; those that failed are not here.

    Attributes:
        index: From 1, without gaps.
        t_s: When it was complete, on the monotonic clock.
        process: Process id of the caller.
        thread: Thread id of the caller.
    """

    index: int
    t_s: float
    process: int = 0
    thread: int = 0


class Created(Entry, frozen=True, kw_only=True, tag="create"):
    """A file was made, empty, and opened for writing; ``handle`` 0: made without being opened for writing; ``reads``: for reading, too.

    ``path`` empty: it has no name (``O_TMPFILE``) until it is linked.
    """

    path: str
    node: int
    handle: int = 0
    reads: bool = False


class Opened(Entry, frozen=True, kw_only=True, tag="open"):
    """A file that was there was opened for writing; ``path`` is its last one when it has none now; ``reads``: for reading, too."""

    path: str
    node: int
    handle: int
    truncates: bool = False
    reads: bool = False


class Wrote(Entry, frozen=True, kw_only=True, tag="write"):
    """Bytes went to ``offset`` of a file; ``call`` is the system call (``write``, ``sendfile``, ...)."""

    node: int
    handle: int
    offset: int
    data: Extent
    call: str = "write"


class Truncated(Entry, frozen=True, kw_only=True, tag="truncate"):
    """A file has a new size; what is new reads as zeros. ``handle`` 0: by its path."""

    node: int
    size: int
    handle: int = 0


class Synced(Entry, frozen=True, kw_only=True, tag="sync"):
    """A file or directory is durable: ``file`` with its metadata, ``data`` without (``fdatasync``), ``all``: everything (``sync``)."""

    node: int
    scope: Literal["file", "data", "all"] = "file"


class Closed(Entry, frozen=True, kw_only=True, tag="close"):
    """A handle is no longer open in the process that held it: closed, or the process has ended or executed another program."""

    node: int
    handle: int


class MadeDirectory(Entry, frozen=True, kw_only=True, tag="mkdir"):
    """A directory was made."""

    path: str
    node: int


class Renamed(Entry, frozen=True, kw_only=True, tag="rename"):
    """``path`` is now ``to``, in whose place nothing or something else was; ``exchanges``: that one is now ``path``."""

    path: str
    to: str
    node: int
    exchanges: bool = False


class MovedIn(Entry, frozen=True, kw_only=True, tag="move-in"):
    """Renamed or linked from outside of the directory to ``to``; ``items`` is all that came, parents first."""

    to: str
    items: tuple[Item, ...]


class MovedOut(Entry, frozen=True, kw_only=True, tag="move-out"):
    """Renamed to somewhere outside of the directory, with all that was below it."""

    path: str
    node: int


class Linked(Entry, frozen=True, kw_only=True, tag="link"):
    """``to`` is one more name of the file ``node``."""

    to: str
    node: int


class Symlinked(Entry, frozen=True, kw_only=True, tag="symlink"):
    """A symbolic link was made."""

    path: str
    node: int
    target: str


class Unlinked(Entry, frozen=True, kw_only=True, tag="unlink"):
    """A name of a file or of a symbolic link was removed."""

    path: str
    node: int


class RemovedDirectory(Entry, frozen=True, kw_only=True, tag="rmdir"):
    """An empty directory was removed."""

    path: str
    node: int


class Said(Entry, frozen=True, kw_only=True, tag="event"):
    """A line that the job wrote to ``HARNESS_EVENTS`` (workloads/protocol.md): a marker, an announced or an acknowledged save."""

    line: str


class Printed(Entry, frozen=True, kw_only=True, tag="print"):
    """Text that a process wrote to the standard output or error of the job: what an operator has been told."""

    stream: Literal["stdout", "stderr"]
    text: str


class Blind(Entry, frozen=True, kw_only=True, tag="blind"):
    """Something that could not be seen, so that what follows from the log is not the whole truth: the result is *unknown*.

    ``mapped``: a writable shared mapping of a file of the directory; ``aio``: Linux AIO; ``foreign``: the directory is not what the
    operations make of it, so somebody else writes; ``user``: a process of another user; ``call``: what the log has no word for; ``many``:
    files are written elsewhere, too many to be noted.
    """

    what: Literal["mapped", "aio", "foreign", "user", "call", "many"]
    detail: str
    path: str = ""


class Elsewhere(Entry, frozen=True, kw_only=True, tag="elsewhere"):
    """A file outside of the directory that was opened for writing, or renamed, and was there at the end; ``at``: after which entries.

    ``quiet``: it was only appended to, or looks like a cache.
    """

    path: str
    at: tuple[int, ...]
    quiet: bool = False


class Refused(Entry, frozen=True, kw_only=True, tag="refused"):
    """What could not be followed was refused, as by a kernel without it: a job that needs it does not come through."""

    call: str


class Ended(Entry, frozen=True, kw_only=True, tag="end"):
    """The last line: the job has ended, with an exit code or by a signal; without this line the recording was cut short."""

    exit_code: int | None = None
    signal: int | None = None


Change = (
    Created | Opened | Wrote | Truncated | Synced | Closed | MadeDirectory | Renamed | MovedIn | MovedOut | Linked | Symlinked | Unlinked
    | RemovedDirectory
)  # fmt: skip
"""What can alter a crash state."""

AnyEntry = Change | Said | Printed | Blind | Elsewhere | Refused | Ended
