"""Wrong: never looks for a checkpoint.

Symptom: every attempt begins at step 1; a run that is interrupted more often than it can finish never ends.
Case 41: https://github.com/ray-project/kuberay/issues/2155
Caught by: resumes-from-newest-durable
"""

from workloads.linear.train import Trainer, main


class StartsFromScratch(Trainer):
    """Saves and does not restore."""

    def restore(self) -> None:
        """Take the directory over and ignore what is in it."""
        self.checkpoints.take_ownership()


if __name__ == "__main__":
    raise SystemExit(main(StartsFromScratch))
