"""Wrong: takes the newest name that looks like a checkpoint, and does not ask whether it was committed.

Symptom: after a kill in a save every attempt picks the unfinished directory, and dies of the missing file or restores a step that was never
committed.
Case 12: https://github.com/huggingface/transformers/issues/35782
Case 1: https://github.com/AI-Hypercomputer/maxtext/pull/5260
Caught by: intact-checkpoints
"""

from workloads.linear.checkpoints import MANIFEST, CheckpointDirectory
from workloads.linear.train import Trainer, main


class AnyFolder(CheckpointDirectory):
    """Believes names, temporary ones too."""

    def remove_stale(self) -> None:
        """Keep everything: it might be the newest."""

    def newest_intact(self) -> int:
        """The highest step that a name mentions."""
        return max((int(path.name[5:13]) for path in self.path.glob("step_*")), default=0)

    def read(self, step: int) -> dict[str, bytes]:
        """The state in the last of the directories of ``step``, whatever it is."""
        directory = max(self.path.glob(f"step_{step:08d}*"))
        return {"state.json": (directory / "state.json").read_bytes()}

    def is_intact(self, step: int) -> bool:
        """Whether there is a committed checkpoint of ``step``."""
        return (self.directory_of(step) / MANIFEST).exists()


class PicksIncompleteCheckpoint(Trainer):
    """The right job on the wrong kind of directory."""

    directory_type = AnyFolder


if __name__ == "__main__":
    raise SystemExit(main(PicksIncompleteCheckpoint))
