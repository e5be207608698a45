"""Wrong: the checkpoint holds how many samples this process took, not how many the run took.

Symptom: the first resume is right, since the first process took all of them; the second one goes back in the data. One kill shows nothing.
Case 19: https://github.com/google/grain/pull/1179
Caught by: exactly-once-data
"""

from dataclasses import replace

from workloads.linear.model import BATCH, SAMPLES
from workloads.linear.train import Trainer, main


class DataOrderWrongOnSecondResume(Trainer):
    """Counts samples from the start of the process."""

    first_step = 0

    def restore(self) -> None:
        """Restore, and count the samples from here."""
        super().restore()
        self.first_step = self.state.step

    def encode(self) -> dict[str, bytes]:
        """The state with the position that this process has reached by itself."""
        state, taken = self.state, (self.state.step - self.first_step) * BATCH
        epoch = max(0, taken - 1) // SAMPLES
        self.state = replace(state, epoch=epoch, cursor=taken - epoch * SAMPLES)
        try:
            return super().encode()
        finally:
            self.state = state


if __name__ == "__main__":
    raise SystemExit(main(DataOrderWrongOnSecondResume))
