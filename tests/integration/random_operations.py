"""Random operations on a real directory, noted as the recorder would note them."""

import ctypes
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from hypothesis import strategies as st

from harness.explore.models import MODELS
from harness.explore.trees import BranchTree
from tests.unit.explore.recordings import Recording

PICK = st.integers(0, 999)
"""One of what is there, by its number."""
NAME = st.sampled_from("abc")
CONTENTS = st.binary(max_size=6)
COMMANDS = st.one_of(
    st.tuples(st.just("create"), PICK, NAME),
    st.tuples(st.just("create_nameless"), PICK),
    st.tuples(st.just("link_nameless"), PICK, NAME),
    st.tuples(st.just("open"), PICK, st.booleans()),
    st.tuples(st.just("write"), PICK, CONTENTS, st.integers(0, 8)),
    st.tuples(st.just("append"), PICK, CONTENTS),
    st.tuples(st.just("copy"), PICK, st.booleans(), st.integers(1, 6), st.integers(0, 8)),
    st.tuples(st.just("truncate"), PICK, st.integers(0, 8)),
    st.tuples(st.just("allocate"), PICK, st.integers(0, 8), st.integers(1, 8)),
    st.tuples(st.just("sync"), PICK, st.booleans()),
    st.tuples(st.just("close"), PICK),
    st.tuples(st.just("close"), PICK),
    st.tuples(st.just("mkdir"), PICK, NAME),
    st.tuples(st.just("rename"), PICK, PICK, NAME),
    st.tuples(st.just("exchange"), PICK, PICK),
    st.tuples(st.just("move_out"), PICK),
    st.tuples(st.just("move_in"), PICK, NAME, st.dictionaries(NAME, CONTENTS, max_size=2)),
    st.tuples(st.just("link"), PICK, PICK, NAME),
    st.tuples(st.just("symlink"), PICK, NAME, NAME),
    st.tuples(st.just("unlink"), PICK),
    st.tuples(st.just("rmdir"), PICK),
)


EXCHANGE = 2
"""``RENAME_EXCHANGE`` of renameat2(2)."""
HERE = -100
"""``AT_FDCWD`` of openat(2)."""
NAMELESS = ""
"""Path of the one file that was made without a name."""
SOURCE = b"source"
"""What is copied by the kernel itself."""

_libc = ctypes.CDLL(None, use_errno=True)


