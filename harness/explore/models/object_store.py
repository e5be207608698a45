"""``object-store``: the job writes to a bucket itself, through a client library; local paths stand for names of objects.

Whatever dies, there are whole objects only: an upload that was not completed, at close, was never there. What is not written from its
beginning to its end is uploaded again as a whole. A rename is a copy and then a delete, object by object. There are no directories.

Not modelled: preconditions, generations and old versions; uploads that the library completes early; listings of other clients; symbolic
links, which stay what they are, and hard links (``refused-by-mount``).

Source: https://cloud.google.com/storage/docs/consistency
"""

from collections.abc import Iterator

from harness.explore.file_system import Drop, FileSystem, Make, Put
from harness.explore.models.model import PREFIX, Candidate, Demand, StorageModel
from harness.explore.models.published import BUCKET_REFUSES, TEMPORARY, Published, objects_below, split, target_of
from harness.explore.models.rows import COPY_THEN_DELETE, NO_DIRECTORIES, REWRITTEN_AS_A_WHOLE, WHOLE_OBJECTS, Row
from harness.explore.operations import AnyEntry, Created, Opened, Truncated, Wrote
from harness.explore.replay import Replay
from harness.explore.states import Cause, Scope
from harness.explore.trees import DIRECTORY

_ROWS: frozenset[Row] = frozenset({WHOLE_OBJECTS, NO_DIRECTORIES})


class _Client(Published):
    """A bucket under a client library."""

    refused = BUCKET_REFUSES

    def __init__(self, replay: Replay) -> None:
        super().__init__(replay)
        self.bucket.keeps_empty = self.bucket.links_names = False
        self._uploads: dict[int, int] = {}

    def after(self, entry: AnyEntry) -> None:
        """Follow what is one upload, from its beginning to its end; anything else is done in another way."""
        if isinstance(entry, Created) or (isinstance(entry, Opened) and entry.truncates):
            self._uploads[entry.node] = 0
        elif isinstance(entry, Opened):
            self._uploads.pop(entry.node, None)
        elif isinstance(entry, Wrote) and self._uploads.get(entry.node) == entry.offset:
            self._uploads[entry.node] += entry.data.size
        elif isinstance(entry, Truncated) and not entry.size:
            self._uploads[entry.node] = 0
        elif isinstance(entry, Wrote | Truncated):
            self.rows.add(REWRITTEN_AS_A_WHOLE)
        super().after(entry)


def _whole(replay: Replay, _scope: Scope) -> Iterator[Candidate]:
    client = _Client(replay)
    yield Candidate(0, PREFIX, client.bucket, _ROWS)
    for step in replay.steps:
        client.advance(step)
        writings = client.unpublished()
        cause = Cause(kind="vanished", operation=writings[-1].since) if writings else PREFIX
        yield Candidate(step.at, cause, client.bucket, _ROWS | client.rows)


def _renames(replay: Replay, _scope: Scope, _missing_max: int, demand: Demand) -> Iterator[Candidate]:
    """What a rename has copied and deleted when the job dies in it."""
    client = _Client(replay)
    for step in replay.steps:
        if (target := target_of(step)) is not None:
            rows = _ROWS | client.rows | {COPY_THEN_DELETE}
            for part, system in copied_by_object(client.bucket, target):
                cause = Cause(kind="renaming", operation=step.at, part=part)
                if demand.wants(cause, step.at):
                    yield Candidate(step.at, cause, system, rows)
        client.advance(step)


def copied_by_object(bucket: FileSystem, target: Put) -> Iterator[tuple[str, FileSystem]]:
    """Every state within a rename but the last one, which is its end."""
    system, source = bucket.fork(), target.node
    if not bucket.is_directory(source):
        if bucket.is_seen(source):
            system.apply([Put(target.directory, target.name, source)])
            yield "object 1 of 1 copied", system
        return
    objects = [(path, node) for path, node in objects_below(bucket, source) if not path.endswith("/")]
    old, new = {"": source}, {"": TEMPORARY}
    old |= {path: node for path, node in objects_below(bucket, source) if path.endswith("/")}
    system.apply([Make(TEMPORARY, DIRECTORY), Put(target.directory, target.name, TEMPORARY)])
    for number, (path, node) in enumerate(objects, start=1):
        parent, name = split(path)
        _make_parents(system, parent, new)
        system.apply([Put(new[parent], name, node)])
        yield f"object {number} of {len(objects)} copied", system
        system.apply([Drop(old[parent], name)])
        if number < len(objects):
            yield f"object {number} of {len(objects)}", system


def _make_parents(system: FileSystem, path: str, nodes: dict[str, int]) -> None:
    if path not in nodes:
        parent, name = split(path)
        _make_parents(system, parent, nodes)
        nodes[path] = TEMPORARY - len(nodes)
        system.apply([Make(nodes[path], DIRECTORY), Put(nodes[parent], name, nodes[path])])


OBJECT_STORE = StorageModel(name="object-store", scopes=("process", "node"), whole=_whole, partial=_renames, same={"node": "process"})
