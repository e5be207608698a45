"""Wrong: rank 1 gets stuck before a step, alive and with heartbeats, in every attempt; there are two ranks unless RANKS says more.

Symptom: the other rank waits for it without limit and without an error; nothing in the job or the launcher ends it.
Case 34: https://github.com/jax-ml/jax/issues/38503
Caught by: no-hang
"""

import time

from workloads.linear.train import Trainer, main

STUCK_AFTER_STEP = 7
HEARTBEAT_S = 0.1


class RankHangs(Trainer):
    """Rank 1 stops working and says that it is well."""

    ranks_default = 2

    def train_step(self) -> list[int] | None:
        """Do one step, or get stuck."""
        while self.rank == 1 and self.state.step == STUCK_AFTER_STEP:
            self.emit("heartbeat")
            time.sleep(HEARTBEAT_S)
        return super().train_step()


if __name__ == "__main__":
    raise SystemExit(main(RankHangs))
