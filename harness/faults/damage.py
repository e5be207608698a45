"""Damage to checkpoints at rest. The original is kept first; evidence is read back from storage at once, before the job can write again."""

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from harness import checkpoints
from harness.capabilities import CheckpointStorage
from harness.faults.active import OneWay, Scene
from harness.history import Event
from harness.scenario.faults import AddEmptyStep, DeletePath, FlipByte, PathClass, TearRename, TruncateFile
from harness.undo import KeptOriginal, Undo


class ActiveDamage(OneWay):
    """Something of the newest committed checkpoint is changed or removed by ``act``, which returns what it then read back."""

    lasting = "the damage stays: the directory is the run's own, and the original was kept"

    def __init__(self, scene: Scene, path_class: PathClass, act: Callable[[Path], str]) -> None:
        assert isinstance(scene.target, CheckpointStorage)
        self._scene, self._path_class, self._act = scene, path_class, act
        self._directory = scene.target.checkpoint_path(scene.victim.task)
        paths = checkpoints.paths_of(self._directory, scene.layout, path_class, task=scene.victim.task)
        self._path = paths[0] if paths else None
        self._evidence = ""

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        path = self._found()
        return KeptOriginal(path=str(path), copy=str(self._copy_of(path)))

    def inject(self) -> str:
        """See ``ActiveFault``."""
        path = self._found()
        try:
            keep(path, self._copy_of(path))
            self._evidence = self._act(path)
        except (LookupError, OSError) as error:
            raise self._scene.failed(error) from error
        return f"{self._path_class}: {path.relative_to(self._directory)}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence

    def _found(self) -> Path:
        """What is to be damaged.

        Raises:
            InjectionError: When there was none.
        """
        if self._path is None:
            what = "a committed checkpoint" if self._path_class == "step" else f"a {self._path_class} file of a committed checkpoint"
            raise self._scene.failed(f"looked for {what} (layout {self._scene.layout}) in {self._directory} and found none")
        return self._path

    def _copy_of(self, path: Path) -> Path:
        victim = self._scene.victim
        return self._scene.kept_dir / f"{self._scene.injection}-task-{victim.task}-attempt-{victim.attempt}" / path.name


class ActiveAddition(OneWay):
    """Something appears beside the checkpoints: made by ``act`` from the directory, which returns what it then read back."""

    lasting = "what was added stays: the directory is the run's own"

    def __init__(self, scene: Scene, act: Callable[[Scene, Path], str]) -> None:
        assert isinstance(scene.target, CheckpointStorage)
        self._scene, self._act = scene, act
        self._directory = scene.target.checkpoint_path(scene.victim.task)
        self._evidence = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._evidence = self._act(self._scene, self._directory)
        except (LookupError, OSError) as error:
            raise self._scene.failed(error) from error
        return f"added to {self._directory}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence


def flip_byte(path: Path, fault: FlipByte) -> str:
    """Flip the lowest bit of one byte.

    Raises:
        LookupError: When there is no byte to flip.
        OSError: When the file cannot be changed.
    """
    size = _size_of(path)
    if size == 0:
        raise LookupError(f"{path} is empty: no byte to flip")
    position = int(size * fault.at_fraction)
    before = digest_of(path)
    with path.open("r+b") as file:
        file.seek(position)
        old = file.read(1)[0]
        file.seek(position)
        file.write(bytes((old ^ 1,)))
    after = digest_of(path)
    if after == before:
        raise LookupError(f"{path} still has digest {before} after byte {position} was written")
    return f"{path.name}: byte {position} of {size} was 0x{old:02x}, is 0x{old ^ 1:02x}; digest was {before}, is {after}"


def truncate_file(path: Path, fault: TruncateFile) -> str:
    """Cut a file off.

    Raises:
        LookupError: When it is too short to become shorter.
        OSError: When the file cannot be changed.
    """
    size = _size_of(path)
    keeps = int(size * fault.keep_fraction)
    if keeps == size:
        raise LookupError(f"{path} has {size} bytes already: it cannot become shorter")
    os.truncate(path, keeps)
    return f"{path.name}: {size} bytes before, {path.stat().st_size} after"


