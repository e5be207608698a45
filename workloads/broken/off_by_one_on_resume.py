"""Wrong: takes the step of the checkpoint for the next one to do, and counts it once more.

Symptom: after each resume one step number is skipped, and the run does one update less.
Case 23: https://github.com/AI-Hypercomputer/maxdiffusion/pull/484
Caught by: resumes-from-newest-durable
"""

from workloads.linear.train import Trainer, main


class OffByOneOnResume(Trainer):
    """Restores step n and goes on as if n + 1 were done."""

    def restore(self) -> None:
        """Restore, and count one too many."""
        super().restore()
        if self.state.step:
            self.state.step += 1


if __name__ == "__main__":
    raise SystemExit(main(OffByOneOnResume))
