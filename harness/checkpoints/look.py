"""One look at a checkpoint directory, under the rules of its layout."""

import errno
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from harness.checkpoints.content import HASH_BYTES_MAX, Budget, LimitReachedError
from harness.checkpoints.files import Files
from harness.checkpoints.layout import Found, LayoutReader
from harness.checkpoints.orbax import Orbax
from harness.checkpoints.ray_train import RayTrain
from harness.checkpoints.step_directories import StepDirectories
from harness.checkpoints.text_file import TextFile
from harness.checkpoints.tree import Tree, read_tree, shown
from harness.history import CheckpointSeen
from harness.scenario import Layout

READERS: dict[Layout, Callable[[Path, int, str], LayoutReader]] = {
    "text-file": TextFile,
    "step-directories": lambda root, _task, _job: StepDirectories(root),
    "orbax": lambda root, _task, _job: Orbax(root),
    "ray-train": lambda root, _task, _job: RayTrain(root),
    "files": lambda root, _task, _job: Files(root),
}
"""By the directory, the index of the task and the name of the job; one reader for one look."""


class Look:
    """What it reads, it reads once.

    Args:
        reader: The rules of the layout.
        directory: Where to look.
        hash_bytes_max: A larger file is fingerprinted by its size and edges.
        vanished_before: Checkpoints that an earlier look saw vanish.

    Attributes:
        directory: Where it looks.
        finished: Checkpoints under final names, newest first.
        temporary: Those under temporary names.

    Raises:
        OSError: When the directory cannot be listed.
    """

    def __init__(
        self,
        reader: LayoutReader,
        directory: Path,
        *,
        hash_bytes_max: int = HASH_BYTES_MAX,
        vanished_before: AbstractSet[Path] = frozenset(),
    ) -> None:
        self._reader = reader
        self._vanished_before = vanished_before
        self._budget = Budget(hash_bytes_max=hash_bytes_max)
        self._trees: dict[Path, Tree] = {}
        self._complete: dict[Path, bool] = {}
        found = sorted(reader.find(), key=lambda each: each.age_key, reverse=True)
        self.directory = directory
        self.finished = tuple(each for each in found if not each.is_temporary)
        self.temporary = tuple(each for each in found if each.is_temporary)

    def tree_of(self, found: Found) -> Tree:
        """The files of a checkpoint.

        Raises:
            OSError: When they vanished, changed or failed while they were read.
            LimitReachedError: When they are too many.
        """
        if found.path not in self._trees:
            tree = Tree() if found.is_missing else read_tree(found.path, self._budget)
            if found.fingerprint and tree.files[0].fingerprint not in (found.fingerprint, ""):
                raise OSError(errno.ESTALE, "changed while it was read", str(found.path))
            self._trees[found.path] = tree
        return self._trees[found.path]

    def is_going(self, found: Found) -> bool:
        """Whether its files vanish look after look: it is being removed, or written under its final name; raises as ``tree_of``."""
        if found.path not in self._vanished_before:
            return False
        try:
            self._is_complete(found)
        except FileNotFoundError:
            return True
        return False

    def is_committed(self, found: Found) -> bool:
        """By the layout's own rule; raises as ``tree_of``."""
        return not (found.is_temporary or self.is_going(found)) and self._is_complete(found)

    def choose(self) -> Found | None:
        """The checkpoint that the next restore would try first; raises as ``tree_of``."""
        return self._reader.choose(self.finished, self.is_committed)

    def describe(self, found: Found, *, is_latest: bool) -> CheckpointSeen:
        """A checkpoint as the history records it; raises as ``tree_of``."""
        name = shown(found.path, self.directory)
        if self.is_going(found):
            return CheckpointSeen(step=found.step, path=name, state="incomplete", is_latest=is_latest)
        tree = self.tree_of(found)
        return CheckpointSeen(
            step=found.step,
            path=name,
            state="temporary" if found.is_temporary else "committed" if self.is_committed(found) else "incomplete",
            digest="" if found.is_missing else tree.digest,
            files=len(tree.files),
            size_bytes=tree.size_bytes,
            is_latest=is_latest,
        )

    def _is_complete(self, found: Found) -> bool:
        if found.path not in self._complete:
            self._complete[found.path] = self._reader.is_complete(found, self.tree_of(found))
        return self._complete[found.path]


def choose_committed(directory: Path, layout: Layout, *, task: int, job: str) -> tuple[Look, Found] | None:
    """The newest committed checkpoint; when one vanishes while it is read, that of a second look, which passes over what it cannot read."""
    for is_last in (False, True):
        try:
            look = Look(READERS[layout](directory, task, job), directory)
        except OSError:
            continue
        for found in look.finished:
            try:
                if look.is_committed(found):
                    return look, found
            except (OSError, LimitReachedError):
                if not is_last:
                    break
        else:
            return None
    return None
