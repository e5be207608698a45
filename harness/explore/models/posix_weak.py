"""``posix-weak``: what was not synced may be missing or torn although later operations are there. After ALICE (OSDI 2014).

A killed process leaves what it leaves under ``posix``. A lost node leaves that, or a prefix with one operation missing, or a write of which
only a part is there, or what is durable and nothing else. An operation on a file is durable once the file is synced after it, an entry of a
directory once the directory is; ``sync`` makes everything durable. A rename is atomic: one synced directory of two suffices. Where others
may be missing at once, ``Cause.part`` names them.

Parts of a write: ``size``: the file has its new size, the old bytes stay and the new ones are zeros; ``zeros``: all of its bytes are zeros;
``half``: the first half of its bytes; ``empty``: nothing, of a file that came from outside and was not synced there; and what a kill leaves
of it. An operation no longer counts as missing once later ones on each of its entries, or the end of the file, have made it moot, even
where one of these is missing, too.

Not modelled: garbage in place of data; whether the names in a directory that came from outside had been synced there
(``names-moved-in-are-durable``); what else a journaling file system orders, like the entry of a new file with its fsync, or data with its
rename (ext4's ``auto_da_alloc``).

Source: https://www.usenix.org/conference/osdi14/technical-sessions/presentation/pillai
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.explore.content import ZEROS
from harness.explore.file_system import Drop, Edit, FileSystem, Put, Resize, Write
from harness.explore.models.durability import NEVER, moot_from
from harness.explore.models.model import Candidate, Demand, StorageModel
from harness.explore.models.posix import cut_writes, prefixes
from harness.explore.models.rows import NAMES_MOVED_IN_ARE_DURABLE, UNORDERED_UNTIL_SYNCED, Row
from harness.explore.operations import MovedIn, Synced
from harness.explore.replay import Replay, Step
from harness.explore.states import Cause, Scope

_ROWS = frozenset({UNORDERED_UNTIL_SYNCED})


def _prefixes(replay: Replay, scope: Scope) -> Iterator[Candidate]:
    if scope == "process":
        return prefixes(replay, scope)
    rows = _Arrivals(replay)
    return (replace(each, rows=each.rows | rows.at(each.at)) for each in prefixes(replay, scope))


class _Arrivals:
    """From when on something rests on what was done elsewhere."""

    def __init__(self, replay: Replay) -> None:
        arrivals = (step.at for step in replay.steps if isinstance(step.entry, MovedIn) and _brings_names(step.entry))
        self._first = next(arrivals, NEVER)

    def at(self, at: int) -> frozenset[Row]:
        """The rows of a state."""
        return frozenset({NAMES_MOVED_IN_ARE_DURABLE} if at >= self._first else ())


def _brings_names(entry: MovedIn) -> bool:
    """Whether a directory with something in it came; an empty one has no name to lose."""
    return len(entry.items) > 1


def _omissions(replay: Replay, scope: Scope, missing_max: int, demand: Demand) -> Iterator[Candidate]:
    cut = cut_writes(replay, scope, missing_max, demand)
    if scope == "process":
        return cut
    rows = _Arrivals(replay)
    cut = (replace(each, rows=each.rows | rows.at(each.at)) for each in cut)
    weakness = _Weakness(replay, demand)
    return itertools.chain(weakness.branches(_Branch(replay.initial.fork(), 0, missing_max)), weakness.losses(replay.initial), cut)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A file system before ``steps[first]``, from which ``left`` more operations may be missing.

    Attributes:
        missing: Why it differs already.
        ends: Index of the entry from which on what is missing is moot; 0: nothing is missing.
    """

    system: FileSystem
    first: int
    left: int
    missing: Cause | None = None
    ends: int = 0


