"""Wrong: restored at the end of an epoch, it goes on to the next one with an exhausted loader, which counts as that epoch done.

Symptom: the samples of a whole epoch are never seen and the loop over epochs ends early: ``done`` and exit code 0, an epoch of steps short.
Case 25: https://github.com/verl-project/verl/issues/7401
Caught by: completes
"""

from workloads.linear.model import BATCHES_PER_EPOCH, SAMPLES
from workloads.linear.train import Trainer, main


class SkipsEpochAtBoundary(Trainer):
    """Loops over epochs and trusts the loader to fill them."""

    def restore(self) -> None:
        """Restore; a loader that was at its end is at the end of the next epoch too."""
        super().restore()
        if self.state.cursor == SAMPLES:
            self.state.epoch += 1
            self.steps -= BATCHES_PER_EPOCH


if __name__ == "__main__":
    raise SystemExit(main(SkipsEpochAtBoundary))
