"""The files below a path, as one look saw them. A symbolic link counts by where it points."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.checkpoints.content import PARTIAL, Budget, fingerprint


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One file: where it is below the top, its size, and its ``content.fingerprint``."""

    path: str
    size_bytes: int
    fingerprint: str

    @property
    def is_regular(self) -> bool:
        """Whether it has bytes of its own, which damage could change."""
        return not self.fingerprint.startswith(("link-", "special-"))


@dataclass(frozen=True)
class Tree:
    """The files and directories below a path, sorted by name; paths are relative, that of a single file is ``.``."""

    files: tuple[FileSeen, ...] = ()
    directories: tuple[str, ...] = ()

    @cached_property
    def by_path(self) -> dict[str, FileSeen]:
        """The files by their relative paths."""
        return {file.path: file for file in self.files}

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size_bytes for file in self.files)

    @cached_property
    def digest(self) -> str:
        """Fingerprint of names, sizes and contents; ``partial-`` where it does not cover every byte, empty where a file was not read."""
        if not all(file.fingerprint for file in self.files):
            return ""
        hasher = hashlib.sha256()
        for file in self.files:
            hasher.update(os.fsencode(file.path) + f"\0{file.size_bytes}\0{file.fingerprint}\0".encode())
        is_partial = any(file.fingerprint.startswith(PARTIAL) for file in self.files)
        return (PARTIAL if is_partial else "") + hasher.hexdigest()


def read_tree(top: Path, budget: Budget) -> Tree:
    """Read everything at and below ``top``.

    Raises:
        OSError: When something vanished, changed or failed while it was read, or ``top`` is a symbolic link.
        LimitReachedError: When there are too many files.
    """
    status = top.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, f"a symbolic link to {_text(str(top.readlink()))}, which is not followed", str(top))
    if not stat.S_ISDIR(status.st_mode):
        budget.spend_entry()
        return Tree(files=(_see(top, ".", status, budget),))
    entries = sorted(walk(top, budget), key=lambda entry: os.fsencode(entry[0]))
    directories = tuple(relative for relative, status in entries if stat.S_ISDIR(status.st_mode))
    files = tuple(_see(top / relative, relative, status, budget) for relative, status in entries if not stat.S_ISDIR(status.st_mode))
    return Tree(files=files, directories=directories)


def walk(top: Path, budget: Budget, on_error: Callable[[str, OSError], None] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Go through all files and directories below ``top``, in no order, without following links.

    Args:
        top: Where to begin.
        budget: What may be spent.
        on_error: Told of a directory that cannot be listed, by its path; with it, a file that vanished meanwhile is passed over.

    Raises:
        OSError: Without ``on_error``, when something vanished or cannot be listed.
        LimitReachedError: When there are too many entries.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(os.path.join(top, prefix)) as entries:  # noqa: PTH118 - half the time of a walk with Path objects
                for entry in entries:
                    budget.spend_entry()
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        if on_error is None:
                            raise
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(f"{prefix}{entry.name}/")
                    yield prefix + entry.name, status
        except OSError as error:
            if on_error is None:
                raise
            on_error(prefix, error)


def shown(path: Path, root: Path) -> str:
    """``path`` relative to ``root`` as text that any document can hold; bytes that are no UTF-8 become escapes."""
    return _text(path.relative_to(root).as_posix())


def _text(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def _see(path: Path, relative: str, status: os.stat_result, budget: Budget) -> FileSeen:
    size, content = fingerprint(path, status, budget)
    return FileSeen(path=relative, size_bytes=size, fingerprint=content)