def delete_path(path: Path, fault: DeletePath) -> str:
    """Remove a file, or a directory with all that is in it.

    Raises:
        LookupError: When it is there still.
        OSError: When it cannot be removed.
    """
    is_directory = path.is_dir() and not path.is_symlink()
    if is_directory:
        shutil.rmtree(path)
    else:
        path.unlink()
    if os.path.lexists(path):
        raise LookupError(f"{path} is there still after it was removed")
    return f"{path.name}: {'directory' if is_directory else 'file'} ({fault.path_class}) is gone"


def tear_rename(scene: Scene, path: Path, fault: TearRename) -> str:
    """Take the last files of a checkpoint, in listing order, back to its temporary name, as if its rename had stopped before them.

    Raises:
        LookupError: When it is no directory of at least two files, so that nothing can be between, or its temporary name is taken.
        OSError: When a file cannot be moved.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() and not path.is_symlink() else []
    if len(files) < 2:
        raise LookupError(f"{path} is not a directory of two files or more: its rename cannot stop half way")
    step = checkpoints.newest_committed(path.parent, scene.layout, task=scene.victim.task)
    temporary = checkpoints.temporary_path(path.parent, scene.layout, step.step if step else -1, task=scene.victim.task)
    if os.path.lexists(temporary):
        raise LookupError(f"{temporary} is there already")
    stays = int(len(files) * fault.moved_fraction)
    for file in files[stays:]:
        goes = temporary / file.relative_to(path)
        goes.parent.mkdir(parents=True, exist_ok=True)
        file.rename(goes)
    left = sum(file.is_file() for file in path.rglob("*"))
    return f"{path.name}: {left} of {len(files)} files under the final name, {len(files) - left} under {temporary.name}"


def add_empty_step(scene: Scene, directory: Path, fault: AddEmptyStep) -> str:
    """Make an empty directory under the final name of a later step.

    Raises:
        LookupError: When the layout has no directories for steps, or none can be named.
        OSError: When it cannot be made.
    """
    if scene.layout == "text-file":
        raise LookupError(f"layout {scene.layout} keeps one file for all steps: it has no directory for a step")
    newest = checkpoints.newest_committed(directory, scene.layout, task=scene.victim.task)
    if newest is not None and newest.step < 0:
        raise LookupError(f"the newest checkpoint {newest.path} says no step, so a later one cannot be named")
    step = (newest.step if newest else 0) + fault.steps_ahead
    path = checkpoints.step_path(directory, scene.layout, step, task=scene.victim.task)
    path.mkdir()
    return f"{path.relative_to(directory)}: a directory with {len(list(path.iterdir()))} entries"


def add_stale_temporary(scene: Scene, directory: Path) -> str:
    """Put the first half of each file of the newest checkpoint under the temporary name of the step that will be saved next.

    The next step is as far from the newest as that is from the one before it, or from 0.

    Raises:
        LookupError: When there is no checkpoint to take half of, or such a temporary is there already.
        OSError: When it cannot be written.
    """
    task = scene.victim.task
    sources = checkpoints.paths_of(directory, scene.layout, "step", task=task)
    seen = checkpoints.survey(directory, scene.layout, task=task).checkpoints
    steps = sorted({checkpoint.step for checkpoint in seen if checkpoint.state == "committed" and checkpoint.step >= 0})
    if not sources or not steps:
        raise LookupError(f"looked for a committed checkpoint with a step (layout {scene.layout}) in {directory} and found none")
    next_step = 2 * steps[-1] - (steps[-2] if len(steps) > 1 else 0)
    path = checkpoints.temporary_path(directory, scene.layout, next_step, task=task)
    if os.path.lexists(path):
        raise LookupError(f"{path} is there already")
    keep(sources[0], path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    for file in files:
        os.truncate(file, file.stat().st_size // 2)
    return f"{path.relative_to(directory)}: {len(files)} files, {sum(file.stat().st_size for file in files)} bytes"


def keep(path: Path, copy: Path) -> None:
    """Copy a file, a link as such, or a directory to where nothing is yet.

    Raises:
        OSError: When it cannot be copied.
    """
    copy.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, copy, symlinks=True)
    else:
        shutil.copy2(path, copy, follow_symlinks=False)


def digest_of(path: Path) -> str:
    """The first 64 bits of a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _size_of(path: Path) -> int:
    if path.is_symlink() or not path.is_file():
        raise LookupError(f"{path} is not a regular file: it has no bytes of its own")
    return path.stat().st_size
