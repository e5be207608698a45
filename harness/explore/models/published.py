"""What a bucket holds while a job works on local names: files become objects when they are closed, as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.explore.file_system import Drop, Edit, FileSystem, Make, Put
from harness.explore.models.rows import REFUSED_BY_MOUNT, Row
from harness.explore.operations import AnyEntry, Closed, Created, Linked, MovedIn, MovedOut, Opened, Renamed, Symlinked, Truncated, Wrote
from harness.explore.replay import Replay, Step
from harness.explore.states import File


@dataclass(slots=True)
class Writing:
    """A file whose newest content is no object yet, or may become another.

    Attributes:
        since: Index of the entry that created it, or of the first change since it was published.
        is_streamed: Whether it is new and was only appended to.
        is_changed: Whether it differs from the object.
        rows: What of the model its object rests on.
    """

    since: int
    is_streamed: bool = False
    is_changed: bool = False
    rows: set[Row] = field(default_factory=set)


class Published:
    """Plays a log as a client of a bucket sees it, and as the bucket does. Here: whole objects at close, and nothing else.

    Attributes:
        local: What the job sees.
        bucket: What there is of it when the client is gone.
        rows: Rows that every state rests on from now on.
    """

    refused: tuple[type, ...] = ()
    """Entries that the real client has no way to do."""

    def __init__(self, replay: Replay) -> None:
        self.local, self.bucket = replay.initial.fork(), replay.initial.fork()
        self.rows: set[Row] = set()
        self._writings: dict[int, Writing] = {}

    def advance(self, step: Step) -> None:
        """Go one step on."""
        self.before(step.entry)
        if isinstance(step.entry, self.refused) or (isinstance(step.entry, Renamed) and step.entry.exchanges):
            self.rows.add(REFUSED_BY_MOUNT)
        self.local.apply(step.edits)
        self.bucket.apply(self._names_of(step))
        self.after(step.entry)

    def unpublished(self) -> list[Writing]:
        """What the loss of the client loses, in the order in which it was begun."""
        return [writing for node, writing in self._writings.items() if writing.is_changed and self.local.path_of(node) is not None]

    def has_unpublished_below(self, path: str) -> bool:
        """Whether the loss of the client loses something in a directory."""
        paths = (self.local.path_of(node) for node, writing in self._writings.items() if writing.is_changed)
        return any(found is not None and found.startswith(f"{path}/") for found in paths)

    def before(self, entry: AnyEntry) -> None:
        """What the client does before an operation."""

    def after(self, entry: AnyEntry) -> None:
        """What the client does after an operation."""
        if isinstance(entry, Created):
            self._writings[entry.node] = Writing(entry.index, is_streamed=True, is_changed=True)
            if not entry.handle:
                self.publish(entry.node)
        elif isinstance(entry, Wrote | Truncated) or (isinstance(entry, Opened) and entry.truncates):
            self.change(entry.node, entry.index)
        elif isinstance(entry, Closed):
            self.publish(entry.node)
            self._writings.pop(entry.node, None)

    def change(self, node: int, index: int) -> None:
        """A file differs from its object."""
        writing = self._writings.setdefault(node, Writing(index))
        if not writing.is_changed:
            writing.since, writing.is_changed = index, True

    def writing(self, node: int) -> Writing | None:
        """A file that has no object of its newest content."""
        found = self._writings.get(node)
        return found if found is not None and found.is_changed else None

    def publish(self, node: int) -> None:
        """Make the content of a file an object; from then on it is staged."""
        writing = self.writing(node)
        if writing is not None:
            self.bucket.apply([Make(node, File(self.local.content_of(node)))])
            writing.is_changed = writing.is_streamed = False
            writing.rows.clear()

    def _names_of(self, step: Step) -> Iterator[Edit]:
        is_whole = isinstance(step.entry, MovedIn)
        for edit in step.edits:
            if is_whole or isinstance(edit, Put | Drop):
                yield edit
            elif isinstance(edit, Make):
                yield Make(edit.node, None) if isinstance(edit.thing, File) else edit


GCSFUSE_REFUSES = (Linked, MovedIn, MovedOut)
BUCKET_REFUSES = (Linked, Symlinked)


TEMPORARY = -(1 << 40)
"""Nodes of directories that are made within a rename: no log has a negative one, and gaps of a log have others (``replay``)."""


def split(path: str) -> tuple[str, str]:
    """The directory of a relative path, with its closing slash, and the name there."""
    parent, slash, name = path.rstrip("/").rpartition("/")
    return parent + slash, name


def objects_below(system: FileSystem, top: int) -> list[tuple[str, int]]:
    """What a listing below a directory shows, in its order: relative paths with their nodes, those of directories with a closing slash."""
    found: list[tuple[str, int]] = []
    pending = [("", top)]
    while pending:
        prefix, directory = pending.pop()
        for name, node in system.names_in(directory).items():
            if system.is_directory(node):
                pending.append((f"{prefix}{name}/", node))
                found.append((f"{prefix}{name}/", node))
            elif system.is_seen(node):
                found.append((prefix + name, node))
    return sorted(found, key=lambda each: each[0].encode(errors="surrogatepass"))


def target_of(step: Step) -> Put | None:
    """Where a rename leads; None when nothing is renamed, or two names are exchanged."""
    if not isinstance(step.entry, Renamed) or step.entry.exchanges:
        return None
    return next((edit for edit in step.edits if isinstance(edit, Put) and edit.node == step.entry.node), None)
