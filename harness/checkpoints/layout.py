"""What a layout must know of itself, so that checkpoints can be found, judged and hurt without the library that wrote them."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.checkpoints.tree import Tree
from harness.scenario.faults import PathClass

STEP_DIGITS_MAX = 18
"""A longer number is no step, and would not fit the 64 bits of a document."""

NO_STEP = -1
"""The step of a checkpoint whose name and content say none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint by its name; its content is not read yet.

    Attributes:
        path: Where it is.
        step: Its step, ``NO_STEP`` when unknown.
        is_temporary: Whether its name says that it is not finished.
        is_missing: Whether something names it that is not there.
        order: What makes it newer among those of one step.
        fingerprint: Of the content that ``step`` was read from; empty when the name says the step.
    """

    path: Path
    step: int
    is_temporary: bool = False
    is_missing: bool = False
    order: int = 0
    fingerprint: str = ""

    @property
    def age_key(self) -> tuple[int, int, str]:
        """Sorts from the oldest to the newest."""
        return self.step, self.order, self.path.name


class LayoutReader(Protocol):
    """One look at one directory under the rules of one layout."""

    def find(self) -> list[Found]:
        """All checkpoints by their names, finished or not.

        Raises:
            OSError: When the directory cannot be listed.
        """

    def is_complete(self, found: Found, tree: Tree, /) -> bool:
        """Whether what stands under a final name is a checkpoint by the layout's own rule.

        Raises:
            OSError: When a file vanished or failed while it was read.
        """

    def choose(self, found: Sequence[Found], is_committed: Callable[[Found], bool], /) -> Found | None:
        """The one that the layout's own restore would try first; ``found`` is newest first, without temporaries.

        Raises:
            OSError: When ``is_committed`` could not tell.
        """

    def classes_of(self, path: str, /) -> frozenset[PathClass]:
        """What a file is whose path is relative to its checkpoint; ``.`` for a checkpoint of one file."""

    def paths_beside(self, path_class: PathClass, /) -> list[Path]:
        """Files of a class that belong to no single checkpoint; they may not exist."""

    def final_path(self, step: int, /) -> Path:
        """Where the checkpoint of a step is, or would be."""

    def temporary_path(self, step: int, /) -> Path:
        """Where an unfinished save of a step would be."""


def list_directory(directory: Path) -> list[os.DirEntry[str]]:
    """The entries of a directory, in no order.

    Raises:
        OSError: When it cannot be listed.
    """
    with os.scandir(directory) as entries:
        return list(entries)


def may_be_directory(entry: os.DirEntry[str]) -> bool:
    """Whether the job sees a directory there; a symbolic link might lead to one, and is reported when it is read."""
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False)


def step_of(digits: str) -> int:
    """The step that ASCII digits say; ``NO_STEP`` when they are too many."""
    return int(digits) if len(digits) <= STEP_DIGITS_MAX else NO_STEP


def path_of_step(found: Sequence[Found], step: int, default: Path) -> Path:
    """Where the checkpoint of ``step`` is; else beside the newest one, named alike; else ``default``."""
    finished = sorted((each for each in found if not each.is_temporary), key=lambda each: each.age_key, reverse=True)
    for each in finished:
        if each.step == step:
            return each.path
    for each in finished:
        name = renumber(each.path.name, each.step, step)
        if name != each.path.name:
            return each.path.with_name(name)
    return default


def renumber(name: str, step: int, other: int) -> str:
    """``name`` with ``other`` in the place of ``step``, zeros in front kept; the same name when ``step`` does not stand in it."""
    numbers = [match for match in re.finditer(r"[0-9]+", name) if step_of(match[0]) == step]
    if not numbers:
        return name
    last = numbers[-1]
    width = len(last[0]) if last[0].startswith("0") else 0
    return f"{name[: last.start()]}{other:0{width}d}{name[last.end() :]}"
