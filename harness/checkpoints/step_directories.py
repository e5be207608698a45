"""``step_00000010/`` with ``manifest.json``: sizes and SHA-256 of its files, written as ``step_00000010.tmp-<attempt>/`` and renamed.

``latest`` is a hint for people: recovery takes the newest directory whose manifest verifies.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.checkpoints.content import PARTIAL, read_small
from harness.checkpoints.layout import Found, list_directory, may_be_directory, path_of_step, step_of
from harness.checkpoints.tree import FileSeen, Tree
from harness.scenario.faults import PathClass

MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 16 << 20
"""Some hundred thousand files; a larger manifest is not read and verifies nothing."""

_FINAL = re.compile(r"step_([0-9]+)")
_TEMPORARY = re.compile(r"step_([0-9]+).*\.tmp-[0-9]+")


class _Manifest(msgspec.Struct, frozen=True):
    step: int
    files: dict[str, tuple[int, str]]


@dataclass(frozen=True)
class StepDirectories:
    """The step directories below ``root``."""

    root: Path

    def find(self) -> list[Found]:
        """Directories named by a step, and those that a save or a removal has not finished with."""
        found: list[Found] = []
        for entry in filter(may_be_directory, list_directory(self.root)):
            path = self.root / entry.name
            if match := _FINAL.fullmatch(entry.name):
                found.append(Found(path=path, step=step_of(match[1])))
            elif match := _TEMPORARY.fullmatch(entry.name):
                found.append(Found(path=path, step=step_of(match[1]), is_temporary=True))
        return found

    def is_complete(self, found: Found, tree: Tree) -> bool:
        """The manifest is of this step, and the files that it names are there with the sizes and contents that it says."""
        if MANIFEST not in tree.by_path:
            return False
        try:
            manifest = msgspec.json.decode(read_small(found.path / MANIFEST, MANIFEST_BYTES_MAX) or b"", type=_Manifest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        recorded = manifest.files.items()
        return manifest.step == found.step and all(_is_recorded(tree.by_path.get(name), *entry) for name, entry in recorded)

    def choose(self, found: Sequence[Found], is_committed: Callable[[Found], bool]) -> Found | None:
        """The newest that verifies."""
        return next(filter(is_committed, found), None)

    def classes_of(self, path: str) -> frozenset[PathClass]:
        """The manifest describes the checkpoint and completes it; all else is data."""
        return frozenset[PathClass](("metadata", "commit-marker") if path == MANIFEST else ("data",))

    def paths_beside(self, path_class: PathClass) -> list[Path]:
        """The hint."""
        return [self.root / "latest"] if path_class == "pointer" else []

    def final_path(self, step: int) -> Path:
        """The directory of a step."""
        return path_of_step(self.find(), step, self.root / f"step_{step:08d}")

    def temporary_path(self, step: int) -> Path:
        """What attempt 0 left behind: every later attempt may clear it away."""
        return self.root / f"{self.final_path(step).name}.tmp-0"


def _is_recorded(file: FileSeen | None, size_bytes: int, sha256: str) -> bool:
    """Whether a file is what the manifest says; of one too large to be hashed, whether its size is."""
    if file is None or not file.is_regular or file.size_bytes != size_bytes:
        return False
    return file.fingerprint in (sha256, "") or file.fingerprint.startswith(PARTIAL)
