"""``gcsfuse-flat`` and ``gcsfuse-hns``: a bucket mounted by gcsfuse 3, without and with hierarchical namespace.

A killed process: its open files are published as they are, truncated, and a rename in flight is completed. A lost node, or the mount's own
process (``sidecar``): what is open was never there, or is the object of its last publication; in a flat bucket a rename of a directory
stops between any two objects. Each rule is a row of ``rows``, with its source.

Not modelled: that a descriptor of an open file, duplicated or inherited by a child, is closed before the last one, which flushes and
publishes a part (``closed-once``, on which all that is said of a lost node rests); that a file which is streamed is opened a second time
and read, which publishes it; that a kill cuts a write between two requests to the mount; caches and other mounts; ESTALE, EMFILE and other
errors that the job would have seen (``refused-by-mount``, ``rename-limit-suffices``); the moment between publication and rename of an open
file; that an empty directory in the way of a rename is removed first; the copy and the delete of a directory's own object as two steps;
mappings; a file that is cut by its path, which stays local until it is next closed.

Source: https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/docs/semantics.md
"""

from collections.abc import Iterator

from harness.explore.file_system import Drop, FileSystem, Make, Put
from harness.explore.models.model import PREFIX, Candidate, Demand, StorageModel
from harness.explore.models.published import GCSFUSE_REFUSES, TEMPORARY, Published, Writing, objects_below, split, target_of
from harness.explore.models.rows import (
    APPEARS_AT_CLOSE,
    BLOCKS_SUFFICE,
    CLOSED_ONCE,
    DIRECTORIES_ARE_IMPLIED,
    DIRECTORY_RENAME_IS_TORN,
    DIRECTORY_RENAME_ORDER,
    FILE_RENAME_IS_ATOMIC,
    FOLDER_RENAME_IS_ATOMIC,
    FSYNC_PUBLISHES_NOTHING,
    KILL_PUBLISHES,
    NOT_READ_BACK,
    OUT_OF_ORDER_PUBLISHES,
    REFUSED_BY_MOUNT,
    RENAME_GOES_ON,
    RENAME_LIMIT_SUFFICES,
    RENAME_PUBLISHES,
    SHRINKING_PUBLISHES,
    SIDECAR_LOSES_OPEN_FILES,
    STAGED_FSYNC_PUBLISHES,
    Row,
)
from harness.explore.operations import AnyEntry, Created, Opened, Renamed, Synced, Truncated, Wrote
from harness.explore.replay import Replay, Step
from harness.explore.states import Cause, Scope
from harness.explore.trees import DIRECTORY

BLOCKS = 4
"""Files that are streamed at once on a small machine: the default of ``write-global-max-blocks`` there."""


class _Mount(Published):
    """A bucket under gcsfuse."""

    refused = GCSFUSE_REFUSES

    def __init__(self, replay: Replay, *, has_folders: bool) -> None:
        super().__init__(replay)
        self._has_folders = has_folders
        self._crowded: set[int] = set()

    def before(self, entry: AnyEntry) -> None:
        """Publish early what is no longer a stream."""
        if isinstance(entry, Wrote | Truncated | Renamed) and (writing := self.writing(entry.node)) is not None:
            size = self.local.content_of(entry.node).size
            if isinstance(entry, Renamed):
                self._publish_early(entry.node, writing, RENAME_PUBLISHES)
            elif isinstance(entry, Wrote) and writing.is_streamed and entry.offset != size:
                self._publish_early(entry.node, writing, OUT_OF_ORDER_PUBLISHES)
            elif isinstance(entry, Truncated) and writing.is_streamed and entry.size < size:
                self._publish_early(entry.node, writing, SHRINKING_PUBLISHES)

    def after(self, entry: AnyEntry) -> None:
        """Publish at fsync what is staged; ``sync`` of everything is not known to reach the mount."""
        super().after(entry)
        if isinstance(entry, Created | Opened) and (writing := self.writing(entry.node)) is not None and writing.is_streamed:
            self._note_stream(entry, writing)
        if isinstance(entry, Synced) and entry.scope != "all" and (writing := self.writing(entry.node)) is not None:
            if writing.is_streamed:
                writing.rows |= {FSYNC_PUBLISHES_NOTHING} | ({BLOCKS_SUFFICE} if entry.node in self._crowded else set())
            else:
                self.publish(entry.node)
                writing.rows.add(STAGED_FSYNC_PUBLISHES)
        if isinstance(entry, Renamed):
            self.rows.update(self._rows_of_rename(entry))

    def _note_stream(self, entry: Created | Opened, writing: Writing) -> None:
        if entry.reads:
            writing.rows.add(NOT_READ_BACK)
        if isinstance(entry, Created) and sum(each.is_streamed for each in self.unpublished()) > BLOCKS:
            self._crowded.add(entry.node)

    def _publish_early(self, node: int, writing: Writing, row: Row) -> None:
        is_empty = writing.is_streamed and not self.local.content_of(node).size
        if not is_empty or row is RENAME_PUBLISHES:
            self.publish(node)
        writing.is_streamed = False
        writing.rows.add(row)

    def _rows_of_rename(self, entry: Renamed) -> set[Row]:
        if not self.local.is_directory(entry.node):
            return {FILE_RENAME_IS_ATOMIC}
        rows = {FOLDER_RENAME_IS_ATOMIC} if self._has_folders else {RENAME_LIMIT_SUFFICES}
        return rows | {REFUSED_BY_MOUNT} if self.has_unpublished_below(entry.to) else rows


