"""From when on an operation can no longer be missing after the loss of a node: it is durable, or something later has made it moot."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.explore.file_system import Drop, FileSystem, Place, Put, Resize, Write
from harness.explore.operations import Synced
from harness.explore.replay import Replay, Step

NEVER = 1 << 62
"""Beyond any entry of a log."""


@dataclass(frozen=True, slots=True)
class Moot:
    """For each step the index of the entry from which on what it does can no longer be missing; its own index where there is no such thing.

    Attributes:
        names: Of the names that it gives and takes.
        data: Of the bytes of files.
    """

    names: Sequence[int]
    data: Sequence[int]


def moot_from(replay: Replay) -> Moot:
    """Find it for each step."""
    pending = _Pending(replay)
    for number, step in enumerate(replay.steps):
        pending.take(number, step)
    return Moot(pending.names, pending.data)


class _Pending:
    """What is not durable yet.

    A step that changes several names, like a rename, is there or not as a whole: it is durable once one of its directories is synced after
    it, and moot only when each of its names stands for something else again.
    """

    def __init__(self, replay: Replay) -> None:
        self.names, self.data = ([step.at for step in replay.steps] for _ in range(2))
        self._system: FileSystem = replay.initial.fork()
        self._unsynced: dict[int, list[int]] = {}
        self._last: defaultdict[int, dict[str, int]] = defaultdict(dict)
        self._standing: dict[int, set[Place]] = {}
        self._named_in: defaultdict[int, set[int]] = defaultdict(set)

    def take(self, number: int, step: Step) -> None:
        """Go one step on."""
        if isinstance(step.entry, Synced):
            self._sync(step.entry, step.at)
        places = {(edit.directory, edit.name) for edit in step.edits if isinstance(edit, Put | Drop)}
        replaced = [node for place in places if (node := self._system.node_at(*place)) is not None]
        for place in places:
            self._supersede(place, step.at)
        self._system.apply(step.edits)
        for node in replaced:
            if not self._system.has_name(node):
                self._forget(node, step.at)
        self._keep(number, places, {edit.node for edit in step.edits if isinstance(edit, Write | Resize)})

    def _keep(self, number: int, places: set[Place], nodes: Iterable[int]) -> None:
        for place in places:
            self._last[place[0]][place[1]] = number
            self._named_in[place[0]].add(number)
            self._standing[number] = places
            self.names[number] = NEVER
        for node in nodes:
            self._unsynced.setdefault(node, []).append(number)
            self.data[number] = NEVER

    def _sync(self, entry: Synced, at: int) -> None:
        everything = entry.scope == "all"
        for node in [*self._unsynced] if everything else [entry.node]:
            self._settle_data(node, at)
        for directory in [*self._named_in] if everything else [entry.node]:
            for number in self._named_in.pop(directory, ()):
                _settle(self.names, number, at)

    def _supersede(self, place: Place, at: int) -> None:
        """A name stands for something else."""
        number = self._last[place[0]].pop(place[1], None)
        if number is not None:
            self._standing[number].discard(place)
            if not self._standing[number]:
                _settle(self.names, number, at)

    def _forget(self, node: int, at: int) -> None:
        """A file or directory lost its last name; names in it are no way to anything any more."""
        self._settle_data(node, at)
        for name in [*self._last[node]]:
            self._supersede((node, name), at)
        self._named_in.pop(node, None)

    def _settle_data(self, node: int, at: int) -> None:
        for number in self._unsynced.pop(node, ()):
            _settle(self.data, number, at)


def _settle(moot: list[int], number: int, at: int) -> None:
    moot[number] = min(moot[number], at)
