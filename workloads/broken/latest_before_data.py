"""Wrong: moves ``latest`` to the new checkpoint before its data is there, and restores only what ``latest`` names.

Symptom: after a kill in a save ``latest`` names nothing; good checkpoints lie beside it and the retry starts from scratch.
Case 13: https://github.com/KempnerInstitute/KempnerForge/issues/102
Caught by: resumes-from-newest-durable
"""

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main


class Pointed(CheckpointDirectory):
    """Trusts the pointer."""

    def newest_intact(self) -> int:
        """The step that ``latest`` names, 0 where there is no such checkpoint."""
        try:
            step = int((self.path / "latest").read_text().removeprefix("step_"))
        except FileNotFoundError:
            return 0
        return step if self.is_intact(step) else 0


class LatestBeforeData(Trainer):
    """Announces a checkpoint, then writes it."""

    directory_type = Pointed

    def save(self) -> None:
        """Move the pointer, then save."""
        if self.state.step:
            self.checkpoints.point_latest(self.state.step)
        super().save()


if __name__ == "__main__":
    raise SystemExit(main(LatestBeforeData))
