"""Reads an operation log (``operations``) strictly: what is enumerated from it must be what was recorded, or nothing.

The data is left where it is. A recorder that was killed leaves a log without its end, or with half a line: that is read up to there, and
``is_whole`` says so. Any other difference to what was recorded is refused: each line ends with a checksum.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import InvalidDocumentError
from harness.explore.operations import (
    DATA_NAME,
    LOG_NAME,
    LOG_SCHEMA,
    AnyEntry,
    Created,
    Ended,
    Extent,
    Header,
    Item,
    Linked,
    MadeDirectory,
    MovedIn,
    MovedOut,
    Opened,
    RemovedDirectory,
    Renamed,
    Symlinked,
    Truncated,
    Unlinked,
    Wrote,
)
from harness.history import open_regular

DEPTH_MAX = 256
"""Directories in a path. No checkpoint is so deep, and the kernel takes no path longer than 4096 bytes at once."""

FILE_BYTES_MAX = 2**63 - 1
"""No file is larger (``off_t``)."""

Decoded = TypeVar("Decoded")

_SEAL = b',"crc32":"%08x"}'
"""End of a line: of all before it, and of the lines before without their seals."""

_SEAL_BYTES = len(_SEAL % 0)

_EDITED = "the log was damaged or edited, or written by another version; record again"

_PATHS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((Opened, MadeDirectory, MovedOut, Symlinked, Unlinked, RemovedDirectory), ("path",)),
    Renamed: ("path", "to"), MovedIn: ("to",), Linked: ("to",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperationLog:
    """A log as read.

    Attributes:
        header: Its first line.
        entries: All others, in order.
        directory: Where it lies.
        is_whole: Whether its last line says that the job has ended.
    """

    header: Header
    entries: tuple[AnyEntry, ...]
    directory: Path
    is_whole: bool

    @property
    def data_path(self) -> Path:
        """The file that extents point into."""
        return self.directory / DATA_NAME


_HEADERS = msgspec.json.Decoder(Header)
_ENTRIES: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)


def read_operation_log(directory: Path) -> OperationLog:
    """Read the log in a directory.

    Raises:
        InvalidDocumentError: When it is not there, cannot be read, or a line of it cannot be what a recorder wrote; names the line.
    """
    path = directory / LOG_NAME
    *lines, torn = _read(path).split(b"\n")
    if not lines:
        raise InvalidDocumentError(document=str(path), field="line 1", problem="it has no header", advice="record again")
    check = _Checker(path, _size(directory / DATA_NAME))
    header = check.header(lines[0])
    entries = tuple(check.entry(line, number) for number, line in enumerate(lines[1:], start=2))
    if torn:
        check.expect_more(len(lines) + 1)
    return OperationLog(header, entries, directory, is_whole=bool(entries) and isinstance(entries[-1], Ended))


def refuse_cut_off(log: OperationLog) -> None:
    """See that a log was recorded to its end: what one promised that was cut off is not known.

    Raises:
        InvalidDocumentError: When it was not.
    """
    if not log.is_whole:
        path, problem = log.directory / LOG_NAME, "it ends before the run did"
        raise InvalidDocumentError(document=str(path), field="", problem=problem, advice="explore again")


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.readall()
    except OSError as error:
        advice = "name the directory of a recording that `harness explore` made"
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # right for a job that wrote nothing; any extent is refused


class _Checker:
    """Decodes lines and refuses what cannot be."""

    def __init__(self, path: Path, data_bytes: int) -> None:
        self._path, self._data_bytes = path, data_bytes
        self._has_ended, self._crc32 = False, 0

    def header(self, line: bytes) -> Header:
        header = self._decode(line, 1, _HEADERS)
        if header.schema != LOG_SCHEMA:
            raise self._error(1, f"schema {header.schema} is not {LOG_SCHEMA}", "read it with the version that wrote it, or record again")
        if not header.root.startswith("/"):
            raise self._error(1, f"the directory {header.root!r} is not absolute")
        self._check_items(header.initial, 1)
        return header

    def entry(self, line: bytes, number: int) -> AnyEntry:
        entry = self._decode(line, number, _ENTRIES)
        self.expect_more(number)
        if entry.index != number - 1:
            raise self._error(number, f"index {entry.index} stands where {number - 1} is due")
        self._has_ended = isinstance(entry, Ended)
        for name in _PATHS.get(type(entry), ()):
            self._check_path(getattr(entry, name), number)
        self._check_values(entry, number)
        return entry

    def expect_more(self, number: int) -> None:
        """Refuse a line after the end."""
        if self._has_ended:
            raise self._error(number, "something follows the end")

    def _check_values(self, entry: AnyEntry, number: int) -> None:
        node = getattr(entry, "node", 0)
        if node < 0 or getattr(entry, "handle", 0) < 0:
            raise self._error(number, "a node or handle is negative")
        if isinstance(entry, Created):
            if entry.path:
                self._check_path(entry.path, number)
        elif isinstance(entry, Wrote):
            self._check_extent(entry.data, number)
            if not 0 <= entry.offset <= FILE_BYTES_MAX - entry.data.size:
                raise self._error(number, f"no file has an offset of {entry.offset}")
        elif isinstance(entry, Truncated) and not 0 <= entry.size <= FILE_BYTES_MAX:
            raise self._error(number, f"no file has a size of {entry.size}")
        elif isinstance(entry, MovedIn):
            self._check_items(entry.items, number)

    def _check_items(self, items: Iterable[Item], number: int) -> None:
        for item in items:
            self._check_path(item.path, number)
            self._check_extent(item.data, number)
            if item.node < 0:
                raise self._error(number, "a node is negative")

    def _check_path(self, path: str, number: int) -> None:
        names = path.split("/")
        if path != "." and any(name in {"", ".", ".."} or "\0" in name for name in names):
            raise self._error(number, f"{path!r} is no path below the checkpoint directory")
        if len(names) > DEPTH_MAX:
            raise self._error(number, f"a path has {len(names)} parts, more than {DEPTH_MAX}", "explore a directory that is less deep")

    def _check_extent(self, extent: Extent, number: int) -> None:
        if extent.start < 0 or extent.size < 0 or extent.start + extent.size > self._data_bytes:
            problem = f"{extent.size} bytes from {extent.start} are not within the {self._data_bytes} of {DATA_NAME}"
            raise self._error(number, problem, "the data was cut or lost; record again")

    def _decode(self, line: bytes, number: int, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
        body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
        self._crc32 = zlib.crc32(body, self._crc32)
        if seal != _SEAL % self._crc32:
            raise self._error(number, "its checksum is not that of what stands there and before")
        try:
            return decoder.decode(body + b"}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._error(number, f"not what the recorder writes: {error}") from error

    def _error(self, number: int, problem: str, advice: str = _EDITED) -> InvalidDocumentError:
        return InvalidDocumentError(document=str(self._path), field=f"line {number}", problem=problem, advice=advice)
