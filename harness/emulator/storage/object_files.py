"""Objects as files below one directory, to which jobs write too: no name and no link that a job leaves leads out of it."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.emulator.storage.object_names import is_storable, split_name, unstorable

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe that nobody writes to must not hold us
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class ObjectFiles:
    """The files of one bucket.

    Attributes:
        root: Their directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, name: str) -> int | None:
        """Open an object for reading, by a descriptor that the caller closes.

        None when there is no regular file of the name, or no directory for a name like ``a/``.
        """
        *folders, last = split_name(name)
        try:
            with self._folder(folders) as parent:
                descriptor = os.open(last, _FILE_FLAGS, dir_fd=parent) if last else os.dup(parent)
        except OSError as error:
            if error.errno in (*_ABSENT, errno.ENXIO):
                return None
            raise
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) or (not last and stat.S_ISDIR(mode)):
            return descriptor
        os.close(descriptor)
        return None

    def place(self, staged: Path, name: str, made: list[str] | None = None) -> os.stat_result:
        """Let a finished file be the object, at once; returns its status after that.

        Args:
            staged: The file.
            name: Of the object.
            made: Gets each directory that had to be made on the way, as ``a/b/``.

        Raises:
            ApiError: 400, when a directory with files or a file among the folders is in the way.
        """
        *folders, last = split_name(name)
        try:
            with self._folder(folders, make=True, made=made) as parent:
                if not last:
                    staged.unlink()
                    return os.fstat(parent)
                self._make_room(parent, last)
                # relative to an open directory, so that no link can redirect it
                os.rename(staged, last, dst_dir_fd=parent)
                return os.stat(last, dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            raise _explain(error, name) from error

    def remove(self, name: str) -> None:
        """Remove an object; directories above stay, as in a bucket with a hierarchical namespace."""
        *folders, last = split_name(name)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if last:
                with self._folder(folders) as parent:
                    os.unlink(last, dir_fd=parent)
                return
            *above, folder = folders
            with self._folder(above) as parent:
                _remove_empty(parent, folder)

    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all regular files and, as ``a/``, all directories in the one that the prefix names, itself too, in no order.

        Links are not followed, nor are they objects.
        """
        folder, slash, _ = prefix.rpartition("/")
        if slash and not is_storable(f"{folder}/"):
            return
        try:
            with self._folder(folder.split("/") if slash else []) as descriptor:
                if slash:
                    yield f"{folder}/"
                yield from self._walk(descriptor, f"{folder}/" if slash else "")
        except OSError as error:
            if error.errno not in _ABSENT:
                raise

    def _walk(self, descriptor: int, above: str) -> Iterator[str]:
        with os.scandir(descriptor) as entries:
            found = list(entries)
        for entry in found:
            name = above + entry.name
            if entry.is_file(follow_symlinks=False):
                if is_storable(name):
                    yield name
            elif entry.is_dir(follow_symlinks=False):
                if is_storable(f"{name}/"):
                    yield f"{name}/"
                try:
                    below = os.open(entry.name, _DIRECTORY_FLAGS, dir_fd=descriptor)
                except OSError as error:
                    if error.errno not in _ABSENT:
                        raise
                    continue  # gone since
                try:
                    yield from self._walk(below, f"{name}/")
                finally:
                    os.close(below)

    @contextlib.contextmanager
    def _folder(self, folders: list[str], *, make: bool = False, made: list[str] | None = None) -> Iterator[int]:
        if make:
            self.root.mkdir(parents=True, exist_ok=True)  # a job may have removed it; the root of a mount stays
        descriptor = os.open(self.root, _DIRECTORY_FLAGS)
        try:
            for depth, folder in enumerate(folders, 1):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=descriptor)
                        if made is not None:
                            made.append("/".join(folders[:depth]) + "/")
                below = os.open(folder, _DIRECTORY_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _make_room(self, parent: int, name: str) -> None:
        """An empty directory is no object: it yields to one."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                _remove_empty(parent, name)


def _remove_empty(parent: int, name: str) -> None:
    """Remove a directory if it is empty; one with entries stays."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _explain(error: OSError, name: str) -> Exception:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return unstorable(name, "one of its folders is an object, or a link, already")
    if error.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return unstorable(name, "it is a directory already")
    if error.errno == errno.ENAMETOOLONG:
        return unstorable(name, "its path is too long")
    return error
