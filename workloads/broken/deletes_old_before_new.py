"""Wrong: makes room for the new checkpoint by deleting the old ones before the new one is durable.

Symptom: a kill in the save leaves no checkpoint at all, and the retry starts from scratch.
Case 13: https://github.com/KempnerInstitute/KempnerForge/issues/102
Caught by: intact-checkpoints
"""

from workloads.linear.checkpoints import remove
from workloads.linear.train import Trainer, main


class DeletesOldBeforeNew(Trainer):
    """Deletes, then saves."""

    def save(self) -> None:
        """Delete every older checkpoint, then save this one."""
        for step in self.checkpoints.steps():
            if step < self.state.step:
                remove(self.checkpoints.directory_of(step))
        super().save()


if __name__ == "__main__":
    raise SystemExit(main(DeletesOldBeforeNew))
