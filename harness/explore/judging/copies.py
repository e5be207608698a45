"""Trees on disk: a copy of what is there, and what is there told as pieces."""

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness.explore.recipe import Piece
from harness.supervision.recorder.operation_log import as_text


def copy_tree(source: Path, target: Path) -> None:
    """Copy all that can be copied to where nothing is; sockets and pipes are left out.

    Raises:
        OSError: When something could not be copied.
    """
    shutil.copytree(source, target, symlinks=True, ignore=_special_names)


def remove_tree(path: Path) -> None:
    """Remove a tree, also one whose directories a job has closed; nothing happens where there is none.

    Raises:
        OSError: When something withstands.
    """
    if not os.path.lexists(path):
        return
    with contextlib.suppress(OSError):
        shutil.rmtree(path)
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)
    shutil.rmtree(path)


def remove_what_can_be(path: Path) -> None:
    """Remove a tree, however deep it is; what withstands stays."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
        return
    subprocess.run(["rm", "-rf", "--", path], check=False, stderr=subprocess.DEVNULL)


def describe(directory: Path) -> tuple[Piece, ...]:
    """All that is below a directory, sorted by path, as the pieces of a state are; of what is no file, directory or link that it is there.

    What cannot be read, or goes away meanwhile, has the content ``unreadable``.
    """
    return tuple(sorted(_pieces_below(directory, directory), key=lambda piece: piece.path))


def digest_of_file(path: Path) -> str:
    """SHA-256 of a regular file; empty where there is none that can be read."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return ""


def _pieces_below(directory: Path, root: Path) -> Iterator[Piece]:
    try:
        with os.scandir(directory) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        name = as_text(os.fsencode(path.relative_to(root)))
        if entry.is_symlink():
            yield Piece(path=name, kind="link", content=_target_of(path))
        elif entry.is_dir(follow_symlinks=False):
            yield Piece(path=name, kind="directory")
            yield from _pieces_below(path, root)
        else:
            yield Piece(path=name, kind="file", content=digest_of_file(path) or "unreadable")


def _target_of(path: Path) -> str:
    try:
        return as_text(os.fsencode(path.readlink()))
    except OSError:
        return "unreadable"


def _special_names(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not _can_be_copied(Path(folder, name))]


def _can_be_copied(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
