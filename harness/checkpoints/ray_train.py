"""Ray Train v2: ``<run>/checkpoint_manager_snapshot.json`` names the checkpoints of a run; directories that it does not name are orphans.

The snapshot is the commit, and is written in place. When it does not parse, or a checkpoint that it names is gone, Ray refuses the whole
run: a snapshot that does not parse therefore commits nothing, and a checkpoint that is gone is reported as incomplete.

Source: ray 2.60.0, ray/train/v2/_internal/execution/checkpoint/checkpoint_manager.py.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.checkpoints.content import read_small
from harness.checkpoints.layout import NO_STEP, Found, list_directory, may_be_directory, path_of_step, step_of
from harness.checkpoints.orbax import is_metadata
from harness.checkpoints.tree import Tree
from harness.scenario.faults import PathClass

SNAPSHOT = "checkpoint_manager_snapshot.json"
SNAPSHOT_BYTES_MAX = 64 << 20
"""Metrics of every checkpoint that is kept lie in it; a larger one is taken for damaged."""

STEP_FILE_BYTES_MAX = 1 << 20
"""A file that says the step is small; a larger one holds data."""

_NUMBERED = re.compile(r"checkpoint_([0-9]{1,9})")
_DIGITS = re.compile(r"[0-9]+")


class _Result(msgspec.Struct, frozen=True):
    checkpoint_dir_name: str
    metrics: dict[str, object] = {}

    def __post_init__(self) -> None:
        if self.checkpoint_dir_name in ("", ".", "..") or "/" in self.checkpoint_dir_name or "\0" in self.checkpoint_dir_name:
            raise ValueError("a checkpoint lies in the directory of its run")

    @property
    def step(self) -> int:
        """The step that the job reported with it."""
        step = self.metrics.get("step")
        return step_of(str(step)) if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else NO_STEP


class _Snapshot(msgspec.Struct, frozen=True):
    checkpoint_results: tuple[_Result, ...]
    latest_checkpoint_result: _Result | None = None


@dataclass(frozen=True)
class _Run:
    """One run below the storage path; ``results`` by the names of their directories, empty when the snapshot commits nothing."""

    path: Path
    results: dict[str, _Result]
    latest: str
    written_ns: int


@dataclass
class RayTrain:
    """The runs below ``root``, or ``root`` itself when it is one."""

    root: Path
    _runs: list[_Run] = field(default_factory=list)

    def find(self) -> list[Found]:
        """What the snapshots name, there or not, and directories that look like checkpoints but are not named."""
        entries = filter(may_be_directory, list_directory(self.root))
        self._runs = [_read_run(path) for path in (self.root, *(self.root / entry.name for entry in entries if not entry.is_symlink()))]
        return [found for run in self._runs for found in _find_in(run)]

    def is_complete(self, found: Found, tree: Tree) -> bool:
        """Named by the snapshot, and not empty."""
        is_named = any(found.path.parent == run.path and found.path.name in run.results for run in self._runs)
        return is_named and bool(tree.files)

    def choose(self, found: Sequence[Found], _is_committed: Callable[[Found], bool]) -> Found | None:
        """The one that the snapshot calls the latest, even when it is gone; of several runs, the one written last."""
        for run in sorted(self._runs, key=lambda run: run.written_ns, reverse=True):
            if run.latest:
                return next((each for each in found if each.path == run.path / run.latest), None)
        return None

    def classes_of(self, path: str) -> frozenset[PathClass]:
        """Data, but for the descriptions in an Orbax tree."""
        return frozenset[PathClass](("metadata",) if is_metadata(path) else ("data",))

    def paths_beside(self, path_class: PathClass) -> list[Path]:
        """The snapshots, the one written last first; they are what points to the newest as well."""
        if path_class not in ("snapshot", "pointer"):
            return []
        self.find()
        return [run.path / SNAPSHOT for run in sorted(self._runs, key=lambda run: run.written_ns, reverse=True) if run.written_ns]

    def final_path(self, step: int) -> Path:
        """A directory in the run that was written last."""
        found = self.find()
        run = max(self._runs, key=lambda run: (run.written_ns, bool(_find_in(run))))
        numbered = [each for each in found if each.step == step or _NUMBERED.fullmatch(each.path.name)]
        return path_of_step(numbered, step, run.path / f"checkpoint_{step:06d}")

    def temporary_path(self, step: int) -> Path:
        """Ray has no temporary names: a directory that no snapshot names yet is what a cut save leaves."""
        return self.final_path(step)


def _read_run(path: Path) -> _Run:
    snapshot = path / SNAPSHOT
    try:
        written_ns = snapshot.lstat().st_mtime_ns
        # As Ray reads it: metrics may hold NaN, which is no JSON.
        document: object = json.loads(read_small(snapshot, SNAPSHOT_BYTES_MAX) or b"")
        parsed = msgspec.convert(document, type=_Snapshot)
    except FileNotFoundError:
        return _Run(path, {}, "", 0)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Run(path, {}, "", written_ns)
    results = {result.checkpoint_dir_name: result for result in parsed.checkpoint_results}
    latest = parsed.latest_checkpoint_result
    return _Run(path, results, latest.checkpoint_dir_name if latest else "", written_ns)


def _find_in(run: _Run) -> Iterator[Found]:
    entries = {entry.name for entry in list_directory(run.path) if may_be_directory(entry)}
    shapes = {_DIGITS.sub("0", name) for name in run.results}
    orphans = {name for name in entries - set(run.results) if name.startswith("checkpoint_") or _DIGITS.sub("0", name) in shapes}
    for name, result in run.results.items():
        step = result.step if result.step != NO_STEP else _step_below(run.path / name)
        yield Found(path=run.path / name, step=step, is_missing=name not in entries, order=int(name == run.latest))
    for name in orphans:
        yield Found(path=run.path / name, step=_step_below(run.path / name), order=-1)


def _step_below(directory: Path) -> int:
    """The step in a JSON file of a checkpoint, else in its name; the usual name is a time, which says none."""
    for path in sorted(directory.glob("*.json")):
        try:
            document: object = json.loads(read_small(path, STEP_FILE_BYTES_MAX) or b"")
        except (OSError, ValueError, RecursionError):
            continue
        step = document.get("step") if isinstance(document, dict) else None
        if isinstance(step, int) and not isinstance(step, bool) and step >= 0:
            return step_of(str(step))
    match = _NUMBERED.fullmatch(directory.name)
    return step_of(match[1]) if match else NO_STEP
