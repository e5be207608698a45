"""Plays the entries of a log on a file system, to find what each of them changes."""

from collections.abc import Callable, Sequence

import msgspec

from harness.explore.content import Content
from harness.explore.file_system import ROOT, Age, Drop, Edit, FileSystem, Make, Place, Put, Resize, Write
from harness.explore.operations import (
    AnyEntry,
    Closed,
    Created,
    Extent,
    Item,
    Linked,
    MadeDirectory,
    MovedIn,
    MovedOut,
    Opened,
    RemovedDirectory,
    Renamed,
    Symlinked,
    Synced,
    Truncated,
    Unlinked,
    Wrote,
)
from harness.explore.states import File, Link, Thing
from harness.explore.trees import DIRECTORY


class Player:
    """Plays entries on a file system and keeps the edits. What does not fit is made to fit, and told.

    Attributes:
        system: What there is now.
        gaps: What did not fit, a sentence each.
    """

    def __init__(self) -> None:
        self.system = FileSystem()
        self.gaps: list[str] = []
        self._edits: list[Edit] = []
        self._last_paths: dict[int, str] = {}
        self._where = "the header"
        self._plays: dict[type, Callable[..., None]] = {
            Created: self._create, Opened: self._open, Wrote: self._write, Truncated: self._truncate, MadeDirectory: self._make_directory,
            Renamed: self._rename, MovedIn: self._move_in, MovedOut: self._remove, Linked: self._link, Symlinked: self._make_link,
            Unlinked: self._remove, RemovedDirectory: self._remove, Synced: self._look, Closed: self._look,
        }  # fmt: skip

    def play(self, entry: AnyEntry) -> tuple[str, tuple[Edit, ...]]:
        """Where an entry acts, and what it changes."""
        self._where = f"entry {entry.index}"
        path = getattr(entry, "path", "") or getattr(entry, "to", "") or self._path_of(getattr(entry, "node", ROOT))
        self._plays[type(entry)](entry)
        if path and (node := getattr(entry, "node", ROOT)) != ROOT:
            self._last_paths[node] = path
        return path, self.take_edits()

    def take_edits(self) -> tuple[Edit, ...]:
        """What was changed since the last call."""
        edits = tuple(self._edits)
        self._edits.clear()
        return edits

    def bring(self, items: Sequence[Item]) -> None:
        """Things are there as a whole, parents first."""
        for item in items:
            self._bring(msgspec.structs.replace(item, data=Extent(0, 0)) if item.unsynced else item)
            if item.unsynced:
                self._do(Write(item.node, 0, (item.data.start, item.data.size)))
        self._set_ages({item.node: item.older_than for item in items if item.older_than})

    def _set_ages(self, younger: dict[int, int]) -> None:
        """Those first that are older than what has its place."""
        while placed := [node for node, other in younger.items() if other not in younger]:
            self._do(*(Age(node, younger.pop(node)) for node in placed))

    def _bring(self, item: Item) -> None:
        if item.path == ".":
            return
        self._expect_new(item.node, item.path)
        things: dict[str, Thing] = {"directory": DIRECTORY, "link": Link(item.target), "file": File(Content.of(item.data))}
        self._do(Make(item.node, things[item.kind]))
        self._name(item.path, item.node)

    def _do(self, *edits: Edit) -> None:
        self._edits += edits
        self.system.apply(edits)

    def _doubt(self, what: str) -> None:
        self.gaps.append(f"{self._where} {what}")

    def _path_of(self, node: int) -> str:
        return self.system.path_of(node) or self._last_paths.get(node, "")

    def _place(self, path: str) -> Place:
        """The directory of a path and its name there; directories that nobody made are made."""
        directory = ROOT
        *parents, name = path.split("/")
        for index, parent in enumerate(parents):
            node = self.system.node_at(directory, parent)
            if node is None or not self.system.is_directory(node):
                self._doubt(f"is in {'/'.join(parents[: index + 1])!r}, which nobody made")
                node = -1 - len(self.gaps)  # no node of the log is negative
                self._do(Make(node, DIRECTORY), Put(directory, parent, node))
            directory = node
        return directory, name

    def _name(self, path: str, node: int) -> None:
        if path == ".":
            self._doubt("gives the checkpoint directory's own place to something else")
        else:
            self._do(Put(*self._place(path), node))

    def _empty(self) -> None:
        """The checkpoint directory itself is taken away: no state tells that from an empty one."""
        self._do(*(Drop(ROOT, name) for name in self.system.names_in(ROOT)))

    def _expect_new(self, node: int, path: str) -> None:
        if self.system.is_known(node):
            self._doubt(f"makes {path!r} as a node that is known")

    def _require(self, node: int, path: str, kind: File | Link | None = None) -> None:
        """Let a node be known."""
        if not self.system.is_known(node):
            self._doubt(f"is about {path or 'something'!r}, which nobody made")
            self._do(Make(node, DIRECTORY if kind is None else kind))
            if path:
                self._name(path, node)

    def _create(self, entry: Created) -> None:
        if entry.path not in {"", "."} and self.system.node_at(*self._place(entry.path)) is not None:
            self._doubt(f"creates {entry.path!r}, which is there")
        self._expect_new(entry.node, entry.path)
        self._do(Make(entry.node, File(Content())))
        if entry.path:
            self._name(entry.path, entry.node)

    def _make_directory(self, entry: MadeDirectory) -> None:
        if entry.path == ".":
            return  # it was taken away before
        if self.system.node_at(*self._place(entry.path)) is not None:
            self._doubt(f"creates {entry.path!r}, which is there")
        self._expect_new(entry.node, entry.path)
        self._do(Make(entry.node, DIRECTORY))
        self._name(entry.path, entry.node)

    def _make_link(self, entry: Symlinked) -> None:
        self._expect_new(entry.node, entry.path)
        self._do(Make(entry.node, Link(entry.target)))
        self._name(entry.path, entry.node)

    def _open(self, entry: Opened) -> None:
        self._require(entry.node, entry.path, File(Content()))
        if entry.truncates:  # of an empty file, too: its time is another one
            self._do(Resize(entry.node, 0))

    def _write(self, entry: Wrote) -> None:
        self._require(entry.node, "", File(Content()))
        self._do(Write(entry.node, entry.offset, (entry.data.start, entry.data.size)))

    def _truncate(self, entry: Truncated) -> None:
        self._require(entry.node, "", File(Content()))
        self._do(Resize(entry.node, entry.size))

    def _look(self, entry: Synced | Closed) -> None:
        if not (self.system.is_known(entry.node) or (isinstance(entry, Synced) and entry.scope == "all")):
            self._doubt(f"is about node {entry.node}, which nobody made")

    def _link(self, entry: Linked) -> None:
        self._require(entry.node, "", File(Content()))
        if self.system.is_directory(entry.node):
            self._doubt("links a directory")
        self._name(entry.to, entry.node)

    def _rename(self, entry: Renamed) -> None:
        if "." in {entry.path, entry.to}:
            self._doubt("renames the checkpoint directory within itself")
            return
        source, target = self._place(entry.path), self._place(entry.to)
        self._agree(source, entry.node, entry.path)
        other = self.system.node_at(*target)
        if other == entry.node:
            return  # two names of one file: nothing happens (rename(2))
        if entry.exchanges and other is not None:
            self._do(Put(*target, entry.node), Put(*source, other))
        else:
            self._do(Drop(*source), Put(*target, entry.node))

    def _remove(self, entry: Unlinked | RemovedDirectory | MovedOut) -> None:
        if entry.path == ".":
            self._empty()
            return
        place = self._place(entry.path)
        self._agree(place, entry.node, entry.path)
        self._do(Drop(*place))

    def _agree(self, place: Place, node: int, path: str) -> None:
        """Let a name stand for the node that the log says."""
        if self.system.node_at(*place) == node:
            return
        self._doubt(f"is about {path!r}, which is not what it was")
        if not self.system.is_known(node):
            self._do(Make(node, File(Content())))
        self._do(Put(*place, node))

    def _move_in(self, entry: MovedIn) -> None:
        self.bring(entry.items)
