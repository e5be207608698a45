"""Wrong: takes the lock of a dead attempt for that of a live one, and dies; its clean-up removes the lock all the same.

Symptom: the attempt after the next one gets to work, so each kill costs two retries, and the budget is spent on half the preemptions.
Case 36: https://github.com/marin-community/marin/pull/4199 (its kind: what is left of the last attempt kills the new one)
Caught by: within-retries
"""

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main

LOCK = "lock"


class Locked(CheckpointDirectory):
    """One attempt at a time, by a file that a kill leaves behind."""

    def take_ownership(self) -> None:
        """Take the lock, then the directory."""
        lock = self.path / LOCK
        if lock.exists():
            raise RuntimeError(f"{lock} exists: another attempt is at work")
        lock.touch()
        super().take_ownership()


class CrashesOnStaleLock(Trainer):
    """The right job on the wrong kind of directory, which it unlocks when it leaves."""

    directory_type = Locked

    def run(self) -> int:
        """Run, and unlock the directory however that ends."""
        try:
            return super().run()
        finally:
            (self.checkpoints.path / LOCK).unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main(CrashesOnStaleLock))
