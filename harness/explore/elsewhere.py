"""What a job writes outside of the checkpoint directory while it saves: a part of the checkpoint, or nothing that recovery needs.

Only the job knows which. It is taken for a part of the checkpoint where every save, between its own two words, writes there anew, and where
what lies below the directory names it: a pointer to a path, or a link. Else it is told, and left to the reader. What is only appended to,
or looks like a cache, counts where it is named.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.explore.content import Content
from harness.explore.data_file import DataFile
from harness.explore.judging.expected import EntryReader
from harness.explore.operation_log import OperationLog
from harness.explore.operations import AnyEntry, Elsewhere, Extent, Item, MovedIn, Symlinked, Wrote, real_path
from harness.history import SaveBegun, SaveEnded
from harness.supervision.path_classes import path_class

NAMING_BYTES_MAX = 64 << 10
"""A write that names a path is a pointer or an index, and no larger."""

NAMED_BYTES_MAX = 16 << 20
"""Of all such writes together: so much is searched in an instant."""

SEARCHED_BYTES_MAX = 4 << 30
"""Of all names in all of these bytes: some seconds."""


@dataclass(frozen=True, slots=True)
class WrittenElsewhere:
    """What was found.

    Attributes:
        blind: Why what follows from the recording is not the whole truth; empty: no such thing.
        notes: What a reader should know.
    """

    blind: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Save:
    """When a save may have been written: the entries between; ``is_told``: it said when it began."""

    step: int
    begins: int
    ends: int
    is_told: bool


def written_elsewhere(log: OperationLog, patterns: Mapping[str, str] | None, data: DataFile) -> WrittenElsewhere:
    """Look at what was written while saves were in flight.

    Args:
        log: The recording.
        patterns: Of a job that does not speak the protocol; None: it speaks it.
        data: Of the recording.
    """
    saves = _saves(log, EntryReader(patterns))
    found = _found(log)
    if not found:
        return WrittenElsewhere()
    saved = [each for each in found if any(save.begins <= at < save.ends for save in saves for at in each.at)]
    named = _named(log, [each.path for each in saved], [each.path for each in found], data)
    if named is None:
        return WrittenElsewhere(blind=(f"what is saved could name any of {len(saved):,} files {_WHERE}, too many to look for: {_UNKNOWN}",))
    if named:
        return WrittenElsewhere(blind=(f"what is saved names {_told(named)}, {_WHERE}: {_UNKNOWN}",))
    by_save = [[each for each in saved if not each.quiet and any(save.begins <= at < save.ends for at in each.at)] for save in saves]
    paths = list(dict.fromkeys(each.path for found in by_save for each in found))
    if not paths:
        return WrittenElsewhere()
    if all(save.is_told and found for save, found in zip(saves, by_save, strict=True)):
        return WrittenElsewhere(blind=(f"each save writes {_told(paths)}, too, {_WHERE}: {_UNKNOWN}",))
    return WrittenElsewhere(notes=(f"while it saved, the job wrote {_told(paths)}, {_WHERE}: if recovery needs that, {_UNKNOWN}",))


_WHERE = "outside of the checkpoint directory"
_UNKNOWN = "what a crash leaves of it is not known"


def _told(paths: Sequence[str]) -> str:
    return f"`{paths[0]}`" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _found(log: OperationLog) -> list[Elsewhere]:
    return [entry for entry in log.entries if isinstance(entry, Elsewhere)]


def _saves(log: OperationLog, reader: EntryReader) -> list[_Save]:
    saves: list[_Save] = []
    begun, since = dict[int, int](), 0
    for entry in log.entries:
        for event in reader.events_of(entry):
            if isinstance(event, SaveBegun):
                begun.setdefault(event.step, entry.index)
            elif isinstance(event, SaveEnded):
                is_told = event.step in begun
                saves.append(_Save(event.step, begun.pop(event.step, since), entry.index, is_told))
                since = entry.index
    return saves


def _named(log: OperationLog, saved: Sequence[str], others: Sequence[str], data: DataFile) -> list[str] | None:
    """Those that something below the checkpoint directory names; None: too many to look for.

    Args:
        log: The recording.
        saved: Paths that were written while it saved.
        others: These, and those that were written at any other time: of them only the whole path is looked for, and links that lead there.
        data: Of the recording.
    """
    everything = _said(log, data)
    directories = {os.path.split(path)[0] for path in saved}
    if not everything:
        return []
    if len(saved) * len(everything) > SEARCHED_BYTES_MAX:
        return None
    own = [path for path in saved if any(real_path(name) in everything for name in _names(path, directories))]
    linked = _below_links(log, others)
    return list(dict.fromkeys((*own, *linked, *_whole_paths_in(everything, others))))


def _said(log: OperationLog, data: DataFile) -> bytes:
    """What may name a path; the slash of JSON that has a backslash before it is one."""
    said, left = list[bytes](), NAMED_BYTES_MAX
    for entry in (*log.header.initial, *log.entries):
        for target, extent in _pointers(entry):
            said.append(real_path(target))
            if extent.size <= min(NAMING_BYTES_MAX, left):
                said.append(data.read(Content.of(extent)))
                left -= extent.size
    return b"\0".join(filter(None, said)).replace(b"\\/", b"/")


def _pointers(entry: AnyEntry | Item) -> Iterator[tuple[str, Extent]]:
    if isinstance(entry, Symlinked):
        yield entry.target, Extent(0, 0)
    elif isinstance(entry, Wrote):
        yield "", entry.data
    elif isinstance(entry, Item):
        yield entry.target, entry.data
    elif isinstance(entry, MovedIn):
        for item in entry.items:
            yield item.target, item.data


def _below_links(log: OperationLog, paths: Sequence[str]) -> list[str]:
    """Those that lie in a directory to which a link leads."""
    tops = {os.path.normpath(Path(log.header.root, path).parent / target) for path, target in _links(log)} - {"/"}
    return [path for path in paths if any(path.startswith(f"{top}/") for top in tops)]


def _links(log: OperationLog) -> Iterator[tuple[str, str]]:
    """Paths of links below the checkpoint directory, and where they lead."""
    for entry in (*log.header.initial, *log.entries):
        for each in entry.items if isinstance(entry, MovedIn) else (entry,):
            if isinstance(each, Symlinked | Item) and each.target:
                yield each.path, each.target


def _whole_paths_in(everything: bytes, paths: Sequence[str]) -> Iterator[str]:
    """Those that are there with all of their directories; of most not even the first one is."""
    known: dict[str, bool] = {"/": True, "": True}

    def is_there(path: str) -> bool:
        if path not in known:
            known[path] = is_there(os.path.split(path)[0]) and real_path(path) in everything
        return known[path]

    return (path for path in paths if is_there(path))


def _names(path: str, directories: Collection[str]) -> Iterator[str]:
    """What can only mean this path: its own name or directory where another save has another one."""
    directory, name = os.path.split(path)
    if path_class(name) != name:
        yield name
    if len(directories) > 1 and path_class(directory) != directory:
        yield directory
