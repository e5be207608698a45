"""The one place where a job saves that knows no other: ours while it is explored, and empty again afterwards."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import BrokenHarnessError, UsageError
from harness.explore.judging.copies import remove_tree

NAME_DIGITS = 16
"""Of a lock's file: a hash of the directory, as many as no two directories share."""


@contextlib.contextmanager
def claimed(checkpoints: str, *, makes_parent: bool = False, waits: bool = False) -> Iterator[None]:
    """Have a directory to ourselves; nothing happens for an empty path.

    Args:
        checkpoints: The directory.
        makes_parent: Whether the directory above it is made, and removed again: a scratch directory that has gone with its run.
        waits: Whether others are waited for who have it.

    Raises:
        UsageError: When it is not free, or must not be taken away and made again.
        BrokenHarnessError: When it could not be emptied.
    """
    if not checkpoints:
        yield
        return
    path = Path(checkpoints)
    with _lock(path, waits=waits), _parent_of(path) if makes_parent else contextlib.nullcontext():
        _require_free(path)
        was_there = path.exists()
        try:
            yield
        finally:
            try:
                remove_tree(path)
                if was_there:
                    path.mkdir()
            except OSError as error:
                raise BrokenHarnessError(f"cannot empty {path}: {error.strerror or error}; do that before it is explored again") from error


def _require_free(path: Path) -> None:
    advice = "name a directory that is not there or is empty: its content is replaced for each state"
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise UsageError(f"--checkpoint-dir {path} is no directory; {advice}")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"--checkpoint-dir {path} is not empty; {advice}")
    if os.path.ismount(path):
        raise UsageError(f"--checkpoint-dir {path} is a mount, which cannot be made anew; name a directory below it")
    if Path.cwd().is_relative_to(path):
        raise UsageError(f"--checkpoint-dir {path} is where you are; call it from another directory")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--checkpoint-dir {path} cannot be made: {path.parent} is not there, or not writable")
    if not path.exists():
        _try_to_make(path)


def _try_to_make(path: Path) -> None:
    """Some file systems take no directories, whatever their permissions say: ``/proc`` is one."""
    try:
        path.mkdir()
        path.rmdir()
    except OSError as error:
        raise UsageError(f"--checkpoint-dir {path} cannot be made: {error.strerror or error}; name another directory") from error


@contextlib.contextmanager
def _parent_of(path: Path) -> Iterator[None]:
    """Make the directory above, when it is not there; what was made is removed."""
    try:
        path.parent.mkdir(mode=0o700)
    except OSError:  # it is there, or cannot be made, which is told of the directory itself
        yield
        return
    try:
        yield
    finally:
        remove_tree(path.parent)


@contextlib.contextmanager
def _lock(path: Path, *, waits: bool) -> Iterator[None]:
    """Keep other explorations of this user off; freed by the system when we die.

    Who has the lock removes its file. Who has opened that file before, and gets the lock of what has no name any more, begins anew.
    """
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:NAME_DIGITS]
    file = Path(tempfile.gettempdir(), f"harness-{os.getuid()}-{name}.lock")
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            except OSError as error:
                raise UsageError(f"--checkpoint-dir {path} is being explored by another harness; wait until it is done") from error
            if not _is_at(file, descriptor):
                continue
            try:
                yield
            finally:
                file.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def remove_free_locks() -> int:
    """Remove the files of locks that nobody has: explorations that were killed have left them; returns how many."""
    removed = 0
    for file in Path(tempfile.gettempdir()).glob(f"harness-{os.getuid()}-{'[0-9a-f]' * NAME_DIGITS}.lock"):
        with contextlib.suppress(OSError):  # it goes away just now, or is somebody else's
            descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(file, descriptor):
                    file.unlink()
                    removed += 1
            finally:
                os.close(descriptor)
    return removed


def _is_at(file: Path, descriptor: int) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
