"""The content ledger of a checkpoint directory: path, size and SHA-256 of every file, kept by the harness and not by the job."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.checkpoints.content import HASH_BYTES_MAX, Budget, fingerprint
from harness.checkpoints.tree import shown, walk
from harness.errors import StoreError
from harness.history import read_regular


class ManifestEntry(msgspec.Struct, frozen=True):
    """One file.

    Attributes:
        path: Relative to the directory.
        size_bytes: Its size; 0 for a link.
        sha256: Of its content; after ``partial-`` of a large file's edges, after ``link-`` of where a link points; ``special-`` and a
            letter for what is no file of bytes; empty when it was not read.
    """

    path: str
    size_bytes: int
    sha256: str


def manifest(directory: Path, *, hash_bytes_max: int = HASH_BYTES_MAX) -> tuple[ManifestEntry, ...]:
    """The ledger of a whole directory, sorted by path; of a directory that is gone it is empty.

    Every file is named, however many there are: a name that is left out would pass for a file that is gone. Contents are read up to the
    limit of a look. A file that vanishes meanwhile is left out; one that changes is read once more.
    """
    budget = Budget(hash_bytes_max=hash_bytes_max, entries_left=None)
    unread: list[ManifestEntry] = []

    def note(path: str, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unread.append(ManifestEntry(path=shown(directory / path, directory), size_bytes=0, sha256=""))

    found = sorted(walk(directory, budget, note), key=lambda entry: entry[0])
    entries = (_enter(directory / path, directory, status, budget) for path, status in found if not stat.S_ISDIR(status.st_mode))
    return tuple(sorted([*unread, *filter(None, entries)], key=lambda entry: entry.path))


def write_manifest(path: Path, entries: Iterable[ManifestEntry]) -> None:
    """Write a ledger as JSON lines, so that the file is the old or the new one and never less.

    Raises:
        StoreError: When it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(msgspec.json.Encoder().encode_lines(entries))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(path=path, attempted="write the content ledger", reason=error.strerror or str(error)) from error


def read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    """Read a ledger.

    Raises:
        StoreError: When it cannot be read, or a line of it is no entry; names the line.
    """
    try:
        lines = read_regular(path).splitlines()
    except OSError as error:
        raise StoreError(path=path, attempted="read the content ledger", reason=error.strerror or str(error)) from error
    decoder = msgspec.json.Decoder(ManifestEntry)
    entries: list[ManifestEntry] = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(path=path, attempted="read the content ledger", reason=f"line {number}: {error}") from error
    return tuple(entries)


def _enter(path: Path, directory: Path, status: os.stat_result, budget: Budget) -> ManifestEntry | None:
    """One line of the ledger; None when the file is gone."""
    for _ in range(2):
        try:
            size, content = fingerprint(path, status, budget)
            return ManifestEntry(path=shown(path, directory), size_bytes=size, sha256=content)
        except FileNotFoundError:
            return None
        except OSError:
            continue  # it changed while it was read, or the storage failed: once more
    return ManifestEntry(path=shown(path, directory), size_bytes=status.st_size, sha256="")
