"""Wrong: restores everything but the learning-rate schedule, which begins again with its warm-up.

Symptom: the restored state is right to the last bit, and the first step after each resume is not.
Case 26: https://github.com/NVIDIA-NeMo/Automodel/issues/763
Caught by: bit-exact-resume
"""

from workloads.linear.train import Trainer, main


class StaleLearningRate(Trainer):
    """Counts the schedule's steps from the start of the process."""

    first_step = 0

    def restore(self) -> None:
        """Restore, and begin the schedule here."""
        super().restore()
        self.first_step = self.state.step

    def learning_rate(self, step: int) -> float:
        """The rate of a run that has just begun."""
        return super().learning_rate(step - self.first_step)


if __name__ == "__main__":
    raise SystemExit(main(StaleLearningRate))
