"""Wrong: moves ``latest``, which names its checkpoint by an absolute path, to the new one before its data is there, and trusts it.

Symptom: after a kill in a save ``latest`` names nothing, and the retry starts from scratch. A copy of the directory names the original, and
seems to be complete where that is.
No case: own finding: a pointer that is a whole path leads out of a copy, so that a trial on the copy proves nothing
Caught by: resumes-from-newest-durable
"""

from pathlib import Path

from workloads.broken.latest_before_data import LatestBeforeData
from workloads.linear.checkpoints import CheckpointDirectory
from workloads.linear.train import main


class Named(CheckpointDirectory):
    """Trusts the pointer, wherever it leads."""

    def newest_intact(self) -> int:
        """The step that ``latest`` names, 0 where there is no such checkpoint."""
        try:
            step = int(self.named().name.removeprefix("step_"))
        except FileNotFoundError:
            return 0
        return step if CheckpointDirectory(self.named().parent, self.attempt, self.keep).is_intact(step) else 0

    def read(self, step: int) -> dict[str, bytes]:
        """The checkpoint where ``latest`` says that it lies."""
        return CheckpointDirectory(self.named().parent, self.attempt, self.keep).read(step)

    def point_latest(self, step: int) -> None:
        """Write down where the checkpoint lies."""
        self.replace_file("latest", bytes(self.directory_of(step).absolute()))

    def named(self) -> Path:
        """Where ``latest`` leads."""
        return Path((self.path / "latest").read_text())


class LatestNamesAPath(LatestBeforeData):
    """Announces a checkpoint by its path, then writes it."""

    directory_type = Named


if __name__ == "__main__":
    raise SystemExit(main(LatestNamesAPath))
