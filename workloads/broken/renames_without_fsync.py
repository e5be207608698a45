"""Wrong: writes beside and renames as it should, and never fsyncs a file or a directory.

Symptom: after the loss of the node the renamed checkpoint is there and its files are empty. The death of the process alone cannot show it,
the kernel still holds the data: it takes a storage model that drops unsynced writes, or a look at the job's system calls.
Case 14: https://github.com/tdrussell/diffusion-pipe/issues/159
Caught by: intact-checkpoints
"""

from pathlib import Path

from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import Trainer, main


class Unsynced(CheckpointDirectory):
    """Trusts the page cache."""

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a file and do not wait for the storage."""
        path.write_bytes(data)

    def sync_directory(self, path: Path) -> None:
        """Do not wait for the storage."""


class RenamesWithoutFsync(Trainer):
    """The right job on the wrong kind of directory."""

    directory_type = Unsynced


if __name__ == "__main__":
    raise SystemExit(main(RenamesWithoutFsync))
