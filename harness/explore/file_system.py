"""A file system in memory, changed by edits: a recording is played on it, whole or with edits left out.

Nodes are the numbers of the log. A fork is cheap, and so is a tree: both share what was not changed since.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness.explore.content import EMPTY, Content, Span
from harness.explore.states import Directory, File, Link
from harness.explore.trees import Branch, Child

ROOT = 0
"""The node of the checkpoint directory itself."""

Place = tuple[int, str]
"""A name in a directory."""


class Make(NamedTuple):
    """A node is this, whatever it was before; it has no name by that. None: a file that cannot be seen yet."""

    node: int
    thing: File | Link | Directory | None


class Put(NamedTuple):
    """A name in a directory now stands for a node, whatever it stood for before."""

    directory: int
    name: str
    node: int


class Drop(NamedTuple):
    """A name in a directory is gone."""

    directory: int
    name: str


class Write(NamedTuple):
    """Bytes of a file are these."""

    node: int
    offset: int
    span: Span


class Resize(NamedTuple):
    """A file has this size; with ``grows``, at least this size."""

    node: int
    size: int
    grows: bool = False


class Age(NamedTuple):
    """A node was changed last right before another one was."""

    node: int
    younger: int


Edit = Make | Put | Drop | Write | Resize | Age


class FileSystem:
    """Directories, files and links. A directory has one place at most, whatever the edits: so there are no circles below the root.

    Attributes:
        keeps_empty: Whether a directory without any file below it is there.
        links_names: Whether several names of one file stay names of one file.
    """

    __slots__ = ("_branches", "_changed", "_changes", "_entries", "_places", "_things", "keeps_empty", "links_names")

    def __init__(self) -> None:
        self._things: dict[int, File | Link | None] = {}
        self._entries: dict[int, dict[str, int]] = {ROOT: {}}
        self._places: dict[int, tuple[Place, ...]] = {}
        self._branches: dict[int, Branch] = {}  # a directory is here only if all directories below it are
        self._changed: dict[int, float] = {}  # how manieth change a node's last one was: what its time of modification is made of
        self._changes = 0
        self.keeps_empty = self.links_names = True

    def fork(self) -> "FileSystem":
        """Another file system that begins as this one is."""
        other = FileSystem()
        other._things, other._entries, other._places = self._things.copy(), self._entries.copy(), self._places.copy()
        other._branches, other.keeps_empty, other.links_names = self._branches.copy(), self.keeps_empty, self.links_names
        other._changed, other._changes = self._changed.copy(), self._changes
        return other

    def apply(self, edits: Iterable[Edit]) -> None:
        """Do edits in order; one on a node or directory that is not known changes nothing."""
        for edit in edits:
            if isinstance(edit, Write):
                self._fill(edit.node, self.content_of(edit.node).written(edit.offset, edit.span))
            elif isinstance(edit, Put):
                self._put(edit)
            elif isinstance(edit, Drop):
                self._drop(edit.directory, edit.name)
            elif isinstance(edit, Make):
                self._make(edit)
            elif isinstance(edit, Age):
                self._age(edit)
            else:
                content = self.content_of(edit.node)
                self._fill(edit.node, content.resized(max(content.size, edit.size) if edit.grows else edit.size))

    def tree(self) -> Branch:
        """All that can be seen now."""
        stale = [ROOT] if ROOT not in self._branches else []
        for directory in stale:  # grows meanwhile: children come after their parents
            stale += [node for node in self._entries[directory].values() if node in self._entries and node not in self._branches]
        for directory in reversed(stale):
            children = {name: child for name, child in self._children(directory)}  # noqa: C416 - mypy
            entries = self._entries[directory]
            changed = {name: self._changed.get(entries[name], 0) for name in children}
            self._branches[directory] = Branch(children, changed, entries if self.links_names else {})
        return self._branches[ROOT]

    def content_of(self, node: int) -> Content:
        """Of a file; empty for what is none, or cannot be seen."""
        thing = self._things.get(node)
        return thing.content if isinstance(thing, File) else EMPTY

    def is_directory(self, node: int) -> bool:
        """Whether the node is a directory."""
        return node in self._entries

    def is_known(self, node: int) -> bool:
        """Whether the node was ever made."""
        return node in self._things or node in self._entries

    def is_seen(self, node: int) -> bool:
        """Whether the node is something that a listing would show."""
        return node in self._entries or self._things.get(node) is not None

    def has_name(self, node: int) -> bool:
        """Whether any name leads to the node; the way up from there may still be cut."""
        return node == ROOT or bool(self._places.get(node))

    def node_at(self, directory: int, name: str) -> int | None:
        """What a name stands for."""
        return self._entries.get(directory, {}).get(name)

    def names_in(self, directory: int) -> dict[str, int]:
        """The nodes in a directory by name."""
        return self._entries.get(directory, {})

    def path_of(self, node: int) -> str | None:
        """The path of a node by its oldest name; None when it has none."""
        names: list[str] = []
        while node != ROOT:
            places = self._places.get(node)
            if not places or len(names) > len(self._places):  # no way up, or a circle of directories without one
                return None
            node, name = places[0]
            names.append(name)
        return "/".join(reversed(names)) or "."

    def _children(self, directory: int) -> Iterator[tuple[str, Child]]:
        for name, node in self._entries[directory].items():
            if node in self._entries:
                branch = self._branches[node]
                if branch.children or self.keeps_empty:
                    yield name, branch
            elif (thing := self._things.get(node)) is not None:
                yield name, thing

    def _make(self, edit: Make) -> None:
        node = edit.node
        if node == ROOT:
            return
        self._entries.pop(node, None)
        self._branches.pop(node, None)
        self._things.pop(node, None)
        if isinstance(edit.thing, Directory):
            for place in self._places.get(node, ()):
                self._drop(*place)
            self._entries[node] = {}
        else:
            self._things[node] = edit.thing
        self._note_change(node)
        self._touch(node)

    def _fill(self, node: int, content: Content) -> None:
        if isinstance(self._things.get(node), File):
            self._things[node] = File(content)
            self._note_change(node)
            self._touch(node)

    def _put(self, edit: Put) -> None:
        if edit.directory in self._entries and edit.node != ROOT and self.is_known(edit.node):
            for place in self._places.get(edit.node, ()) if edit.node in self._entries else ():
                self._drop(*place)
            self._drop(edit.directory, edit.name)
            self._entries[edit.directory] = {**self._entries[edit.directory], edit.name: edit.node}
            self._places[edit.node] = (*self._places.get(edit.node, ()), (edit.directory, edit.name))
            self._note_change(edit.directory)
            self._spoil(edit.directory)

    def _drop(self, directory: int, name: str) -> None:
        node = self.node_at(directory, name)
        if node is None:
            return
        self._entries[directory] = {other: kept for other, kept in self._entries[directory].items() if other != name}
        self._places[node] = tuple(place for place in self._places[node] if place != (directory, name))
        self._note_change(directory)
        self._spoil(directory)

    def _note_change(self, node: int) -> None:
        """A file has other bytes, or a directory other names; a new name of its own changes neither. The tree above knows it too."""
        self._changes += 1
        self._changed[node] = self._changes

    def _age(self, edit: Age) -> None:
        younger = self._changed.get(edit.younger)
        if younger is not None and edit.node in self._changed:
            others = (changed for node, changed in self._changed.items() if changed < younger and node != edit.node)
            self._changed[edit.node] = (max(others, default=0) + younger) / 2
            self._touch(edit.node)

    def _touch(self, node: int) -> None:
        for directory, _ in self._places.get(node, ()):
            self._spoil(directory)

    def _spoil(self, directory: int) -> None:
        """Forget the trees that hold a directory; where one is forgotten already, so are those above."""
        while self._branches.pop(directory, None) is not None and (places := self._places.get(directory)):
            directory = places[0][0]
