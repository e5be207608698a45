"""A run's part of the storage that outlives nodes: checkpoints, event files, barrier sockets.

The run directory may lie where no node sees it. So its checkpoint directory is moved to the shared storage while the run lasts, a link
stands in its place, and at the end it is moved back: whoever reads the run directory finds the checkpoints there at any time.

The two may lie on different file systems, where a move is a copy, and we may be killed at any moment. So a directory has its own name only
when it is whole: it is copied beside its place and renamed, and only what has another whole copy is ever removed.
"""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, StoreError
from harness.protocol.barrier import SOCKET_PATH_BYTES_MAX

STORAGE_ADVICE = "check the disk and the permissions, or set HARNESS_CLUSTER_SHARED to another place"


class RunStorage:
    """The directories of one run.

    Attributes:
        directory: All of it.
        checkpoints: What is mounted for the job.
        events: One file a pod.
        sockets: One a task.
    """

    def __init__(self, shared: Path, launch: Launch) -> None:
        self.directory = shared / "runs" / launch.run_id
        self._own = launch.checkpoint_dir
        self._is_shared = launch.checkpoint_dir.resolve().is_relative_to(shared.resolve())
        self.checkpoints = launch.checkpoint_dir.resolve() if self._is_shared else self.directory / "checkpoints"
        self.events = self.directory / "events"
        self.sockets = self.directory / "sockets"

    @property
    def moved_from(self) -> str:
        """Where the checkpoints came from and go back to; empty when they stay."""
        return "" if self._is_shared else str(self._own)

    def socket_path(self, task: int) -> Path:
        """Of the barrier of a task."""
        return self.sockets / str(task)

    def prepare(self) -> None:
        """Make the directories and put the link.

        Raises:
            StoreError: When they cannot be made.
            InvalidDocumentError: When the path is too long for sockets.
        """
        longest = len(os.fsencode(self.socket_path(9999)))
        if longest > SOCKET_PATH_BYTES_MAX:
            problem = f"{self.directory} is too long by {longest - SOCKET_PATH_BYTES_MAX} bytes for sockets"
            raise InvalidDocumentError(
                document="the cluster's shared storage", field="path", problem=problem, advice="name a shorter HARNESS_CLUSTER_SHARED"
            )
        try:
            for path in (self.events, self.sockets):
                path.mkdir(parents=True, exist_ok=True)
            if not self._is_shared:
                _move_away(self._own, self.checkpoints)
        except OSError as error:
            raise StoreError(path=self.directory, attempted="prepare", reason=_words(error), advice=STORAGE_ADVICE) from error


def move_back(checkpoints: Path, moved_from: str) -> bool:
    """Put checkpoints back in the place of their link; false when there is nothing to do. Goes on where one before it was killed.

    Raises:
        OSError: When they cannot be moved, or something else lies in that place; they stay where they are.
    """
    if not moved_from:
        return False
    own = Path(moved_from)
    part, aside = _beside(own, PART), _beside(own, ASIDE)
    if not own.parent.is_dir():
        return False  # the caller has seen that nothing is lost by it
    if checkpoints.exists() and not _has_copy(checkpoints):
        _refuse_another(own, checkpoints)
        _remove(part)
        _move(checkpoints, part)
    if part.exists():  # whole: a copy is known for one, and without the source it came by a rename
        own.unlink(missing_ok=True)
        part.rename(own)
    elif aside.exists() and not os.path.lexists(own):  # killed before they had come to the shared storage
        aside.rename(own)
    else:
        return False
    _remove(aside)
    return True


def give_back(directory: str, moved_from: str) -> list[str]:
    """Move checkpoints back and remove a run's directory; says what was done. Harmless twice.

    Raises:
        StoreError: When they cannot be moved, or something cannot be removed; what is left stays where it is.
    """
    checkpoints = Path(directory) / "checkpoints"
    try:
        _refuse_lost_place(checkpoints, moved_from)
        is_moved = move_back(checkpoints, moved_from)
        _remove(checkpoints)  # before the word that there is a copy of them
        _remove(Path(directory))
    except OSError as error:
        advice = "check the disk and the permissions, then run `harness clean`"
        raise StoreError(path=Path(directory), attempted="give back", reason=_words(error), advice=advice) from error
    return [f"moved checkpoints back to {moved_from}"] if is_moved else []


def _refuse_lost_place(checkpoints: Path, moved_from: str) -> None:
    """See that there is a run directory to which checkpoints can go, where there are any: a run that was moved has a link to them still.

    Raises:
        StoreError: When there is none.
    """
    place = Path(moved_from).parent
    if moved_from and not place.is_dir() and checkpoints.is_dir() and any(checkpoints.iterdir()):
        reason = f"the run directory {place} is gone, and its checkpoints are here"
        advice = f"move them where they are wanted, or remove {checkpoints}; then run `harness clean`"
        raise StoreError(path=checkpoints.parent, attempted="give back", reason=reason, advice=advice)


PART, ASIDE, COPIED = "part", "moved", "copied-back"
"""Endings of a directory that is not whole yet, and of one that is not wanted any more; the file that says that ``PART`` is whole."""


def _move_away(own: Path, checkpoints: Path) -> None:
    """Move a directory and put the link; its own name is free first, so that it never stands for half of it."""
    aside = _beside(own, ASIDE)
    own.rename(aside)
    try:
        aside.rename(checkpoints)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = _beside(checkpoints, PART)
        _copy(aside, part)
        part.rename(checkpoints)
    own.symlink_to(checkpoints)
    _remove(aside)


def _move(checkpoints: Path, part: Path) -> None:
    """Rename, or copy and say that the copy is whole."""
    try:
        checkpoints.rename(part)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(checkpoints, part)
        word = checkpoints.with_name(COPIED)
        word.touch()
        _sync(word)
        _sync(word.parent)


def _has_copy(checkpoints: Path) -> bool:
    return checkpoints.with_name(COPIED).exists()


def _refuse_another(own: Path, checkpoints: Path) -> None:
    """See that nothing but our link lies where checkpoints are to go.

    Raises:
        FileExistsError: When something does.
    """
    if os.path.lexists(own) and not (own.is_symlink() and own.readlink() == checkpoints):
        reason = f"is not the link to {checkpoints}, where the checkpoints of the run still are; move one of them away"
        raise FileExistsError(errno.EEXIST, reason, str(own))


def _copy(source: Path, part: Path) -> None:
    """Copy a directory and make the copy durable; half a copy does not stay on a disk that it has filled.

    Raises:
        OSError: When it cannot be copied, with the first file that could not.
    """
    try:
        shutil.copytree(source, part, symlinks=True)
    except OSError as error:
        with suppress(OSError):
            _remove(part)
        failed = error.args[0] if isinstance(error, shutil.Error) else []
        if not isinstance(failed, list) or not failed:
            raise
        first, _, reason = failed[0]
        raise OSError(errno.EIO, f"{len(failed)} of its files could not be copied: {reason}", str(first)) from error
    for parent, _, names in os.walk(part):
        for path in (Path(parent), *(Path(parent) / name for name in names)):
            if not path.is_symlink():
                _sync(path)
    _sync(part.parent)


def _words(error: OSError) -> str:
    """An error in words, with the file that it is about."""
    return f"{error.strerror} ({error.filename})" if error.strerror and error.filename else str(error)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")
