"""Wrong: does not ask who owns the directory.

Symptom: in an overlap the attempt that should be dead goes on saving beside the new one, and ``latest`` goes back and forth.
Case 42: https://github.com/ray-project/kuberay/issues/5211
Case 36: https://github.com/marin-community/marin/pull/4199
Caught by: single-writer
"""

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main


class Unfenced(CheckpointDirectory):
    """Anybody may write."""

    def check_ownership(self) -> None:
        """Assume that every older attempt is dead."""


class TwoWriters(Trainer):
    """The right job on the wrong kind of directory."""

    directory_type = Unfenced


if __name__ == "__main__":
    raise SystemExit(main(TwoWriters))
