"""Other runs of a job beside its own: directories in which the job's layout finds checkpoints too."""

from collections.abc import Iterator
from pathlib import Path

from harness.checkpoints.layout import list_directory
from harness.checkpoints.look import READERS
from harness.scenario import Layout

DIRECTORIES_MAX = 100
"""Looked into, in order of their names: a job that makes more runs than that has been found out by then."""


def runs_beside(directory: Path, layout: Layout, *, mounted: Path, task: int = 0, job: str = "") -> tuple[str, ...]:
    """Names of directories beside ``directory`` that hold checkpoints; in it, where it is the mounted directory itself.

    Goes by names alone, and reads no content. What cannot be listed, and a layout of unknown files, shows nothing.
    """
    if layout == "files":
        return ()
    parent = directory if directory == mounted else directory.parent
    try:
        own = {found.path for found in READERS[layout](parent, task, job).find()} if parent == directory else {directory}
        return tuple(path.name for path in _directories_in(parent) if path not in own and _holds_checkpoints(path, layout, task, job))
    except OSError:
        return ()


def _directories_in(parent: Path) -> Iterator[Path]:
    names = sorted(entry.name for entry in list_directory(parent) if entry.is_dir(follow_symlinks=False))
    return (parent / name for name in names[:DIRECTORIES_MAX])


def _holds_checkpoints(path: Path, layout: Layout, task: int, job: str) -> bool:
    try:
        return bool(READERS[layout](path, task, job).find())
    except OSError:
        return False
