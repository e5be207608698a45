"""A run's part of the storage that outlives nodes: checkpoints, event files, barrier sockets.

The run directory may lie where no node sees it. So its checkpoint directory is moved to the shared storage while the run lasts, a link
stands in its place, and at the end it is moved back: whoever reads the run directory finds the checkpoints there at any time.
"""

import os
import shutil
from pathlib import Path

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, StoreError
from harness.protocol.barrier import SOCKET_PATH_BYTES_MAX

CHECKPOINTS_MOUNT = "/checkpoints"
"""Where a job sees its checkpoints, as in the guide for Cloud Run."""


class RunStorage:
    """The directories of one run.

    Attributes:
        directory: All of it.
        checkpoints: What is mounted for the job.
        events: One file a pod.
        sockets: One a task.
    """

    def __init__(self, shared: Path, launch: Launch) -> None:
        self.directory = shared / "runs" / launch.run_id
        self._own = launch.checkpoint_dir
        self._is_shared = launch.checkpoint_dir.resolve().is_relative_to(shared.resolve())
        self.checkpoints = launch.checkpoint_dir.resolve() if self._is_shared else self.directory / "checkpoints"
        self.events = self.directory / "events"
        self.sockets = self.directory / "sockets"

    @property
    def moved_from(self) -> str:
        """Where the checkpoints came from and go back to; empty when they stay."""
        return "" if self._is_shared else str(self._own)

    def socket_path(self, task: int) -> Path:
        """Of the barrier of a task."""
        return self.sockets / str(task)

    def prepare(self) -> None:
        """Make the directories and put the link.

        Raises:
            StoreError: When they cannot be made.
            InvalidDocumentError: When the path is too long for sockets.
        """
        longest = len(os.fsencode(self.socket_path(9999)))
        if longest > SOCKET_PATH_BYTES_MAX:
            problem = f"{self.directory} is too long by {longest - SOCKET_PATH_BYTES_MAX} bytes for sockets"
            raise InvalidDocumentError(
                document="the cluster's shared storage", field="path", problem=problem, advice="name a shorter HARNESS_CLUSTER_SHARED"
            )
        try:
            for path in (self.events, self.sockets):
                path.mkdir(parents=True, exist_ok=True)
            if not self._is_shared:
                shutil.move(self._own, self.checkpoints)
                self._own.symlink_to(self.checkpoints)
        except OSError as error:
            raise StoreError(path=self.directory, attempted="prepare", reason=error.strerror or str(error)) from error


def move_back(checkpoints: Path, moved_from: str) -> bool:
    """Put checkpoints back in the place of their link; false when there is nothing to do.

    Raises:
        OSError: When they cannot be moved.
    """
    own = Path(moved_from)
    if not moved_from or not own.is_symlink() or not checkpoints.exists():
        return False
    own.unlink()
    shutil.move(checkpoints, own)
    return True


def give_back(directory: str, moved_from: str) -> list[str]:
    """Move checkpoints back and remove a run's directory; says what was done. Harmless twice.

    Raises:
        OSError: When they cannot be moved; they stay where they are.
    """
    is_moved = move_back(Path(directory) / "checkpoints", moved_from)
    shutil.rmtree(directory, ignore_errors=True)
    return [f"moved checkpoints back to {moved_from}"] if is_moved else []
