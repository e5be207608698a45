"""Where one worker tries recoveries: the same paths for each of them, so that what a warm job read once, at its import, stays true."""

import os
from collections.abc import Mapping
from pathlib import Path

from harness.explore.judging.copies import remove_tree
from harness.explore.recipe import Recipe
from harness.protocol.variables import RUN_ID_VARIABLE, Doors, protocol_variables

PLACE_VARIABLE = "HARNESS_PLACE"
"""Tells a worker's processes from those of the others of a run."""


class Place:
    """A directory of its own for each worker.

    Attributes:
        checkpoints: The copy of the state, ``CHECKPOINT_DIR`` of the job.
        events: ``HARNESS_EVENTS`` of the job: emptied in place between recoveries, since a warm job may hold it open to append to it.
        scratch: ``TMPDIR`` of the job, empty at the beginning of each recovery.
        inspected: Where ``inspect`` gets copies of its own.
        marks: Entries of the environment that all processes of this place carry.
    """

    def __init__(self, root: Path, *, run_id: str, recipe: Recipe, surroundings: Mapping[str, str]) -> None:
        root = root.resolve()
        self.checkpoints, self.events = Path(recipe.checkpoints or root / "checkpoints"), root / "events.jsonl"
        self.scratch, self.inspected = root / "tmp", root / "inspected"
        self._recipe, self._surroundings = recipe, dict(surroundings)
        self._run_id, self._own = run_id, {RUN_ID_VARIABLE: run_id, PLACE_VARIABLE: str(root)}
        self.marks = tuple(f"{name}={value}".encode() for name, value in self._own.items())

    def clear(self) -> None:
        """Remove all of it, for another state; the checkpoint directory is not there afterwards.

        Raises:
            OSError: When something cannot be removed or made.
        """
        remove_tree(self.checkpoints)
        self.checkpoints.parent.mkdir(parents=True, exist_ok=True)
        self.clear_surroundings()

    def clear_surroundings(self) -> None:
        """Empty all but the checkpoints, for another recovery on what the first one left.

        Raises:
            OSError: As ``clear``.
        """
        for path in (self.scratch, self.inspected):
            remove_tree(path)
        self.scratch.mkdir()
        os.close(os.open(self.events, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))

    def fill(self, text: str, *, checkpoints: Path | None = None) -> str:
        """Replace ``{checkpoint_dir}``."""
        return text.replace("{checkpoint_dir}", str(checkpoints or self.checkpoints))

    def environment(self, attempt: int) -> dict[str, str]:
        """What a recovery finds in its environment: a Cloud Run job's task that is tried again, in the harness's hands."""
        platform = {
            "CLOUD_RUN_TASK_INDEX": "0",
            "CLOUD_RUN_TASK_COUNT": "1",
            "CLOUD_RUN_TASK_ATTEMPT": str(attempt),
            "CHECKPOINT_DIR": str(self.checkpoints),
            "TMPDIR": str(self.scratch),
        }
        own = {name: self.fill(value) for name, value in self._recipe.environment.items()}
        return {
            **self._surroundings,
            **platform,
            **own,
            **self._own,
            **protocol_variables(self._run_id, Doors(events=str(self.events)), ()),
        }

    def inspection_environment(self) -> dict[str, str]:
        """What ``inspect`` finds: the job's variables, without the protocol's, and its own copy."""
        own = {name: self.fill(value, checkpoints=self.inspected) for name, value in self._recipe.environment.items()}
        return {**self._surroundings, **own, **self._own, "CHECKPOINT_DIR": str(self.inspected)}
