"""What the operations have made of the directory: its files by number, found by their inode, named by their place."""

import os
import stat
from typing import Literal

from harness.supervision.recorder.pieces import Pieces

Key = tuple[int, int]
"""Device and inode: which file it is while it exists; an inode is used again once its file is gone."""

Kind = Literal["file", "directory", "link"]

ABOVE, ROOT = -1, 0
"""Numbers of the directory that holds the checkpoint directory, and of that itself."""


def key_of(status: os.stat_result) -> Key:
    """Which file it is."""
    return (status.st_dev, status.st_ino)


def kind_of(mode: int) -> Kind | None:
    """What it is; None for a pipe, socket or device, which hold no data."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else None


class Node:
    """A file, directory or symbolic link.

    Attributes:
        names: Its places.
        handles: How many writers are open on it.
        was: The last path of a file that is written to and has none.
    """

    __slots__ = ("children", "handles", "key", "kind", "names", "number", "pieces", "target", "was")

    def __init__(self, number: int, key: Key, kind: Kind, target: bytes = b"") -> None:
        self.number, self.key, self.kind, self.target = number, key, kind, target
        self.names: list[tuple[Node, bytes]] = []
        self.children: dict[bytes, Node] = {}
        self.pieces = Pieces()
        self.handles, self.was = 0, b"."


Holder = tuple[Node, bytes]
"""A directory and a name in it."""


class Nodes:
    """The checkpoint directory ``name`` in the directory ``above``, and all that is in it."""

    def __init__(self, above: Key, name: bytes) -> None:
        self._by_key: dict[Key, Node] = {}
        self._last_number = ROOT
        self.above = Node(ABOVE, above, "directory")
        self._by_key[above] = self.above
        self.name = name

    @property
    def root(self) -> Node | None:
        """The checkpoint directory; None when the job has taken it away."""
        return self.above.children.get(self.name)

    def all(self) -> list[Node]:
        """All that has a name below the checkpoint directory."""
        found = [self.root] if self.root is not None else []
        for node in found:
            found += node.children.values()
        return list(dict.fromkeys(found[1:]))

    def find(self, key: Key) -> Node | None:
        """The node of a file."""
        return self._by_key.get(key)

    def make(self, key: Key, kind: Kind, where: Holder | None = None, *, target: bytes = b"") -> Node:
        """A new node, with a name unless it has none; whoever had its inode before is gone."""
        is_root = where is not None and where[0] is self.above
        if not is_root:
            self._last_number += 1
        node = Node(ROOT if is_root else self._last_number, key, kind, target)
        self._by_key[key] = node
        if where is not None:
            self.put(node, *where)
        return node

    def put(self, node: Node, holder: Node, name: bytes) -> None:
        """Give it a name."""
        holder.children[name] = node
        node.names.append((holder, name))

    def remove(self, holder: Node, name: bytes) -> Node:
        """Take a name away, and of a directory all that is below it."""
        node = holder.children[name]
        for child in list(node.children):
            self.remove(node, child)
        if node.handles:
            node.was = self.path(holder, name)
        del holder.children[name]
        node.names.remove((holder, name))
        self.release(node)
        return node

    def move(self, holder: Node, name: bytes, to: Holder) -> Node:
        """Give it another name; what had that name loses it."""
        if to[1] in to[0].children:
            self.remove(*to)
        node = holder.children.pop(name)
        node.names.remove((holder, name))
        self.put(node, *to)
        return node

    def exchange(self, one: Holder, other: Holder) -> None:
        """Let two names change their nodes."""
        first, second = one[0].children.pop(one[1]), other[0].children.pop(other[1])
        first.names.remove(one)
        second.names.remove(other)
        self.put(first, *other)
        self.put(second, *one)

    def release(self, node: Node) -> None:
        """Forget it if it has neither a name nor a writer: its inode is free for another file."""
        if not node.names and not node.handles and self._by_key.get(node.key) is node:
            del self._by_key[node.key]

    def path(self, holder: Node, name: bytes) -> bytes:
        """Relative to the checkpoint directory, which is ``.`` itself."""
        parts: list[bytes] = []
        while holder is not self.above:
            parts.append(name)
            holder, name = holder.names[0]
        return b"/".join(reversed(parts)) or b"."

    def path_of(self, node: Node) -> bytes:
        """One of its paths; empty: it has none."""
        return self.path(*node.names[0]) if node.names else b""
