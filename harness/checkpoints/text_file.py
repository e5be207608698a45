"""One text file a task that holds the step, as the long job of Cloud Run's GPU guide keeps it.

``{job}-task-{index}-checkpoint.txt`` is written as ``….txt.tmp`` and renamed.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checkpoints.content import read_small
from harness.checkpoints.layout import NO_STEP, Found, list_directory, step_of
from harness.checkpoints.tree import Tree
from harness.scenario.faults import PathClass

TEXT_BYTES_MAX = 4096
"""A step and its white space: no file that is larger holds one."""

DEFAULT_JOB = "local-job"
"""What the guide's task calls itself when ``CLOUD_RUN_JOB`` is not set."""


@dataclass(frozen=True)
class TextFile:
    """The file of one task; of any job when ``job`` is empty."""

    root: Path
    task: int
    job: str

    def find(self) -> list[Found]:
        """The file, and the unfinished one beside it."""
        pattern = re.compile(rf"{re.escape(self.job) or '.+'}-task-{self.task}-checkpoint\.txt(\.tmp)?", re.DOTALL)
        matches = filter(None, (pattern.fullmatch(entry.name) for entry in list_directory(self.root)))
        return [self._read(self.root / match[0], is_temporary=bool(match[1])) for match in matches]

    def is_complete(self, found: Found, _tree: Tree) -> bool:
        """A file that holds a step."""
        return found.step != NO_STEP

    def choose(self, found: Sequence[Found], _is_committed: Callable[[Found], bool]) -> Found | None:
        """The file, whatever it holds."""
        return found[0] if found else None

    def classes_of(self, _path: str) -> frozenset[PathClass]:
        """All of it is data."""
        return frozenset[PathClass](("data",))

    def paths_beside(self, _path_class: PathClass) -> list[Path]:
        """None."""
        return []

    def final_path(self, _step: int) -> Path:
        """The one file, for every step."""
        finished = [found.path for found in self.find() if not found.is_temporary]
        return finished[0] if finished else self.root / f"{self.job or DEFAULT_JOB}-task-{self.task}-checkpoint.txt"

    def temporary_path(self, step: int) -> Path:
        """The name it is written under."""
        final = self.final_path(step)
        return final.with_name(f"{final.name}.tmp")

    def _read(self, path: Path, *, is_temporary: bool) -> Found:
        try:
            content = read_small(path, TEXT_BYTES_MAX)
        except OSError:
            content = None  # the survey reads it once more, and says why it cannot
        if content is None:
            return Found(path=path, step=NO_STEP, is_temporary=is_temporary)
        digits = content.strip()
        step = step_of(digits.decode("ascii")) if digits.isdigit() else NO_STEP
        return Found(path=path, step=step, is_temporary=is_temporary, fingerprint=hashlib.sha256(content).hexdigest())
