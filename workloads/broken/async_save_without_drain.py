"""Wrong: commits a save when the next one begins, and exits without waiting for the last.

Symptom: exit code 0, ``done``, and the checkpoint of the final step is missing; a SIGTERM loses its save in the same way.
Case 16: https://github.com/pytorch/torchtitan/pull/4270
Caught by: completes
"""

from workloads.linear.train import Trainer, main


class AsyncSaveWithoutDrain(Trainer):
    """Two halves of a save, the second one left to the next."""

    pending = 0
    pending_digests: dict[str, str]

    def save(self) -> None:
        """Commit the save before this one, then begin this one."""
        self.commit_pending()
        self.checkpoints.check_ownership()
        self.pending, self.pending_digests = self.state.step, self.digests()
        self.emit("save.begin", step=self.pending, digests=self.pending_digests)
        self.checkpoints.write(self.pending, self.encode())

    def commit_pending(self) -> None:
        """Finish the save that is under way; the exit forgets to call this."""
        step, self.pending = self.pending, 0
        if step:
            self.emit("save.commit", step=step)
            self.checkpoints.commit(step)
            self.checkpoints.point_latest(step)
            self.emit("save.end", step=step, digests=self.pending_digests)
            self.checkpoints.collect(step)


if __name__ == "__main__":
    raise SystemExit(main(AsyncSaveWithoutDrain))
