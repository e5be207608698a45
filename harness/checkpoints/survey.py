"""What checkpoints storage holds, found, judged and fingerprinted while a job may be writing."""

from pathlib import Path

import msgspec

from harness.checkpoints.content import HASH_BYTES_MAX, LOOK_BYTES_MAX, LimitReachedError
from harness.checkpoints.layout import Found
from harness.checkpoints.look import READERS, Look, choose_committed
from harness.checkpoints.tree import shown
from harness.history import CheckpointSeen
from harness.scenario import Layout
from harness.scenario.faults import PathClass

CHECKPOINTS_MAX = 1_000
"""Described in one survey, newest first: it becomes one line of the history, which should stay below a megabyte."""

LOST_MAX = 20
"""Named one by one: nobody reads on, and what is beyond is as unknown as they are."""

LOOKS_MAX = 3
"""A checkpoint that moves makes us look again; a directory where a new one moves in every look does not stand still for us."""

_STATE_ORDER = {"temporary": 0, "incomplete": 1, "committed": 2}


class Survey(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        checkpoints: By step; of one step, what is committed comes last.
        lost: What could not be read, and why; whatever depends on it is unknown.
    """

    checkpoints: tuple[CheckpointSeen, ...]
    lost: tuple[str, ...] = ()


def survey(
    directory: Path, layout: Layout, *, task: int = 0, job: str = "", hash_bytes_max: int = HASH_BYTES_MAX, only_step: int | None = None
) -> Survey:
    """Look at a checkpoint directory; raises for nothing that is in it.

    When a checkpoint vanishes or changes while it is read, the whole look begins again: its successor may stand under a name that the first
    listing missed. One that vanishes a second time is being removed: it is gone, or incomplete. A temporary that cannot be read is no loss:
    its writer is at work, and nobody restores it.

    Args:
        directory: The checkpoint directory.
        layout: Whose rules apply.
        task: Index of the task, where tasks share the directory (``text-file``).
        job: Name of the job, where file names begin with it (``text-file``); empty for any.
        hash_bytes_max: A larger file is fingerprinted by its size and edges, and marked ``partial-``.
        only_step: Describe only the checkpoints of this step.
    """
    moved: set[Path] = set()
    for _ in range(LOOKS_MAX):
        try:
            look = Look(READERS[layout](directory, task, job), directory, hash_bytes_max=hash_bytes_max, vanished_before=moved)
        except OSError as error:
            seen, failed = Survey(checkpoints=(), lost=(f"the checkpoint directory: {_reason(error)}",)), {directory}
        else:
            seen, failed = _describe(look, only_step)
        if failed <= moved:
            break
        moved |= failed
    return seen


def newest_committed(directory: Path, layout: Layout, *, task: int = 0, job: str = "") -> CheckpointSeen | None:
    """The newest checkpoint that the layout's own rule calls committed; what cannot be read is passed over."""
    chosen = choose_committed(directory, layout, task=task, job=job)
    if chosen is None:
        return None
    look, found = chosen
    return look.describe(found, is_latest=found == _choose(look)[0])


def paths_of(directory: Path, layout: Layout, path_class: PathClass, *, task: int = 0, job: str = "") -> tuple[Path, ...]:
    """Regular files of a class in the newest committed checkpoint, largest first; ``step`` is the checkpoint itself.

    Files that stand beside the checkpoints, a pointer or a snapshot, come first and are found where no checkpoint is committed as well.
    """
    reader = READERS[layout](directory, task, job)
    chosen = choose_committed(directory, layout, task=task, job=job)
    if path_class == "step":
        return (chosen[1].path,) if chosen else ()
    try:
        beside = tuple(path for path in reader.paths_beside(path_class) if path.is_symlink() or path.is_file())
    except OSError:
        return ()
    if chosen is None:
        return beside
    look, found = chosen
    files = [file for file in look.tree_of(found).files if file.is_regular and path_class in reader.classes_of(file.path)]
    files.sort(key=lambda file: (-file.size_bytes, file.path))
    return beside + tuple(found.path if file.path == "." else found.path / file.path for file in files)


def step_path(directory: Path, layout: Layout, step: int, *, task: int = 0, job: str = "") -> Path:
    """Where the checkpoint of a step is or, named like those that are there, would be.

    Raises:
        OSError: When the directory cannot be listed.
    """
    return READERS[layout](directory, task, job).final_path(step)


def temporary_path(directory: Path, layout: Layout, step: int, *, task: int = 0, job: str = "") -> Path:
    """Where an unfinished save of a step would be.

    Raises:
        OSError: When the directory cannot be listed.
    """
    return READERS[layout](directory, task, job).temporary_path(step)


def _describe(look: Look, only_step: int | None) -> tuple[Survey, set[Path]]:
    """Describe what a look found, and name what moved or failed while it was read."""
    wanted = [found for found in (*look.finished, *look.temporary) if only_step in (None, found.step)]
    seen: list[CheckpointSeen] = []
    chosen, failure = _choose(look)
    lost = [f"which one the next restore takes: {_reason(failure)}"] if failure else []
    failed = {look.directory} if isinstance(failure, OSError) else set()
    for found in wanted[:CHECKPOINTS_MAX]:
        name = shown(found.path, look.directory)
        try:
            if look.is_going(found) and not found.path.exists():
                continue
            checkpoint = look.describe(found, is_latest=found == chosen)
        except (OSError, LimitReachedError) as error:
            if found.is_temporary:
                seen.append(CheckpointSeen(step=found.step, path=name, state="temporary"))
                continue
            lost.append(f"{name}: {_reason(error)}")
            if isinstance(error, OSError):
                failed.add(found.path)
            continue
        seen.append(checkpoint)
        if checkpoint.state == "committed" and not checkpoint.digest:
            lost.append(f"{name}: not hashed: more than {LOOK_BYTES_MAX} bytes in one look, and the run waits meanwhile")
    if len(wanted) > CHECKPOINTS_MAX:
        lost.append(f"{len(wanted) - CHECKPOINTS_MAX} older ones: not described: more than {CHECKPOINTS_MAX} checkpoints in one look")
    seen.sort(key=lambda checkpoint: (checkpoint.step, _STATE_ORDER[checkpoint.state], checkpoint.path))
    return Survey(checkpoints=tuple(seen), lost=_shorten(lost)), failed


def _choose(look: Look) -> tuple[Found | None, OSError | LimitReachedError | None]:
    try:
        return look.choose(), None
    except (OSError, LimitReachedError) as error:
        return None, error


def _shorten(lost: list[str]) -> tuple[str, ...]:
    if len(lost) <= LOST_MAX:
        return tuple(lost)
    return (*lost[:LOST_MAX], f"{len(lost) - LOST_MAX} more could not be read")


def _reason(error: OSError | LimitReachedError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
