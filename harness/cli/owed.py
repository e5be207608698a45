"""What a run still owes that has ended, or was ended: told, with the command that does it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.store import Owner, RunDirectory, RunStore
from harness.undo import KeptOriginal, NothingToUndo, RestoreCluster, RestoreProject, Undo, UndoEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Owing:
    """Of one run.

    Attributes:
        run: Its id.
        things: What it owes.
        projects: Google Cloud projects on which it does, each with the addresses of its emulator, where it is on one.
    """

    run: str
    things: tuple[str, ...]
    projects: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        from harness.targets.gcp.advice import cleaning

        return f"owed: {', '.join(self.things)}; {cleaning() if self.projects else '`harness clean`'} does it"


def owing(run: RunDirectory) -> Owing | None:
    """What a run owes by its journal of undos, and by what is written down of it on a project; None: nothing."""
    from harness.targets.gcp.footprint import read_footprint

    owner = run.owner()
    entries = [entry for entry in run.undo.owed() if not isinstance(entry.undo, NothingToUndo | KeptOriginal)]
    things = [_told(entry) for entry in entries]
    projects = {(entry.undo.project, entry.undo.emulator) for entry in entries if isinstance(entry.undo, RestoreProject)}
    footprint = read_footprint(owner.run_id) if owner is not None else None
    if footprint is not None:
        things.append(f"the end of what it has in {footprint.place.parent}, gs://{footprint.place.bucket}")
        projects.add((footprint.place.project, footprint.emulator))
    if owner is None or not things:
        return None
    return Owing(run=owner.run_id, things=tuple(things), projects=frozenset(projects))


def owing_of(runs_dir: Path, clock: Clock, *, is_asked: Callable[[Owner], bool]) -> list[Owing]:
    """What those runs owe whose owner is asked for."""
    found: list[Owing] = []
    for run in RunStore(runs_dir, clock).runs():
        owner = run.owner()
        left = owing(run) if owner is not None and is_asked(owner) else None
        found += [left] if left is not None else []
    return found


def owed_on(project: str, emulator: str, runs_dir: Path, clock: Clock, *, is_asked: Callable[[Owner], bool]) -> list[str]:
    """What those runs owe on a project whose owner is asked for, a line each; one that is at work on it owes it still."""
    of = owing_of(runs_dir, clock, is_asked=is_asked)
    return [f"run {left.run}: {left}" for left in of if (project, emulator) in left.projects]


def _told(entry: UndoEntry) -> str:
    return f"the undo of {entry.injection}{_where(entry.undo)}"


def _where(undo: Undo | None) -> str:
    if isinstance(undo, RestoreProject):
        return f" on the project {undo.project}"
    return f" on the cluster {undo.cluster}" if isinstance(undo, RestoreCluster) else ""
