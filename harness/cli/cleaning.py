"""``harness clean``: ends what dead runs have left behind, and leaves living runs alone."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import HarnessError
from harness.store import RunDirectory, RunStore
from harness.targets import LeftElsewhere, is_in_use, left_behind, left_elsewhere, perform, remove_left_behind
from harness.undo import RestoreCluster


class What(StrEnum):
    """What a line of ``clean`` tells."""

    BEGUN = "begun"
    """Something that may take minutes."""

    DONE = "done"
    ALONE = "alone"
    """A run that is not ours to clean, now or here: no failure."""

    FAILED = "failed"
    """It is there still."""


class Told(msgspec.Struct, frozen=True):
    """One line; ``run`` is the one that it is about."""

    what: What
    run: str
    text: str


def clean(runs_dir: Path, clock: Clock) -> Iterator[Told]:
    """Finish owed undos and end leftovers of every run whose owner is gone, and tell each thing as it happens.

    A run is dead when the process that ran it is; its history stays. Running it twice is harmless. After a reboot nothing of a run
    lives, and its undos find no process. A run of another machine that shares the directory is left to that one: its processes are not
    seen here. What a target has written down of runs of other directories is looked at as well, for it keeps others from the target.
    """
    seen: set[str] = set()
    for run in RunStore(runs_dir, clock).runs():
        owner = run.owner()
        seen |= {owner.run_id} if owner is not None else set()
        yield from _look_after(run, run.name, clock)
    for left in left_elsewhere():
        if left.run_id not in seen:
            yield from _look_elsewhere(left, clock)


def summary_of(told: list[Told]) -> str:
    """What it came to, in one line."""
    counts = {what: sum(line.what is what for line in told) for what in What}
    parts = [f"{counts[What.DONE]} done"] * bool(counts[What.DONE])
    parts += [f"{counts[What.ALONE]} left alone"] * bool(counts[What.ALONE])
    parts += [f"{counts[What.FAILED]} could not be done; run it again when that is mended"] * bool(counts[What.FAILED])
    return ", ".join(parts) or "nothing was left behind"


def _look_after(run: RunDirectory, name: str, clock: Clock) -> Iterator[Told]:
    """Clean one run, or say why not; a broken one must not keep the others from being cleaned."""
    try:
        owner = run.owner()
        if owner is not None and owner.is_elsewhere:
            if not run.is_over() or run.undo.owed():
                yield Told(What.ALONE, name, f"run on {owner.host}, left alone; `harness clean` there ends what it left")
        elif run.is_running():
            yield Told(What.ALONE, name, "still running, left alone")
        elif owner is not None:
            yield from _clean_run(run, name, owner.run_id, clock)
    except OSError as error:
        yield Told(What.FAILED, name, f"cannot be read: {error}; what it left, if anything, is still there")


def _look_elsewhere(left: LeftElsewhere, clock: Clock) -> Iterator[Told]:
    """Clean a run that is not in the runs directory, by what a target says of it: its own directory may lie elsewhere, or be gone.

    One that lives was not asked about.
    """
    directory = RunDirectory(left.directory) if left.directory is not None else None
    if directory is not None and directory.owner() is not None:
        yield from () if directory.is_running() else _look_after(directory, str(directory.path), clock)
    elif is_in_use(left.target):  # whoever uses it may be this very run
        yield Told(What.ALONE, f"run {left.run_id}", f"left alone while a run uses the target {left.target}")
    else:
        yield from _take_away(left.run_id, f"run {left.run_id}", clock)


def _clean_run(run: RunDirectory, name: str, run_id: str, clock: Clock) -> Iterator[Told]:
    """Undo first, the last first: what a fault took away, like the node of a pod, may be needed to remove the rest."""
    for entry in reversed(run.undo.owed()):
        assert entry.undo is not None
        if isinstance(entry.undo, RestoreCluster):
            yield Told(What.BEGUN, name, f"{_when()}undoes {entry.injection} on the cluster {entry.undo.cluster}")
        try:
            said = perform(entry.undo, clock)
            run.undo.settle(entry.injection)
        except HarnessError as error:
            yield Told(What.FAILED, name, f"{entry.injection}: {error}")
        else:
            yield Told(What.DONE, name, f"{entry.injection}: {said}")
    yield from _take_away(run_id, name, clock)


def _when() -> str:
    """Why the next thing may take half an hour."""
    return "once the run that uses the cluster has ended, " if is_in_use("kind") else ""


def _take_away(run_id: str, name: str, clock: Clock) -> Iterator[Told]:
    """What is left on any target; what cannot be taken away is said, and left for the next time."""
    try:
        left = left_behind(run_id)
        if not left:
            return
        yield Told(What.BEGUN, name, f"{_when()}takes away what is left: {', '.join(left)}")
        for line in remove_left_behind(run_id, clock):
            yield Told(What.DONE, name, line)
        still = left_behind(run_id)
        if still:
            yield Told(What.FAILED, name, f"still there after that: {', '.join(still)}")
    except (HarnessError, OSError) as error:
        yield Told(What.FAILED, name, f"could not be cleaned: {'; '.join([str(error), *getattr(error, '__notes__', ())])}")
