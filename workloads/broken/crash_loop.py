"""Wrong: dies at the same step in every attempt, before it has saved anything new.

Symptom: each retry restores the same checkpoint and dies at the same place; the retries are used up without progress.
Case 17: https://github.com/petuum/adaptdl/issues/70 (its kind: every restart crashes)
Caught by: makes-progress
"""

from workloads.linear.train import Trainer, main

LAST_STEP_DONE = 7  # not on the cadence of saves: work is lost each time


class CrashLoop(Trainer):
    """Meets the same bad sample again and again."""

    def train_step(self) -> list[int] | None:
        """Do one step, or die."""
        if self.state.step == LAST_STEP_DONE:
            raise ArithmeticError(f"the loss of step {LAST_STEP_DONE + 1} is not a number")
        return super().train_step()


if __name__ == "__main__":
    raise SystemExit(main(CrashLoop))