def _whole(replay: Replay, scope: Scope, *, has_folders: bool) -> Iterator[Candidate]:
    mount = _Mount(replay, has_folders=has_folders)
    yield Candidate(0, PREFIX, mount.bucket)
    for step in replay.steps:
        mount.advance(step)
        yield _after_kill(mount, step) if scope == "process" else _after_loss(mount, step, scope)


def _after_kill(mount: _Mount, step: Step) -> Candidate:
    rows, cause = set(mount.rows), PREFIX
    if writings := mount.unpublished():
        rows |= {KILL_PUBLISHES}
        cause = Cause(kind="truncated", operation=writings[-1].since)
    if isinstance(step.entry, Renamed):
        rows.add(RENAME_GOES_ON)
    return Candidate(step.at, cause, mount.local, frozenset(rows))


def _after_loss(mount: _Mount, step: Step, scope: Scope) -> Candidate:
    rows, cause = set(mount.rows), PREFIX
    if writings := mount.unpublished():
        rows |= {APPEARS_AT_CLOSE}.union(*(writing.rows for writing in writings))
        cause = Cause(kind="vanished", operation=writings[-1].since)
    if scope == "sidecar":
        rows.add(SIDECAR_LOSES_OPEN_FILES)
    return Candidate(step.at, cause, mount.bucket, frozenset(rows))


def _torn_renames(replay: Replay, scope: Scope, _missing_max: int, demand: Demand) -> Iterator[Candidate]:
    """What a rename of a directory has moved when the mount is lost in it."""
    if scope == "process":
        return
    mount = _Mount(replay, has_folders=False)
    for step in replay.steps:
        target = target_of(step)
        if target is not None and mount.bucket.is_directory(target.node):
            rows = {*mount.rows, DIRECTORY_RENAME_IS_TORN, DIRECTORY_RENAME_ORDER, RENAME_LIMIT_SUFFICES, DIRECTORIES_ARE_IMPLIED}
            if scope == "sidecar":
                rows.add(SIDECAR_LOSES_OPEN_FILES)
            for part, system in moved_by_object(mount.bucket, target):
                cause = Cause(kind="renaming", operation=step.at, part=part)
                if demand.wants(cause, step.at):
                    yield Candidate(step.at, cause, system, frozenset(rows))
        mount.advance(step)


def moved_by_object(bucket: FileSystem, target: Put) -> Iterator[tuple[str, FileSystem]]:
    """Every state within the rename of a directory: its new object alone, then one object of the old one after the other moved."""
    system, source = bucket.fork(), target.node
    objects = objects_below(bucket, source)
    old, new = {"": source}, {"": TEMPORARY}
    emptied: set[str] = set()
    system.apply([Make(new[""], DIRECTORY), Put(target.directory, target.name, new[""])])
    yield f"object 0 of {len(objects)}", system
    for number, (path, node) in enumerate(objects, start=1):
        parent, name = split(path)
        if path.endswith("/"):
            old[path], new[path] = node, TEMPORARY - number
            system.apply([Make(new[path], DIRECTORY), Put(new[parent], name, new[path])])
            emptied.add(path)
            _prune(system, path, old, emptied)
        else:
            system.apply([Drop(old[parent], name), Put(new[parent], name, node)])
            _prune(system, parent, old, emptied)
        yield f"object {number} of {len(objects)}", system


def _prune(system: FileSystem, path: str, nodes: dict[str, int], emptied: set[str]) -> None:
    """A directory whose own object is gone is not seen without any object below it."""
    while path in emptied and not any(map(system.is_seen, system.names_in(nodes[path]).values())):
        parent, name = split(path)
        system.apply([Drop(nodes[parent], name)])
        path = parent


def _flat(replay: Replay, scope: Scope) -> Iterator[Candidate]:
    return _whole(replay, scope, has_folders=False)


def _folders(replay: Replay, scope: Scope) -> Iterator[Candidate]:
    return _whole(replay, scope, has_folders=True)


GCSFUSE_FLAT = StorageModel(
    name="gcsfuse-flat",
    scopes=("process", "sidecar", "node"),
    whole=_flat,
    partial=_torn_renames,
    same={"sidecar": "node"},
    rests_on={"sidecar": SIDECAR_LOSES_OPEN_FILES, "node": CLOSED_ONCE},
)
GCSFUSE_HNS = StorageModel(
    name="gcsfuse-hns",
    scopes=("process", "sidecar", "node"),
    whole=_folders,
    same={"sidecar": "node"},
    rests_on={"sidecar": SIDECAR_LOSES_OPEN_FILES, "node": CLOSED_ONCE},
)
