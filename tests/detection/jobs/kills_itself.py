"""The linear job that dies of its own SIGKILL after step 8 of its first attempt: of the same signal that the platform would send."""

import os
import signal

from workloads.linear.train import Trainer, main

LAST_STEP_DONE = 8


class KillsItself(Trainer):
    """Does what a fault would do to it."""

    def train_step(self) -> list[int] | None:
        """Do one step, or die."""
        if self.state.step == LAST_STEP_DONE and self.checkpoints.attempt == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train_step()


if __name__ == "__main__":
    raise SystemExit(main(KillsItself))
