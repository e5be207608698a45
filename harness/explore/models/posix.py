"""``posix``: everything that was done is there, in order, whatever dies.

True of a killed process, whose page cache survives it. Of a lost node it is what a storage would have to promise that makes each operation
durable at once (``durable-at-once``). Only a write is not done at once: the kernel copies it page by page and looks for a kill before each,
so that one of several pages may be cut between any two. Of these cuts three are looked at: in the middle, after the first page, and before
the last. Not modelled: larger pages, or several that are copied at once, which leave fewer places to cut at; data that a process holds in
memory.

Source: Linux ``mm/filemap.c`` (``generic_perform_write``, ``fatal_signal_pending``), ``fs/iomap/buffered-io.c`` (``iomap_write_iter``).
"""

from collections.abc import Iterator

from harness.explore.file_system import Write
from harness.explore.models.model import PREFIX, Candidate, Demand, StorageModel
from harness.explore.models.rows import DURABLE_AT_ONCE
from harness.explore.operations import Wrote
from harness.explore.replay import Replay, Step
from harness.explore.states import Cause, Scope

PAGE_SIZE = 4096
"""The smallest there is, in bytes: some machines have 16 or 64 KiB, where a write may be cut at every fourth or sixteenth of them."""

MIDDLE, FIRST, LAST = "half of its pages", "its first page", "all but its last page"

CUTS = frozenset({MIDDLE, FIRST, LAST})
"""Parts of a write that a kill leaves."""


def prefixes(replay: Replay, _scope: Scope) -> Iterator[Candidate]:
    """Everything up to each step."""
    system = replay.initial.fork()
    yield Candidate(0, PREFIX, system)
    for step in replay.steps:
        system.apply(step.edits)
        yield Candidate(step.at, PREFIX, system)


def cut_writes(replay: Replay, _scope: Scope, _missing_max: int, demand: Demand) -> Iterator[Candidate]:
    """Everything up to a write of several pages, and some of these."""
    system = replay.initial.fork()
    for step in replay.steps:
        for part, edit in _cuts_of(step):
            cause = Cause(kind="torn", operation=step.at, part=part)
            if demand.wants(cause, step.at):
                cut = system.fork()
                cut.apply([edit])
                yield Candidate(step.at, cause, cut)
        system.apply(step.edits)


def _cuts_of(step: Step) -> Iterator[tuple[str, Write]]:
    """What can be there of a write, and how it is called; the most telling first."""
    write = next((edit for edit in step.edits if isinstance(edit, Write)), None)
    if write is None or not isinstance(step.entry, Wrote):
        return
    begin, size = write.offset, write.span[1]
    first, last = begin // PAGE_SIZE + 1, (begin + size - 1) // PAGE_SIZE
    if first <= last:
        middle = max(first, (begin + size // 2) // PAGE_SIZE)
        names = {middle: MIDDLE} | {last: LAST} | {first: FIRST}  # of the same cut the last name
        for page, name in names.items():
            yield name, Write(write.node, begin, (write.span[0], page * PAGE_SIZE - begin))


POSIX = StorageModel(
    name="posix",
    scopes=("process", "node"),
    whole=prefixes,
    partial=cut_writes,
    same={"node": "process"},
    rests_on={"node": DURABLE_AT_ONCE},
)
