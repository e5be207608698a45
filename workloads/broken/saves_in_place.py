"""Wrong: keeps one checkpoint file and writes every new one over it, in place.

Symptom: a kill between the two halves of the write leaves half a file, the last good checkpoint is gone, and the retry starts from scratch.
Case 14: https://github.com/tdrussell/diffusion-pipe/issues/159
Caught by: intact-checkpoints
"""

import json

from workloads.linear.checkpoints import CheckpointDirectory, DamagedError
from workloads.linear.train import Trainer, main
from workloads.protocol import emit


class OneFile(CheckpointDirectory):
    """``checkpoint.json``, opened for writing while it is the only checkpoint."""

    def newest_intact(self) -> int:
        """The step in the file, 0 where it cannot be read."""
        try:
            step: int = json.loads((self.path / "checkpoint.json").read_bytes())["step"]
        except (FileNotFoundError, ValueError) as error:
            print(f"checkpoint.json is unreadable: {error}.", flush=True)
            return 0
        return step

    def read(self, step: int) -> dict[str, bytes]:
        """The file, when it is of ``step``."""
        if self.newest_intact() != step:
            raise DamagedError(f"checkpoint.json is not of step {step}")
        return {"state.json": (self.path / "checkpoint.json").read_bytes()}

    def write(self, step: int, files: dict[str, bytes]) -> None:
        """Overwrite the file, in two halves as a large one would be."""
        data = files["state.json"]
        with (self.path / "checkpoint.json").open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            emit("save.write", step=step, file="checkpoint.json")
            file.write(data[len(data) // 2 :])

    def commit(self, step: int) -> None:
        """Nothing is left to do: the only checkpoint is overwritten already."""


class SavesInPlace(Trainer):
    """The right job on the wrong kind of directory."""

    directory_type = OneFile


if __name__ == "__main__":
    raise SystemExit(main(SavesInPlace))
