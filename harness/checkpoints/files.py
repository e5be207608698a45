"""A job of which nothing is known: each file or directory at the top of its checkpoint directory counts as a checkpoint.

Names are all there is to go by. One that speaks of something unfinished is temporary; a number in it is the step; what holds no byte is no
checkpoint. A symbolic link that stays inside is a pointer.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checkpoints.layout import NO_STEP, Found, list_directory, path_of_step
from harness.checkpoints.tree import Tree
from harness.scenario.faults import PathClass

_TEMPORARY = re.compile(r"^\.?tmp|(^|[._~-])(tmp|partial|incomplete|orbax-checkpoint-tmp)(?![A-Za-z])|~$", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]*$")
"""Of a file name: ``.h5`` says nothing of a step."""
_AFTER_WORD = re.compile(r"(?:step|steps|iter|iteration|checkpoint|ckpt|epoch)[-_=.]?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9])")
"""Ten digits and more are a time or a hash: no job counts a thousand million steps."""


@dataclass(frozen=True)
class Files:
    """What lies at the top of ``root``."""

    root: Path

    def find(self) -> list[Found]:
        """Every entry but pointers."""
        found: list[Found] = []
        for entry in list_directory(self.root):
            if entry.is_symlink() and self._stays_inside(entry):
                continue
            try:
                modified_ns = entry.stat(follow_symlinks=False).st_mtime_ns
            except FileNotFoundError:
                continue  # it vanished between the listing and this line: it is not there
            is_temporary = bool(_TEMPORARY.search(entry.name))
            found.append(Found(path=self.root / entry.name, step=step_in(entry.name), is_temporary=is_temporary, order=modified_ns))
        return found

    def is_complete(self, _found: Found, tree: Tree) -> bool:
        """Something that holds at least one byte; more cannot be known."""
        return tree.size_bytes > 0

    def choose(self, found: Sequence[Found], is_committed: Callable[[Found], bool]) -> Found | None:
        """The highest number; where no name has one, the entry with content that was modified last."""
        if found and found[0].step != NO_STEP:
            return found[0]
        return next(filter(is_committed, found), None)

    def classes_of(self, _path: str) -> frozenset[PathClass]:
        """All of it is data."""
        return frozenset[PathClass](("data",))

    def paths_beside(self, path_class: PathClass) -> list[Path]:
        """Links that stay inside."""
        if path_class != "pointer":
            return []
        return [self.root / entry.name for entry in list_directory(self.root) if entry.is_symlink() and self._stays_inside(entry)]

    def final_path(self, step: int) -> Path:
        """A name like those that are there."""
        return path_of_step(self.find(), step, self.root / f"step_{step}")

    def temporary_path(self, step: int) -> Path:
        """The commonest form."""
        final = self.final_path(step)
        return final.with_name(f"{final.name}.tmp")

    def _stays_inside(self, entry: os.DirEntry[str]) -> bool:
        try:
            return (self.root / entry.name).resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):  # a loop of links leads nowhere
            return True


def step_in(name: str) -> int:
    """The step that a name says: the number after a word like ``step``, else the last one that is short enough."""
    stem = _SUFFIX.sub("", name)
    words = _AFTER_WORD.findall(stem)
    stepwise = [match[1] for match in _AFTER_WORD.finditer(stem) if match[0].lower().startswith("step")]
    numbers = stepwise or words or _NUMBER.findall(stem)
    return int(numbers[-1]) if numbers else NO_STEP
