"""Wrong: training stands still while a save is uploaded, and an upload takes four times as long as the training since the last one.

Symptom: everything is kept that was promised to be kept, and four fifths of the time of the machine are paid for nothing.
No case: own finding: a save on the thread that trains lasts as long as the storage takes; Orbax does it so when asynchronous saves are off
Caught by: goodput
"""

import time

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main

STALL = 4  # times the training since the last save: a multiple of it, so that a slow machine shows the same ratio


class SlowUpload(CheckpointDirectory):
    """A storage with little bandwidth."""

    uploaded = time.monotonic()

    def write(self, step: int, files: dict[str, bytes]) -> None:
        """Write a checkpoint and wait until it is uploaded."""
        super().write(step, files)
        time.sleep(STALL * (time.monotonic() - self.uploaded))
        self.uploaded = time.monotonic()


class StallsInSaves(Trainer):
    """The right job on the wrong kind of storage."""

    directory_type = SlowUpload


if __name__ == "__main__":
    raise SystemExit(main(StallsInSaves))
