"""A recording written by hand, an operation a line."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from harness.explore.data_file import DataFile
from harness.explore.enumeration import Enumeration, Found
from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.operations import (
    DATA_NAME,
    LOG_NAME,
    AnyEntry,
    Closed,
    Created,
    Ended,
    Extent,
    Header,
    Item,
    Linked,
    MadeDirectory,
    MovedIn,
    MovedOut,
    Opened,
    Printed,
    RemovedDirectory,
    Renamed,
    Said,
    Symlinked,
    Synced,
    Truncated,
    Unlinked,
    Wrote,
)
from harness.explore.replay import Replay, replay
from harness.explore.states import File, Link, Model, Scope, Tree

ROOT = "/recorded/checkpoints"


def sealed(lines: Iterable[bytes]) -> bytes:
    """A log of these lines, with the checksums that the recorder puts at their ends."""
    crc32, log = 0, b""
    for line in lines:
        crc32 = zlib.crc32(line.removesuffix(b"}"), crc32)
        log += line.removesuffix(b"}") + f',"crc32":"{crc32:08x}"}}\n'.encode()
    return log


@dataclass
class Recording:
    """Notes operations as the recorder would; nodes and handles are counted, paths are followed."""

    directory: Path
    entries: list[AnyEntry] = field(default_factory=list)
    initial: list[Item] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    nodes: dict[str, int] = field(default_factory=lambda: {".": 0})
    handles: dict[str, int] = field(default_factory=dict)
    opened: dict[int, int] = field(default_factory=dict)  # nodes by handle: a file may lose its name while it is open
    last_node: int = 0
    last_handle: int = 0
    syncs_always: bool = False

    def there(self, path: str, content: bytes | None = None) -> None:
        """Something that was there before; a directory without content."""
        if content is None:
            self.initial.append(Item(path=path, node=self._new(path), kind="directory"))
        else:
            self.initial.append(Item(path=path, node=self._new(path), kind="file", data=self.store(content)))

    def create(self, path: str, *, is_open: bool = True, reads: bool = False) -> None:
        self._note(Created, path=path, node=self._new(path), handle=self._open(path) if is_open else 0, reads=reads)

    def open(self, path: str, *, truncates: bool = False) -> None:
        self._note(Opened, path=path, node=self.nodes[path], handle=self._open(path), truncates=truncates)

    def write(self, path: str, content: bytes, offset: int = 0) -> None:
        self._note(Wrote, node=self._written(path), handle=self.handles.get(path, 0), offset=offset, data=self.store(content))

    def truncate(self, path: str, size: int) -> None:
        self._note(Truncated, node=self._written(path), size=size, handle=self.handles.get(path, 0))

    def sync(self, path: str = ".", scope: Literal["file", "data", "all"] = "file") -> None:
        self._note(Synced, node=self.nodes[path], scope=scope)

    def close(self, path: str) -> None:
        self._note(Closed, node=self._written(path), handle=self.handles.pop(path))

    def mkdir(self, path: str) -> None:
        self._note(MadeDirectory, path=path, node=self._new(path))

    def rename(self, path: str, to: str, *, exchanges: bool = False, does_nothing: bool = False) -> None:
        self._note(Renamed, path=path, to=to, node=self.nodes[path], exchanges=exchanges)
        if does_nothing:  # two names of one file
            return
        if exchanges:
            self._move(path, ".exchanged")
            self._move(to, path)
            self._move(".exchanged", to)
        else:
            self._forget(to)
            self._move(path, to)

    def move_in(self, to: str, files: dict[str, bytes], *, unsynced: bool = False) -> None:
        """A directory with files comes from outside."""
        items = [Item(path=to, node=self._new(to), kind="directory")]
        items += [
            Item(path=f"{to}/{name}", node=self._new(f"{to}/{name}"), kind="file", data=self.store(files[name]), unsynced=unsynced)
            for name in files
        ]
        self._note(MovedIn, to=to, items=tuple(items))

    def move_file_in(self, to: str, content: bytes, *, unsynced: bool = False) -> None:
        """A file comes from outside, in the place of what was there."""
        self._forget(to)
        item = Item(path=to, node=self._new(to), kind="file", data=self.store(content), unsynced=unsynced)
        self._note(MovedIn, to=to, items=(item,))

    def move_out(self, path: str) -> None:
        self._note(MovedOut, path=path, node=self.nodes[path])
        self._forget(path)

    def link(self, path: str, to: str) -> None:
        self._note(Linked, to=to, node=self.nodes[path])
        self.nodes[to] = self.nodes[path]

    def symlink(self, path: str, target: str) -> None:
        self._note(Symlinked, path=path, node=self._new(path), target=target)

    def unlink(self, path: str) -> None:
        self._note(Unlinked, path=path, node=self.nodes[path])
        self._forget(path)

    def rmdir(self, path: str) -> None:
        self._note(RemovedDirectory, path=path, node=self.nodes[path])
        self._forget(path)

    def say(self, event: str, **fields: object) -> None:
        self._note(Said, line=msgspec.json.encode({"event": event, **fields}).decode())

    def print(self, text: str) -> None:
        self._note(Printed, stream="stdout", text=text)

    def end(self) -> None:
        self._note(Ended, exit_code=0)

    def save_file(self, path: str, content: bytes, *, syncs: bool = False) -> None:
        """Create, write, perhaps sync, close."""
        self.create(path)
        self.write(path, content)
        if syncs:
            self.sync(path)
        self.close(path)

    def store(self, content: bytes) -> Extent:
        self.data += content
        return Extent(len(self.data) - len(content), len(content))

    def lines(self) -> list[bytes]:
        header = Header(schema=1, root=ROOT, command=("train",), started_s=1.0, initial=tuple(self.initial))
        return [msgspec.json.encode(each) for each in (header, *self.entries)]

    def log(self) -> OperationLog:
        """As read from disk."""
        self.directory.mkdir(exist_ok=True)
        (self.directory / LOG_NAME).write_bytes(sealed(self.lines()))
        (self.directory / DATA_NAME).write_bytes(self.data)
        return read_operation_log(self.directory)

    def replay(self) -> Replay:
        return replay(self.log())

    def open_data(self) -> DataFile:
        return DataFile(self.directory / DATA_NAME)

    def enumerate(self, model: Model, scope: Scope, *, missing_max: int = 1) -> tuple[Enumeration, list[Found]]:
        """All states."""
        played = self.replay()
        assert played.gaps == ()
        with self.open_data() as data:
            enumeration = Enumeration(played, data, model=model, scope=scope, missing_max=missing_max)
            return enumeration, list(enumeration)

    def shown(self, tree: Tree) -> dict[str, bytes | str]:
        """A tree with the bytes of its files; ``/`` for a directory, ``-> target`` for a link."""
        with self.open_data() as data:
            return {
                path: data.read(thing.content) if isinstance(thing, File) else f"-> {thing.target}" if isinstance(thing, Link) else "/"
                for path, thing in tree.items()
            }

    def trees(self, model: Model, scope: Scope, *, missing_max: int = 1) -> list[dict[str, bytes | str]]:
        """Of all states, as ``shown``."""
        return [self.shown(found.crash.tree) for found in self.enumerate(model, scope, missing_max=missing_max)[1]]

    def _note(self, kind: type, **fields: object) -> None:
        index = len(self.entries) + 1
        self.entries.append(kind(index=index, t_s=float(index), process=7, thread=7, **fields))
        if self.syncs_always and kind not in (Synced, Said, Ended):
            self.sync(scope="all")

    def _new(self, path: str) -> int:
        self.last_node += 1
        self.nodes[path] = self.last_node
        return self.last_node

    def _open(self, path: str) -> int:
        self.last_handle += 1
        self.handles[path], self.opened[self.last_handle] = self.last_handle, self.nodes[path]
        return self.last_handle

    def _written(self, path: str) -> int:
        return self.opened[self.handles[path]] if path in self.handles else self.nodes[path]

    def _forget(self, path: str) -> None:
        for known in [known for known in self.nodes if known == path or known.startswith(path + "/")]:
            del self.nodes[known]

    def _move(self, path: str, to: str) -> None:
        for names in (self.nodes, self.handles):
            for known in [known for known in names if known == path or known.startswith(path + "/")]:
                names[to + known[len(path) :]] = names.pop(known)