class _Weakness:
    """The steps of a replay, and for each from which entry on it can no longer be missing."""

    def __init__(self, replay: Replay, demand: Demand) -> None:
        self._steps, self._moot, self._demand = replay.steps, moot_from(replay), demand
        self._arrivals = _Arrivals(replay)
        turns = None if demand.turns is None else frozenset(demand.turns)
        self._turns = [index for index, step in enumerate(replay.steps) if turns is None or step.at in turns]

    def branches(self, branch: _Branch) -> Iterator[Candidate]:
        """Leave out each step in turn, and play what follows."""
        for index in range(branch.first, len(self._steps)):
            step = self._steps[index]
            if branch.ends and step.at >= branch.ends:
                return
            for part, edits, is_of_data in _remains(step):
                moot = (self._moot.data if is_of_data else self._moot.names)[index]
                ends = min(moot, branch.ends or moot)
                if ends > step.at:
                    system = branch.system.fork()
                    system.apply(edits)
                    cause = _cause(step, part, branch.missing)
                    if part and self._demand.wants(cause, step.at):
                        yield Candidate(step.at, cause, system, _ROWS | self._arrivals.at(step.at))
                    yield from self._ends(_Branch(system.fork(), index + 1, 0, cause, ends))
                    if branch.left > 1:
                        yield from self.branches(_Branch(system, index + 1, branch.left - 1, cause, ends))
            branch.system.apply(step.edits)

    def losses(self, initial: FileSystem) -> Iterator[Candidate]:
        """Leave out all that is not durable, whenever that or what was promised is another than before."""
        played: list[tuple[int, Edit, frozenset[int]]] = []  # number of the step, edit, and whose sync makes it durable; nobody's: it is
        for index, step in enumerate(self._steps):
            if isinstance(step.entry, Synced):
                played = [(number, edit, _unsynced(nodes, step.entry)) for number, edit, nodes in played]
            played += [(index, edit, nodes) for edit, nodes in _with_nodes(step.edits)]
            if isinstance(step.entry, Synced) or step.save is not None:
                yield from self._loss(initial, step.at, played)

    def _loss(self, initial: FileSystem, at: int, played: Sequence[tuple[int, Edit, frozenset[int]]]) -> Iterator[Candidate]:
        missing = list(dict.fromkeys(number for number, _, nodes in played if nodes))
        if len(missing) < 2:
            return
        first, *others = [number for number in missing if self._is_missed(number, at)] or missing
        part = " ".join(f"and {self._steps[number].at}" for number in others)
        cause = Cause(kind="unsynced", operation=self._steps[first].at, part=part)
        if self._demand.wants(cause, at):
            system = initial.fork()
            system.apply(edit for _, edit, nodes in played if not nodes)
            yield Candidate(at, cause, system, _ROWS | self._arrivals.at(at))

    def _is_missed(self, number: int, at: int) -> bool:
        return max(self._moot.names[number], self._moot.data[number]) > at

    def _ends(self, branch: _Branch) -> Iterator[Candidate]:
        assert branch.missing is not None
        played = branch.first
        for index in self._asked(branch.first):
            at = self._steps[index].at
            if at >= branch.ends:
                return
            if self._demand.wants(branch.missing, at):
                for step in self._steps[played : index + 1]:
                    branch.system.apply(step.edits)
                played = index + 1
                yield Candidate(at, branch.missing, branch.system, _ROWS | self._arrivals.at(at))

    def _asked(self, first: int) -> Iterator[int]:
        """Steps at which the candidate may be wanted: the first, and the turns after it."""
        if first < len(self._steps):
            yield first
        yield from self._turns[bisect_right(self._turns, first) :]


def _with_nodes(edits: Sequence[Edit]) -> Iterator[tuple[Edit, frozenset[int]]]:
    """Each edit, and the files or directories of which one is to be synced after it; none: it gives no name and changes no byte."""
    directories = frozenset(edit.directory for edit in edits if isinstance(edit, Put | Drop))
    for edit in edits:
        if isinstance(edit, Put | Drop):
            yield edit, directories
        else:
            yield edit, frozenset({edit.node} if isinstance(edit, Write | Resize) else ())


def _unsynced(nodes: frozenset[int], entry: Synced) -> frozenset[int]:
    return frozenset() if entry.scope == "all" or entry.node in nodes else nodes


def _cause(step: Step, part: str, before: Cause | None) -> Cause:
    if before is None:
        return Cause(kind="torn" if part else "omitted", operation=step.at, part=part)
    also = f"{step.at} {part}".rstrip()
    return Cause(kind=before.kind, operation=before.operation, part=f"{before.part} and {also}".lstrip())


def _remains(step: Step) -> Iterator[tuple[str, tuple[Edit, ...], bool]]:
    """What there can be of a step: all but its names, or a part of a write; and whether it is bytes that are missing."""
    if any(isinstance(edit, Put | Drop) for edit in step.edits):
        yield "", tuple(edit for edit in step.edits if not isinstance(edit, Put | Drop)), False
    elif step.edits:
        yield "", (), True
    written = [at for at, edit in enumerate(step.edits) if isinstance(edit, Write)]
    for number, at in enumerate(written, start=1):
        which = f", file {number} of {len(written)}" if len(written) > 1 else ""
        for part, edits in _parts(step.edits[at]):
            if part != "empty" or isinstance(step.entry, MovedIn):
                yield part + which, (*step.edits[:at], *edits, *step.edits[at + 1 :]), True


def _parts(write: Edit) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    if not isinstance(write, Write) or not write.span[1]:
        return
    (start, size), half = write.span, write.span[1] // 2
    yield "empty", ()
    yield "size", (Resize(write.node, write.offset + size, grows=True),)
    yield "zeros", (Write(write.node, write.offset, (ZEROS, size)),)
    if half:
        yield "half", (Write(write.node, write.offset, (start, half)),)


POSIX_WEAK = StorageModel(name="posix-weak", scopes=("process", "node"), whole=_prefixes, partial=_omissions)
