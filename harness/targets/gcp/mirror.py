"""The checkpoints of a run, which are objects in a bucket, as a directory here: pulled by generation, changes pushed with preconditions.

Faults change files of the directory; ``push`` carries that to the bucket before the job goes on. What the job has written since it was
pulled is newer than our change: it stays, and that is told.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.errors import StoreError
from harness.targets.gcp.bucket import BucketPrefix, ObjectSeen
from harness.targets.gcp.failures import PreconditionError

MIRROR_BYTES_MAX = 64 << 30
"""What one pull may bring: more than that is no checkpoint that a test judges, and this machine's disk is not the bucket's."""

NAME_BYTES_MAX = 255
"""Of one part of a path. Source: limits.h (NAME_MAX)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pulled:
    """A file as it was pulled: the object's generation, and what tells whether somebody here has changed it since."""

    generation: int
    stamp: tuple[int, int, int]


@dataclass(slots=True, kw_only=True)
class Pushed:
    """What became of changes made here.

    Attributes:
        names: Objects that were changed, added or deleted.
        lost: Changes that did not reach the bucket, each with the reason.
    """

    names: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Mirror:
    """Keeps a directory and a prefix alike. Neither an object nor a file is ever in memory as a whole.

    Args:
        prefix: In the bucket.
        directory: Here.
        beat: Called now and then while it pulls, which may take long.

    Attributes:
        directory: Here.
        lost: Objects that cannot be files here, each with the reason; told once.
    """

    def __init__(self, prefix: BucketPrefix, directory: Path, *, beat: Callable[[], None] = lambda: None) -> None:
        self._prefix, self._beat = prefix, beat
        self.directory = directory
        self.lost: dict[str, str] = {}
        self._pulled: dict[str, _Pulled] = {}
        self._folders: dict[str, int] = {}
        """Objects that stand for directories, by their generation."""
        self._staging = directory.parent / f".{directory.name}.pulled"

    def pull(self) -> list[str]:
        """Bring the directory to what the bucket holds now; returns the names that have changed.

        A job may write meanwhile: an object that changes while it is read is read at the next pull.

        Raises:
            CallError: When the bucket cannot be read.
            StoreError: When the directory cannot be written.
        """
        try:
            return self._pull()
        except OSError as error:
            raise StoreError(path=self.directory, attempted="mirror the bucket in", reason=error.strerror or str(error)) from error
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def push(self) -> Pushed:
        """Carry what was changed here since the last pull to the bucket, object by object, each only over what was pulled.

        Raises:
            CallError: When the bucket does not take it.
            StoreError: When the directory cannot be read.
        """
        pushed = Pushed()
        try:
            here = dict(self._files())
            folders = set(self._empty_folders(here))
            for name, path in here.items():
                if name not in self._pulled or _stamp(path) != self._pulled[name].stamp:
                    self._push_file(name, path, pushed)
            for name in [name for name in self._pulled if name not in here]:
                self._push_deletion(name, pushed)
            for name in sorted((name for name in self._folders if not (self.directory / name).is_dir()), reverse=True):
                self._push_folder_deletion(name, pushed)
            for name in folders - self._folders.keys():
                self._push_folder(name, pushed)
        except OSError as error:
            raise StoreError(path=self.directory, attempted="read", reason=error.strerror or str(error)) from error
        return pushed

    # ---- pulling -----------------------------------------------------------------------------------------------------

    def _pull(self) -> list[str]:
        self.directory.mkdir(parents=True, exist_ok=True)
        seen, folders = self._list()
        changed: list[str] = []
        for name in [name for name in self._pulled if name not in seen]:
            _remove(self.directory / name)
            del self._pulled[name]
            changed.append(name)
        self._remove_folders(self._folders.keys() - folders.keys())
        self._folders = folders
        for name in sorted(folders):
            self._make_folder(self.directory / name)
        for name, found in seen.items():
            pulled = self._pulled.get(name)
            if pulled is None or pulled.generation != found.generation:
                changed += self._pull_file(name, found)
        self._drop_strays(seen)
        return changed

    def _list(self) -> tuple[dict[str, ObjectSeen], dict[str, int]]:
        """Objects that can be files here, and folders that stand for themselves; what can be neither is lost."""
        seen: dict[str, ObjectSeen] = {}
        folders: dict[str, int] = {}
        size_bytes = 0
        for found in self._prefix.list_objects():
            name = found.name.rstrip("/")
            if not found.name:
                continue  # the directory itself
            problem = problem_with(name)
            if found.name.endswith("/") and not problem:
                folders[name] = found.generation
            elif not problem and size_bytes + found.size_bytes > MIRROR_BYTES_MAX:
                problem = f"with it there would be more than {MIRROR_BYTES_MAX} bytes"
            elif not problem:
                size_bytes += found.size_bytes
                seen[name] = found
            if problem:
                self.lost.setdefault(found.name, problem)
        parents = {str(parent) for name in [*seen, *folders] for parent in PurePosixPath(name).parents}
        for name in [name for name in seen if name in parents]:  # as in a bucket an object can be, and a file cannot
            del seen[name]
            self.lost.setdefault(name, "other objects lie below it, as in a directory")
        return seen, folders

    def _pull_file(self, name: str, found: ObjectSeen) -> list[str]:
        path, staged = self.directory / name, self._staging / "object"
        self._staging.mkdir(exist_ok=True)
        if not self._prefix.read_file(found, staged, beat=self._beat):
            return []
        self._make_folder(path.parent)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        staged.replace(path)
        self._pulled[name] = _Pulled(generation=found.generation, stamp=_stamp(path))
        return [name]

    def _make_folder(self, path: Path) -> None:
        """Make a directory, where something else was in its way, too."""
        for parent in [path, *path.parents]:
            if parent == self.directory:
                break
            if parent.is_symlink() or parent.is_file():
                parent.unlink()
        path.mkdir(parents=True, exist_ok=True)

    def _drop_strays(self, seen: dict[str, ObjectSeen]) -> None:
        """What is only here was pushed nowhere: it is not what the bucket holds."""
        for name, path in list(self._files()):
            if name not in seen:
                _remove(path)
        for folder, _, _ in os.walk(self.directory, topdown=False):
            name = Path(folder).relative_to(self.directory).as_posix()
            if name != "." and name not in self._folders:
                with contextlib.suppress(OSError):  # something is in it
                    os.rmdir(folder)  # noqa: PTH106

    def _remove_folders(self, names: set[str]) -> None:
        for name in sorted(names, reverse=True):
            with contextlib.suppress(OSError):  # something is in it
                (self.directory / name).rmdir()

    # ---- pushing -----------------------------------------------------------------------------------------------------

    def _push_file(self, name: str, path: Path, pushed: Pushed) -> None:
        pulled = self._pulled.get(name)
        stamp = _stamp(path)
        try:
            generation = self._prefix.write_file(name, path, generation=pulled.generation if pulled else 0)
        except PreconditionError:
            pushed.lost.append(f"{name}: the job has written it anew, and that stays")
            self._pulled.pop(name, None)
            return
        self._pulled[name] = _Pulled(generation=generation, stamp=stamp)
        pushed.names.append(name)

    def _push_deletion(self, name: str, pushed: Pushed) -> None:
        try:
            self._prefix.delete(name, generation=self._pulled[name].generation)
        except PreconditionError:
            pushed.lost.append(f"{name}: the job has written it anew, and that stays")
        else:
            pushed.names.append(name)
        del self._pulled[name]

    def _push_folder(self, name: str, pushed: Pushed) -> None:
        """An empty directory is an object whose name ends with a slash, as gcsfuse makes it."""
        with contextlib.suppress(PreconditionError):  # it is there; the next pull brings it
            self._folders[name] = self._prefix.write(f"{name}/", b"", generation=0)
            pushed.names.append(f"{name}/")

    def _push_folder_deletion(self, name: str, pushed: Pushed) -> None:
        """A directory that is gone here leaves no object behind that stands for it: the job would find an empty one."""
        try:
            self._prefix.delete(f"{name}/", generation=self._folders.pop(name))
        except PreconditionError:
            pushed.lost.append(f"{name}/: the job has made it anew, and that stays")
        else:
            pushed.names.append(f"{name}/")

    def _files(self) -> Iterator[tuple[str, Path]]:
        for folder, _, names in os.walk(self.directory):
            for name in sorted(names):
                path = Path(folder) / name
                yield path.relative_to(self.directory).as_posix(), path

    def _empty_folders(self, here: dict[str, Path]) -> Iterator[str]:
        parents = {parent for name in here for parent in PurePosixPath(name).parents}
        for folder, below, _ in os.walk(self.directory):
            name = Path(folder).relative_to(self.directory).as_posix()
            if name != "." and not below and PurePosixPath(name) not in parents:
                yield name


def problem_with(name: str) -> str:
    """Why an object of this name cannot be a file below a directory; empty: it can."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "its name is no path below a directory"
    if "\0" in name or "\\" in name:
        return "its name holds a character that no path has everywhere"
    try:
        longest = max(len(os.fsencode(part)) for part in parts)
    except UnicodeEncodeError:
        return "its name cannot be written in this machine's encoding"
    return f"a part of its name is longer than {NAME_BYTES_MAX} bytes" if longest > NAME_BYTES_MAX else ""


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
