"""Wrong: takes the temporary of a dead attempt for a save in progress.

Symptom: after a kill in a save every attempt dies at that step, with a good checkpoint before it, until the retries are used up.
Case 9: https://github.com/Physical-Intelligence/openpi/issues/566
Caught by: makes-progress
"""

from pathlib import Path

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main


class NeverCleaned(CheckpointDirectory):
    """Temporaries have one name for all attempts, and nobody removes them."""

    def temporary_of(self, step: int) -> Path:
        """Where every attempt writes the step before it is committed."""
        return self.path / f"step_{step:08d}.tmp"

    def write(self, step: int, files: dict[str, bytes]) -> None:
        """Refuse to touch a temporary that is there."""
        if self.temporary_of(step).exists():
            raise RuntimeError(f"{self.temporary_of(step)} exists: a save of step {step} is in progress")
        super().write(step, files)


class CrashesOnStaleTemporary(Trainer):
    """The right job on the wrong kind of directory."""

    directory_type = NeverCleaned


if __name__ == "__main__":
    raise SystemExit(main(CrashesOnStaleTemporary))
