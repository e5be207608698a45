"""Wrong: keeps its checkpoints in a directory that is named by the moment of its start.

Symptom: each attempt begins a run of its own and ends well alone; one that is interrupted more often than it can finish never ends.
Case 41: https://github.com/ray-project/kuberay/issues/2155
Caught by: same-run
"""

import time
from pathlib import Path

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main


class NewRun(CheckpointDirectory):
    """A directory that no attempt before has seen: what Ray Train does with a run that was given no name."""

    def __init__(self, path: Path, attempt: int, keep: int) -> None:
        super().__init__(path / f"run_{time.time_ns()}", attempt, keep)
        self.path.mkdir()


class NamesItsRunByTime(Trainer):
    """The right job in the wrong directory."""

    directory_type = NewRun


if __name__ == "__main__":
    raise SystemExit(main(NamesItsRunByTime))