class Machine:
    """Does each command on a real directory and, where the kernel has done it, notes it."""

    def __init__(self, place: Path) -> None:
        self.root, self.outside = place / "root", place / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        self.source = self.outside / "source"
        self.source.write_bytes(SOURCE)
        self.recording = Recording(place / "log")
        self.descriptors: dict[int, int] = {}
        self.count = 0

    def do_all(self, commands: Iterable[tuple]) -> list[dict[str, bytes | str]]:
        """What was there before the first one, and after each that succeeded."""
        trees = [seen(self.root), *(seen(self.root) for command in commands if self.do(command))]
        self.close_all()
        return trees

    def do(self, command: tuple) -> bool:
        """Whether it succeeded."""
        name, *arguments = command
        act: Callable[..., None] = getattr(self, f"_{name}")
        try:
            act(*arguments)
        except OSError:  # the kernel refuses
            return False
        return True

    def close_all(self) -> None:
        while self.descriptors:
            os.close(self.descriptors.popitem()[1])

    def _pick(self, number: int, paths: Iterable[str]) -> str:
        known = sorted(paths)
        if not known:
            raise FileNotFoundError
        return known[number % len(known)]

    def _there(self, number: int) -> str:
        return self._pick(number, self.recording.nodes.keys() - {".", NAMELESS})

    def _new(self, number: int, name: str) -> str:
        """A name in a directory that is there; the name may be taken."""
        directory = self._pick(
            number, [path for path in self.recording.nodes if path and (self.root / path).is_dir() and not (self.root / path).is_symlink()]
        )
        path = name if directory == "." else f"{directory}/{name}"
        if path in self.recording.handles:
            raise FileExistsError  # by its path we could not tell one open file from the other
        return path

    def _open_file(self, number: int) -> str:
        return self._pick(number, self.recording.handles)

    def _create(self, directory, name):
        path = self._new(directory, name)
        descriptor = os.open(self.root / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self.recording.create(path)
        self.descriptors[self.recording.handles[path]] = descriptor

    def _create_nameless(self, directory):
        if NAMELESS in self.recording.handles:
            raise FileExistsError
        where = self._pick(directory, [path for path in self.recording.nodes if path and (self.root / path).is_dir()])
        descriptor = os.open(self.root / where, os.O_WRONLY | os.O_TMPFILE)
        self.recording.create(NAMELESS)
        self.descriptors[self.recording.handles[NAMELESS]] = descriptor

    def _link_nameless(self, directory, name):
        to = self._new(directory, name)
        if NAMELESS not in self.recording.handles:
            raise FileNotFoundError
        descriptor = self.descriptors[self.recording.handles[NAMELESS]]
        os.link(f"/proc/self/fd/{descriptor}", self.root / to, src_dir_fd=0)  # linkat(2) and not link(2), which follows no links
        self.recording.link(NAMELESS, to)

    def _open(self, number, truncates):
        path = self._pick(number, self.recording.nodes.keys() - self.recording.handles.keys() - {NAMELESS})
        descriptor = os.open(self.root / path, os.O_WRONLY | os.O_NOFOLLOW | (os.O_TRUNC if truncates else 0))
        self.recording.open(path, truncates=truncates)
        self.descriptors[self.recording.handles[path]] = descriptor

    def _write(self, number, content, offset):
        path = self._open_file(number)
        os.pwrite(self.descriptors[self.recording.handles[path]], content, offset)
        self.recording.write(path, content, offset)

    def _append(self, number, content):
        path = self._open_file(number)
        descriptor = self.descriptors[self.recording.handles[path]]
        size = os.fstat(descriptor).st_size
        fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
        os.write(descriptor, content)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
        self.recording.write(path, content, size)

    def _copy(self, number, sends, size, offset):
        path = self._open_file(number)
        descriptor = self.descriptors[self.recording.handles[path]]
        with self.source.open("rb") as source:
            if sends:
                os.lseek(descriptor, offset, os.SEEK_SET)
                done = os.sendfile(descriptor, source.fileno(), 0, size)
            else:
                done = os.copy_file_range(source.fileno(), descriptor, size, 0, offset)
        self.recording.write(path, SOURCE[:done], offset)

    def _allocate(self, number, offset, size):
        path = self._open_file(number)
        descriptor = self.descriptors[self.recording.handles[path]]
        if os.fstat(descriptor).st_size >= offset + size:
            raise FileExistsError  # it would only take room: no operation of the log
        os.posix_fallocate(descriptor, offset, size)
        self.recording.truncate(path, offset + size)

    def _sync(self, number, is_whole):
        path = self._pick(number, self.recording.nodes.keys() - {NAMELESS})
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            (os.fsync if is_whole else os.fdatasync)(descriptor)
        finally:
            os.close(descriptor)
        self.recording.sync(path, "file" if is_whole else "data")

    def _truncate(self, number, size):
        path = self._open_file(number)
        os.ftruncate(self.descriptors[self.recording.handles[path]], size)
        self.recording.truncate(path, size)

    def _close(self, number):
        path = self._open_file(number)
        os.close(self.descriptors.pop(self.recording.handles[path]))
        self.recording.close(path)

    def _mkdir(self, directory, name):
        path = self._new(directory, name)
        (self.root / path).mkdir()
        self.recording.mkdir(path)

    def _rename(self, number, directory, name):
        path, to = self._there(number), self._new(directory, name)
        is_same = self.recording.nodes[path] == self.recording.nodes.get(to)
        (self.root / path).rename(self.root / to)
        self.recording.rename(path, to, does_nothing=is_same)

    def _exchange(self, number, other):
        path, to = self._there(number), self._there(other)
        is_same = self.recording.nodes[path] == self.recording.nodes[to]
        if _libc.renameat2(HERE, os.fsencode(self.root / path), HERE, os.fsencode(self.root / to), EXCHANGE):
            raise OSError(ctypes.get_errno(), "exchange")
        self.recording.rename(path, to, exchanges=True, does_nothing=is_same)

    def _move_out(self, number):
        path = self._there(number)
        if any(each == path or each.startswith(f"{path}/") for each in self.recording.handles):
            raise FileExistsError
        self.count += 1
        (self.root / path).rename(self.outside / str(self.count))
        self.recording.move_out(path)

    def _move_in(self, directory, name, files):
        to = self._new(directory, name)
        if os.path.lexists(self.root / to):
            raise FileExistsError
        self.count += 1
        came = self.outside / str(self.count)
        came.mkdir()
        for each, content in files.items():
            (came / each).write_bytes(content)
        came.rename(self.root / to)
        self.recording.move_in(to, files)

    def _link(self, number, directory, name):
        path, to = self._there(number), self._new(directory, name)
        os.link(self.root / path, self.root / to, follow_symlinks=False)
        self.recording.link(path, to)

    def _symlink(self, directory, name, target):
        path = self._new(directory, name)
        (self.root / path).symlink_to(target)
        self.recording.symlink(path, target)

    def _unlink(self, number):
        path = self._there(number)
        (self.root / path).unlink()
        self.recording.unlink(path)

    def _rmdir(self, number):
        path = self._there(number)
        (self.root / path).rmdir()
        self.recording.rmdir(path)


def seen(root: Path) -> dict[str, bytes | str]:
    """What is below a real directory, as ``Recording.shown``."""
    found: dict[str, bytes | str] = {}
    for path in root.rglob("*"):
        content = f"-> {path.readlink()}" if path.is_symlink() else "/" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(root))] = content
    return found


def modelled(recording: Recording) -> list[dict[str, bytes | str]]:
    """What ``posix`` leaves after each operation, as ``Recording.shown``; nothing in the recording may contradict itself."""
    played = recording.replay()
    assert played.gaps == ()
    return [recording.shown(BranchTree(each.system.tree())) for each in MODELS["posix"].whole(played, "process")]
