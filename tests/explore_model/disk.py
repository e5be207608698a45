"""A checkpoint directory in memory that notes what is done to it, and the states that a crash can leave of it."""

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.explore.content import ZEROS, Span
from harness.explore.data_file import DataFile
from harness.explore.operation_log import OperationLog
from harness.explore.operations import Header
from harness.explore.replay import Replay, replay
from harness.explore.states import File, Tree
from tests.unit.explore.recordings import ROOT, Recording

NOWHERE = Path("/nowhere")

Files = Mapping[str, bytes | None]
"""By path: bytes of a file, None for a directory."""


class Disk:
    """What a job sees of its checkpoint directory: everything that it did. What storage has of it is the models' matter.

    Attributes:
        lines: What the job said.
    """

    def __init__(self, files: Files | None = None, recording: Recording | None = None) -> None:
        self.lines: list[bytes] = []
        self._files: dict[str, bytes | None] = dict(files or {})
        self._offsets: dict[str, int] = {}
        self._recording = recording
        for path in sorted(self._files) if recording is not None else ():
            recording.there(path, self._files[path])

    @property
    def files(self) -> Files:
        return dict(self._files)

    def read(self, path: str) -> bytes:
        content = self._files.get(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return content

    def is_file(self, path: str) -> bool:
        return self._files.get(path) is not None

    def exists(self, path: str) -> bool:
        return path in self._files

    def names(self, directory: str = ".") -> list[str]:
        """Of what is in a directory, sorted."""
        prefix = "" if directory == "." else f"{directory}/"
        return sorted(path[len(prefix) :] for path in self._files if path.startswith(prefix) and "/" not in path[len(prefix) :])

    def open(self, path: str, *, keeps: bool = False) -> None:
        """For writing, and made when it is not there; else cut to nothing unless it ``keeps`` what it has."""
        if path in self._files:
            self._note("open", path, truncates=not keeps)
            self._files[path] = self._files[path] if keeps else b""
        else:
            self._note("create", path)
            self._files[path] = b""
        self._offsets[path] = 0

    def open_at_end(self, path: str) -> None:
        self.open(path, keeps=True)
        self._offsets[path] = len(self.read(path))

    def write(self, path: str, content: bytes) -> None:
        old, offset = self.read(path), self._offsets[path]
        self._note("write", path, content, offset)
        self._files[path] = old[:offset] + content + old[offset + len(content) :]
        self._offsets[path] += len(content)

    def truncate(self, path: str, size: int) -> None:
        self._note("truncate", path, size)
        self._files[path] = self.read(path)[:size]

    def sync(self, path: str = ".") -> None:
        self._note("sync", path)

    def close(self, path: str) -> None:
        self._note("close", path)
        del self._offsets[path]

    def mkdir(self, path: str) -> None:
        if path in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._note("mkdir", path)
        self._files[path] = None

    def rename(self, path: str, to: str) -> None:
        if self.names(to):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), to)
        self._note("rename", path, to)
        for each in [each for each in self._files if f"{each}/".startswith(f"{path}/")]:
            self._files[to + each[len(path) :]] = self._files.pop(each)

    def unlink(self, path: str) -> None:
        self.read(path)
        self._note("unlink", path)
        del self._files[path]

    def rmdir(self, path: str) -> None:
        self._note("rmdir", path)
        del self._files[path]

    def clear(self, path: str) -> None:
        """Remove a file or a directory with all that is in it, if it is there."""
        if self._files.get(path) is not None:
            self.unlink(path)
        elif path in self._files:
            for name in self.names(path):
                self.clear(f"{path}/{name}")
            self.rmdir(path)

    def say(self, event: str, **fields: object) -> None:
        self.lines.append(msgspec.json.encode({"event": event, **fields}))
        if self._recording is not None:
            self._recording.say(event, **fields)

    def _note(self, operation: str, *arguments: object, **options: object) -> None:
        if self._recording is not None:
            getattr(self._recording, operation)(*arguments, **options)


class DataInMemory(DataFile):
    """The data of a recording that was never on disk."""

    def __init__(self, data: bytes) -> None:
        super().__init__(Path(os.devnull))
        self._bytes = data

    def _read(self, span: Span) -> Iterator[bytes]:
        begin, size = span
        yield bytes(size) if begin == ZEROS else self._bytes[begin : begin + size]

    def files_of(self, tree: Tree) -> Files:
        return {path: self.read(thing.content) if isinstance(thing, File) else None for path, thing in tree.items()}


def replay_in_memory(recording: Recording) -> Replay:
    header = Header(schema=1, root=ROOT, command=("train",), started_s=0.0, initial=tuple(recording.initial))
    played = replay(OperationLog(header, tuple(recording.entries), NOWHERE, is_whole=False))
    assert played.gaps == ()
    return played


def new_recording() -> Recording:
    return Recording(NOWHERE)
