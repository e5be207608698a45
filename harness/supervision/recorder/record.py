"""The state of a recording: what is in the directory, who writes to it, and the log of both."""
# ruff: noqa: PTH115, PTH116, PTH118, PTH119, PTH120 - the kernel's paths are bytes, and pathlib knows only text

import os
from collections.abc import Iterator, Mapping

from harness.supervision.path_classes import path_class
from harness.supervision.recorder.ages import set_ages
from harness.supervision.recorder.caller import CHUNK_SIZE, Caller, ElsewhereError
from harness.supervision.recorder.handles import Handle, Handles
from harness.supervision.recorder.nodes import ROOT, Holder, Key, Node, Nodes, key_of, kind_of
from harness.supervision.recorder.operation_log import OperationLog, as_text
from harness.supervision.recorder.staged import Staged

OWNER_OF: Mapping[str, int] = {"file": 0o600, "directory": 0o700}
"""Rights that decide whether a recovery can read and write."""

MARKING = (b"user.", b"trusted.")
"""Attributes that a job sets; those of security and of access lists a copy takes along. Source: xattr(7)."""

NOTHING: Mapping[str, bool] = {}
"""Of an opening there is nothing more to be told."""


class Record:
    """Everything that handlers of calls change.

    Attributes:
        numbers: Those of the system calls, by name.
        unsure: Files whose content may change without a call.
        last_made: What each thread has made, or written to, last.
    """

    def __init__(self, root: bytes, log: OperationLog, numbers: dict[str, int]) -> None:
        """Raises OSError when ``root`` (a real path) cannot be looked into."""
        self.root, self.log, self.numbers = root, log, numbers
        self.device = os.stat(root).st_dev
        self.nodes = Nodes(key_of(os.stat(os.path.dirname(root))), os.path.basename(root))
        self.handles = Handles(self.nodes)
        self.unsure: set[Node] = set()
        self.staged = Staged(self.device)
        self.last_made: dict[int, Node] = {}
        self._more_names: list[Holder] = []
        self._said: set[tuple[str, str]] = set()

    # ---- entries

    def note(self, kind: str, caller: Caller, **fields: object) -> None:
        """Log what a caller did; what was closed before comes first."""
        self.log_closed()
        self.log.append(kind, process=caller.process, thread=caller.thread, **fields)

    def log_closed(self) -> None:
        """Log the handles that are no longer open."""
        for process, handle in self.handles.closed():
            self.log.append("close", process=process, node=handle.node.number, handle=handle.number)

    def announce(self, kind: str, caller: Caller, *, node: Node | None = None, holder: Holder | None = None) -> None:
        """Said before an operation is done that is about to succeed; a record that holds callers (``supervision.stops``) raises here.

        Args:
            kind: What it is, as its entry will say.
            caller: Whose.
            node: What it is done to.
            holder: Where, when it is done to a name.
        """

    def note_blind(self, what: str, detail: str, *, path: bytes = b"", thread: int = 0, once_alike: bool = False) -> None:
        """Say that something could not be seen: once for each path, or for all paths of a class."""
        said = (what, detail + path_class(as_text(path)) if once_alike else as_text(path) or detail)
        if said not in self._said:
            self._said.add(said)
            self.log.append("blind", what=what, detail=detail, path=as_text(path), thread=thread)

    def note_refused(self, name: str, *, thread: int) -> None:
        """Say, once, that something was refused which could not be followed."""
        if ("refused", name) not in self._said:
            self._said.add(("refused", name))
            self.log.append("refused", call=name, thread=thread)

    def open_handle(
        self, caller: Caller, descriptor: int | None, node: Node, *, kind: str = "open", told: Mapping[str, bool] = NOTHING
    ) -> int:
        """Log a new handle for what a descriptor has just become; None: its caller is gone, and has it no longer."""
        if descriptor is not None:
            self.close_handle(caller, descriptor)
        if kind == "create" or told.get("truncates"):
            self.last_made[caller.thread] = node
        number = self.handles.number()
        path = self.nodes.path_of(node) or (b"" if kind == "create" else node.was)
        self.note(
            kind, caller, path=as_text(path), node=node.number, handle=number, **{name: True for name, is_so in told.items() if is_so}
        )
        if descriptor is None:
            self.note("close", caller, node=node.number, handle=number)
        else:  # only now: its caller may have closed it already, which is not to be logged before
            self.handles.put(caller.process, descriptor, Handle(number, node))
        return number

    def close_handle(self, caller: Caller, descriptor: int) -> None:
        """What had that descriptor is closed, since it is something else now."""
        if self.handles.find(caller.process, descriptor) is not None:
            closed = self.handles.take(caller.process, descriptor)
            self.note("close", caller, node=closed.node.number, handle=closed.number)

    def handle(self, caller: Caller, descriptor: int, node: Node) -> int:
        """The handle that writes through a descriptor; one that was inherited or duplicated is a handle of its own from now on."""
        known = self.handles.find(caller.process, descriptor)
        if known is not None and known.node is node:
            return known.number
        return self.open_handle(caller, descriptor, node)

    # ---- what is where

    def file_of(self, caller: Caller, status: os.stat_result, descriptor: int) -> Node:
        """The node that a descriptor of a caller is.

        Raises:
            ElsewhereError: When it is none of the directory.
        """
        node = self.nodes.find(key_of(status))
        if node is not None and node is not self.nodes.above and (node.names or not status.st_nlink):
            return node
        if status.st_dev != self.device or not status.st_nlink or kind_of(status.st_mode) is None:
            raise ElsewhereError
        return self._adopted(os.readlink(b"/proc/%d/fd/%d" % (caller.thread, descriptor)), key_of(status))

    def directory_of(self, descriptor: int) -> Node | None:
        """The node of a directory that we have open; None when it is elsewhere."""
        status = os.fstat(descriptor)
        node = self.nodes.find(key_of(status))
        if node is not None and node.kind == "directory":
            return node
        if status.st_dev != self.device:
            return None
        try:
            return self._adopted(os.readlink(b"/proc/self/fd/%d" % descriptor), key_of(status))
        except ElsewhereError:
            return None

    def _adopted(self, path: bytes, key: tuple[int, int]) -> Node:
        """Take in what lies in the directory although no call that we saw has put it there.

        Raises:
            ElsewhereError: When it does not lie there.
        """
        if not path.startswith(self.root + b"/"):
            raise ElsewhereError
        holder, place = self.nodes.root, self.root
        for name in path[len(self.root) + 1 :].split(b"/"):
            if holder is None:
                break
            self.settle((holder, name), _status(os.path.join(place, name)))
            holder, place = holder.children.get(name), os.path.join(place, name)
        node = self.nodes.find(key)
        if node is None:
            raise ElsewhereError
        return node

    def settle(self, where: Holder, status: os.stat_result | None) -> None:
        """Before a call acts on a name: if what is there is not what the operations have put there, somebody else has."""
        known = where[0].children.get(where[1])
        there = None if status is None or kind_of(status.st_mode) is None else status
        if status is not None and there is None:
            self.note_blind("call", "it is a pipe, a socket or a device, for which the log has no word", path=self.nodes.path(*where))
        if known is None and there is None:
            return
        if known is not None and there is not None and self._is_same(known, there):
            return
        path = self.nodes.path(*where)
        self.note_blind("foreign", "no call that was seen has put it there, or taken it away", path=path)
        if known is not None:
            self.log_departure(where)
        if there is not None:
            self.log_arrival(where)

    def _is_same(self, node: Node, status: os.stat_result) -> bool:
        """Whether what is there is the node; an inode that has been used again is told by its size, where that differs."""
        if node.key != key_of(status) or node.kind != kind_of(status.st_mode):
            return False
        return node.kind != "file" or node in self.unsure or node.pieces.size == status.st_size

    # ---- what was there, comes from outside, or goes there

    def log_arrival(self, where: Holder, *, process: int = 0, thread: int = 0) -> None:
        """Something has come to a name from outside."""
        items = self.take_in(where, came=True)
        if items:
            self.log.append("move-in", process=process, thread=thread, to=as_text(self.nodes.path(*where)), items=items)
        self.log_more_names(process=process, thread=thread)

    def log_more_names(self, *, process: int = 0, thread: int = 0) -> None:
        """Names of known files that have come among other things."""
        for holder, name in self._more_names:
            path = as_text(self.nodes.path(holder, name))
            self.log.append("link", process=process, thread=thread, to=path, node=holder.children[name].number)
        self._more_names.clear()

    def log_departure(self, where: Holder, *, process: int = 0, thread: int = 0) -> None:
        """What has a name has gone outside, or is gone; of the directory itself, all that is in it."""
        node = where[0].children[where[1]]
        leaving = [(node, name) for name in node.children] if node.number == ROOT else [where]
        for holder, name in leaving:
            path, number = as_text(self.nodes.path(holder, name)), holder.children[name].number
            self.log.append("move-out", process=process, thread=thread, path=path, node=number)
            self.staged.unsynced.update(_files_in(holder.children[name]))  # perhaps: were it to come back, nothing is claimed of it
        self.nodes.remove(*where)

    def take_in(self, where: Holder, *, came: bool = False) -> list[dict[str, object]]:
        """Make nodes of what lies at a name, with all that is below it, and store its data; parents first.

        One more name of a file that is known is no item, but a link that is to be logged after them.

        Args:
            where: The name.
            came: Whether it has come just now: marks that a recovery could go by are said.
        """
        items = list(self._taken(where, came=came))
        set_ages(items, self.nodes, self.real_path)
        return items

    def _taken(self, where: Holder, *, came: bool) -> Iterator[dict[str, object]]:
        path = self.real_path(where)
        status = _status(path)
        if status is None:
            self.note_blind("foreign", "it went away while it was looked at", path=self.nodes.path(*where))
            return
        kind = kind_of(status.st_mode)
        if kind is None:
            self.note_blind("call", "it is a pipe, a socket or a device, for which the log has no word", path=self.nodes.path(*where))
            return
        node = self.nodes.find(key_of(status))
        if node is not None and node.names and kind == "file":
            self.nodes.put(node, *where)
            self._more_names.append(where)
            return
        node = self.nodes.make(key_of(status), kind, where, target=os.readlink(path) if kind == "link" else b"")
        item: dict[str, object] = {"path": as_text(self.nodes.path(*where)), "node": node.number, "kind": kind}
        if kind == "link":
            item["target"] = as_text(node.target)
        if kind == "file":
            item["data"] = self._store_file(node, path)
            item |= self._staging_of(node)
        if came:
            self._look_at_marks(node, path, status.st_mode)
        if node.number != ROOT:
            yield item
        if kind == "directory":
            for name in self._names_in(node, path):
                yield from self._taken((node, name), came=came)

    def _look_at_marks(self, node: Node, path: bytes, mode: int) -> None:
        """Of what came: nothing of it is kept that a recovery could go by."""
        where = self.nodes.path_of(node)
        if node.kind != "link" and OWNER_OF[node.kind] & ~mode:
            detail = "it comes with fewer rights for its owner, and modes are not kept"
            self.note_blind("call", detail, path=where, once_alike=True)
        for name in _attributes_of(path):
            if name.startswith(MARKING):
                self.note_blind("call", f"it comes with {as_text(name)}, and attributes are not kept", path=where, once_alike=True)

    def _staging_of(self, node: Node) -> dict[str, object]:
        """What is known of a file that came from outside."""
        if node.key in self.staged.unseen:
            self.unsure.add(node)
            self.note_blind("mapped", "it was mapped, shared and writable, before it came", path=self.nodes.path_of(node))
        is_unsynced = node.key in self.staged.unsynced
        self.staged.unsynced.discard(node.key)
        return {"unsynced": True} if is_unsynced else {}

    def _names_in(self, node: Node, path: bytes) -> list[bytes]:
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            self.note_blind("call", f"it cannot be read: {error.strerror}", path=self.nodes.path_of(node))
            return []

    def real_path(self, where: Holder) -> bytes:
        """A name as a path of ours."""
        path = self.nodes.path(*where)
        return self.root if path == b"." else os.path.join(self.root, path)

    def _store_file(self, node: Node, path: bytes) -> tuple[int, int]:
        start = self.log.size
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.unsure.add(node)
            self.note_blind("call", f"it cannot be read: {error.strerror}", path=self.nodes.path_of(node))
            return (start, 0)
        try:
            for chunk in chunks_of(descriptor, 0, os.fstat(descriptor).st_size):
                self.log.store(chunk)
        finally:
            os.close(descriptor)
        size = self.log.size - start
        if size:
            node.pieces.write(0, size, start)
        return (start, size)


def _attributes_of(path: bytes) -> list[bytes]:
    try:
        return [os.fsencode(name) for name in os.listxattr(path, follow_symlinks=False)]
    except OSError:  # many a storage has none
        return []


def _files_in(node: Node) -> Iterator[Key]:
    """A file, or all that are below a directory."""
    if node.kind == "file":
        yield node.key
    for child in node.children.values():
        yield from _files_in(child)


def chunks_of(descriptor: int, offset: int, size: int) -> Iterator[memoryview]:
    """Some of a file, as far as it is there."""
    buffer = memoryview(bytearray(min(size, CHUNK_SIZE)))
    end = offset + size
    while offset < end:
        count = os.preadv(descriptor, [buffer[: end - offset]], offset)
        if not count:
            return
        yield buffer[:count]
        offset += count


def _status(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
