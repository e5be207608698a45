"""Who has which file open for writing. Nobody tells us of a ``close``: before each entry we look whether they still have."""
# ruff: noqa: PTH116 - the kernel's paths are bytes, and pathlib knows only text

import os
from collections.abc import Iterator

from harness.supervision.recorder.nodes import Node, Nodes, key_of


class Handle:
    """One opening of a file for writing, as one descriptor of one process."""

    __slots__ = ("node", "number")

    def __init__(self, number: int, node: Node) -> None:
        self.number, self.node = number, node


class Handles:
    """The handles that are believed open, by process and descriptor."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._open: dict[tuple[int, int], Handle] = {}
        self._last_number = 0

    def find(self, process: int, descriptor: int) -> Handle | None:
        """The handle that a descriptor of a process is."""
        return self._open.get((process, descriptor))

    def number(self) -> int:
        """The next one."""
        self._last_number += 1
        return self._last_number

    def put(self, process: int, descriptor: int, handle: Handle) -> None:
        """It is open from now on."""
        self._open[process, descriptor] = handle
        handle.node.handles += 1

    def take(self, process: int, descriptor: int) -> Handle:
        """It is open no longer."""
        handle = self._open.pop((process, descriptor))
        handle.node.handles -= 1
        self._nodes.release(handle.node)
        return handle

    def closed(self) -> Iterator[tuple[int, Handle]]:
        """Take out those that their process has no longer, with its id.

        A descriptor that was closed and is a reader of the same file now is known by the permissions of its link in ``/proc``; one that is
        a writer again has come to us first.
        """
        for process, descriptor in list(self._open):
            if not _is_open(process, descriptor, self._open[process, descriptor].node):
                yield process, self.take(process, descriptor)


def _is_open(process: int, descriptor: int, node: Node) -> bool:
    path = b"/proc/%d/fd/%d" % (process, descriptor)
    try:
        return bool(os.lstat(path).st_mode & 0o200) and key_of(os.stat(path)) == node.key
    except OSError:
        return False
