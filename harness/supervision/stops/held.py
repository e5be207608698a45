"""The record of a job that is held at operations: what is in the directory, and whom an operation holds; nothing is kept of the data."""

import json
import os

from harness.supervision.recorder.caller import Caller
from harness.supervision.recorder.nodes import Holder, Node
from harness.supervision.recorder.operation_log import OperationLog, as_text
from harness.supervision.recorder.record import Record
from harness.supervision.recorder.speech import Speech
from harness.supervision.stops.counting import Stop, Stops
from harness.supervision.stops.ranks import Ranks


class HeldError(Exception):
    """The caller is held before its operation, which has not been done; ``path`` is what it is about to act on."""

    def __init__(self, stops: list[Stop], path: str) -> None:
        self.stops, self.path = stops, path
        super().__init__(path)


class CountingLog(OperationLog):
    """Takes the entries of a record, and counts them instead of writing them.

    Attributes:
        met: The stops that the last call has met, with the path it acted on; whoever answers the call takes them.
        acted_on: What the last operation that was announced acts on: entries of bytes name no path.
    """

    def __init__(self, stops: Stops, ranks: Ranks) -> None:
        """Nothing is written, so nothing is made."""
        self._stops, self._ranks = stops, ranks
        self.size = 0
        self.met: list[tuple[Stop, str]] = []
        self.acted_on = ""

    def append(self, kind: str, *, process: int = 0, thread: int = 0, **fields: object) -> None:
        """Count an operation, or hear a word; what came about without a process of the job is neither."""
        del thread
        if not process:
            return
        if kind == "event":
            self._hear(str(fields["line"]), process)
        elif self._stops.counts(kind):
            path = fields.get("to") if kind in ("link", "move-in") else fields.get("path")
            where = self.acted_on if path is None else str(path)
            self.met += [(stop, where) for stop in self._stops.after(kind, where, self._ranks.of(process))]

    def store(self, data: memoryview) -> None:
        """The size alone."""
        self.size += len(data)

    def read(self, start: int, size: int) -> bytes:
        """Nothing was kept."""
        raise NotImplementedError(f"{size} bytes from {start} were not kept")

    def _hear(self, line: str, process: int) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict) or not isinstance(said.get("event"), str):
            return
        rank = said.get("rank", 0)
        rank = rank if isinstance(rank, int) else 0
        self._ranks.say(process, rank)
        self._stops.hear(said["event"], rank)


class HeldRecord(Record):
    """Holds whoever is about to do an operation that was asked for."""

    log: CountingLog

    def __init__(self, root: bytes, log: CountingLog, numbers: dict[str, int], *, stops: Stops, ranks: Ranks) -> None:
        """Raises OSError when ``root`` cannot be looked into."""
        super().__init__(root, log, numbers)
        self.stops, self._ranks = stops, ranks

    def announce(self, kind: str, caller: Caller, *, node: Node | None = None, holder: Holder | None = None) -> None:
        """See ``Record``.

        Raises:
            HeldError: When the caller is to be held here.
        """
        if not self.stops.counts(kind):
            if kind == "write" and self.stops.counts("sync"):  # through O_SYNC it is both, and only the write is announced
                self.log.acted_on = self._path(node, holder)
            return
        path = self._path(node, holder)
        self.log.acted_on = path
        met = self.stops.before(kind, path, self._ranks.of(caller.process))
        if met:
            raise HeldError(met, path)

    def _path(self, node: Node | None, holder: Holder | None) -> str:
        if holder is not None:
            return as_text(self.nodes.path(*holder))
        if node is None:
            return ""
        return as_text(self.nodes.path_of(node) or node.was)

    def _store_file(self, node: Node, path: bytes) -> tuple[int, int]:
        """Its size alone, by which an inode that is used again is told."""
        try:
            size = _size_of(path)
        except OSError:
            self.unsure.add(node)
            return (0, 0)
        if size:
            node.pieces.write(0, size, 0)
        return (0, size)


class Words(Speech):
    """Hears the event file alone: what is printed holds nobody."""

    def hears(self, key: tuple[int, int]) -> bool:
        """See ``Speech``."""
        return key == self.events


def _size_of(path: bytes) -> int:
    return os.lstat(path).st_size
