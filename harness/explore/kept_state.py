"""The directories of one state that stay after it was tried again: as the crash left it, and as each recovery did."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import StoreError
from harness.explore.blobs import BlobStore
from harness.explore.judging.copies import remove_tree
from harness.explore.recipe import StateTask, Tried
from harness.explore.result import STATE_CHARACTERS
from harness.store import RunDirectory


@dataclass(frozen=True, slots=True)
class KeptState:
    """Where they are.

    Attributes:
        path: Of all of them.
    """

    path: Path

    @property
    def state(self) -> Path:
        """As the crash left it."""
        return self.path / "state"

    @property
    def recovered(self) -> Path:
        """As recovery left it."""
        return self.path / "recovered"

    @property
    def recovered_again(self) -> Path:
        """As the next one left that."""
        return self.path / "recovered-again"

    @property
    def uninterrupted(self) -> Path:
        """As the uninterrupted run leaves its own."""
        return self.path / "uninterrupted"

    def task(self, task: StateTask) -> StateTask:
        """The same, tried so that what its recoveries leave stays."""
        return msgspec.structs.replace(task, keeps=tuple(str(path.resolve()) for path in (self.recovered, self.recovered_again)))

    def uninterrupted_task(self, task: StateTask) -> StateTask:
        """The uninterrupted run, once more, for its files."""
        return msgspec.structs.replace(task, again=False, keeps=(str(self.uninterrupted.resolve()),))


def keep_state(directory: RunDirectory, task: StateTask) -> KeptState:
    """Make the directory of a state where it stays; what an earlier replay has kept of it is removed.

    Raises:
        StoreError: When it cannot be made.
    """
    kept = KeptState(directory.kept / task.state[:STATE_CHARACTERS])
    try:
        remove_tree(kept.path)
        kept.path.mkdir(parents=True)
        BlobStore(directory.blobs).materialise(task.pieces, kept.state, changed=task.changed, links=task.links)
    except OSError as error:
        raise StoreError(path=kept.path, attempted="make", reason=error.strerror or str(error)) from error
    return kept


def differing_results(kept: KeptState, tried: Tried, golden: Tried, result: str) -> tuple[Path, ...]:
    """The files that ought to be alike and are not, that of the uninterrupted run last; nothing where all are alike.

    Args:
        kept: Where the directories are.
        tried: What came of the state.
        golden: The uninterrupted run.
        result: The result file, as in ``Recipe``; empty: none.
    """
    if not result or golden.first is None:
        return ()
    name = result.removeprefix("{checkpoint_dir}/")
    places = ((tried.first, kept.recovered), (tried.second, kept.recovered_again))
    wrong = [place / name for recovery, place in places if recovery is not None and recovery.result not in ("", golden.first.result)]
    return (*wrong, kept.uninterrupted / name) if wrong else ()
