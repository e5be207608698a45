"""Contents of states on disk, each once: what executors make copies from.

A content is a file named by its SHA-256, in one flat directory. A state that recovery is tried on gets copies, since recovery may write in
place; one that is only looked at gets hard links.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.errors import StoreError
from harness.explore.content import Content
from harness.explore.data_file import DataFile
from harness.explore.operations import real_path
from harness.explore.recipe import Piece
from harness.explore.states import File, Tree

STATE_BYTES_MAX = 16 << 30
"""A larger state is refused: a job in a few seconds writes no more, and each state that is judged is a copy."""

_SPAN_NS = 3600 * 10**9

_NO_ROOM = "free some space, or explore with fewer jobs or a smaller model"


class BlobStore:
    """Contents in a directory, which is made when it is not there.

    Raises:
        StoreError: When something cannot be written or read, for example on a full disk.
    """

    def __init__(self, directory: Path, *, state_bytes_max: int = STATE_BYTES_MAX) -> None:
        self.directory = directory
        self._state_bytes_max = state_bytes_max
        self._kept: set[str] = set()
        self._checked: set[str] = set()
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _error(directory, "make the store of contents", error) from error

    def keep(self, content: Content, data: DataFile) -> str:
        """Keep a content; returns its SHA-256."""
        digest = data.digest(content)
        if digest not in self._kept and not (self.directory / digest).exists():
            self._write(digest, content, data)
        self._kept.add(digest)
        return digest

    def keep_all(self, tree: Tree, data: DataFile) -> None:
        """Keep the content of every file of a tree."""
        for thing in tree.values():
            if isinstance(thing, File):
                self.keep(thing.content, data)

    def materialise(
        self,
        pieces: Sequence[Piece],
        directory: Path,
        *,
        changed: Sequence[int] = (),
        links: Sequence[Sequence[int]] = (),
        links_files: bool = False,
    ) -> None:
        """Make the tree of a state in a directory that is not there yet; what was made of it is removed when it fails.

        Args:
            pieces: All that is in it, parents first.
            directory: Where.
            changed: Indexes of pieces in the order in which they get their times of modification, the last one now.
            links: Indexes of pieces that are names of one file, those of each.
            links_files: Whether files are hard links to the contents: only for who never writes in place. They are not writable, which
                stops everybody but root.
        """
        self._check(pieces, directory)
        if not links_files:
            self._verify(pieces)
        try:
            directory.mkdir(parents=True)
        except OSError as error:
            raise _error(directory, "make the state in", error) from error
        try:
            for piece in pieces:
                self._make(piece, _path_of(piece, directory), links_files=links_files)
            for first, *others in links:
                for other in others:
                    _link(_path_of(pieces[first], directory), _path_of(pieces[other], directory))
            if not links_files:
                _set_times([_path_of(pieces[index], directory) for index in changed], newest_ns=directory.stat().st_mtime_ns)
        except OSError as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise _error(directory, "make the state in", error) from error

    def _check(self, pieces: Sequence[Piece], directory: Path) -> None:
        """Refuse what is too large, and what would be made elsewhere: pieces may have travelled."""
        directories = {""}
        for piece in pieces:
            parent, _, name = piece.path.rpartition("/")
            if parent not in directories or piece.path.startswith("/") or name in {"", ".", ".."} or "\0" in piece.path:
                reason = f"the piece {piece.path!r} is in no directory of the state"
                raise StoreError(path=directory, attempted="make the state in", reason=reason, advice="record again")
            if piece.kind == "directory":
                directories.add(piece.path)
        size = sum(self._size(piece.content) for piece in pieces if piece.kind == "file")
        if size > self._state_bytes_max:
            reason = f"the state has {size} bytes, more than the {self._state_bytes_max} that are allowed"
            raise StoreError(path=directory, attempted="make the state in", reason=reason, advice="explore a smaller run of the job")

    def _size(self, digest: str) -> int:
        path = self.directory / digest
        try:
            return path.stat().st_size
        except OSError as error:
            raise _error(path, "read the content", error) from error

    def _make(self, piece: Piece, path: bytes, *, links_files: bool) -> None:
        if piece.kind == "directory":
            os.mkdir(path)  # noqa: PTH102 - a name that is no text
        elif piece.kind == "link":
            os.symlink(real_path(piece.content), path)  # noqa: PTH211
        elif links_files:
            os.link(self.directory / piece.content, path)
        else:
            shutil.copyfile(self.directory / piece.content, path)

    def _verify(self, pieces: Sequence[Piece]) -> None:
        """See that each content is what its name says, once."""
        for digest in {piece.content for piece in pieces if piece.kind == "file"} - self._checked:
            path = self.directory / digest
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise _error(path, "read the content", error) from error
            if found != digest:
                reason = "it is not what was recorded: its SHA-256 is another"
                raise StoreError(path=path, attempted="copy the content", reason=reason, advice="explore again")
            self._checked.add(digest)

    def _write(self, digest: str, content: Content, data: DataFile) -> None:
        """Under another name first: a content that is there is whole."""
        path = self.directory / f".{digest}.{secrets.token_hex(4)}"
        try:
            with path.open("xb") as file:
                file.writelines(data.chunks(content))
                os.fchmod(file.fileno(), 0o444)
            path.rename(self.directory / digest)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise _error(path, "write the content", error) from error


def _path_of(piece: Piece, directory: Path) -> bytes:
    return os.fsencode(directory) + b"/" + real_path(piece.path)


def _link(path: bytes, other: bytes) -> None:
    """Make a copy of a file another name of it."""
    os.unlink(other)  # noqa: PTH108 - a name that is no text
    os.link(path, other)


def _set_times(paths: Sequence[bytes], *, newest_ns: int) -> None:
    """A second lies between two of them, so that a job which reads whole seconds sees the order too; all lie within an hour."""
    apart_ns = min(10**9, _SPAN_NS // max(1, len(paths)))
    for number, path in enumerate(reversed(paths)):
        os.utime(path, ns=(newest_ns - number * apart_ns,) * 2, follow_symlinks=False)


def _error(path: Path, attempted: str, error: OSError) -> StoreError:
    reason = error.strerror or str(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreError(path=path, attempted=attempted, reason=reason, advice=_NO_ROOM)
    return StoreError(path=path, attempted=attempted, reason=reason, advice="check the directory and its permissions")
