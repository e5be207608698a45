"""The checkpoints of the job, fenced without a number from the platform: pods that replace pods are not counted."""

from pathlib import Path

from workloads.linear.checkpoints import CheckpointDirectory

KEPT = 2  # one to go back to when the newest is damaged


class ClaimedDirectory(CheckpointDirectory):
    """Each incarnation that takes the directory over counts one up; an older one on a node that is cut off stops at its next save."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, attempt=0, keep=KEPT)

    def take_ownership(self) -> None:
        with self.alone():
            self.attempt = self.read_owner() + 1
            self.check_ownership()
        self.remove_stale()
