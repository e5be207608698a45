"""Wrong: keeps its arrays as raw bytes and loads them without comparing them with anything.

Symptom: a byte of the newest checkpoint flips on the storage and is restored without an error: other weights, and nobody knows.
No case: own finding: Orbax restores a flipped byte of its data files silently, 5 times of 5
Caught by: intact-checkpoints
"""

import json
import struct

from workloads.linear.checkpoints import MANIFEST, CheckpointDirectory
from workloads.linear.model import FEATURES
from workloads.linear.train import State, Trainer, main

WORDS = 624  # of the generator's state; the position in it is in state.json
ARRAYS = struct.Struct(f"<{FEATURES}d{FEATURES}d{WORDS}I")


class Unverified(CheckpointDirectory):
    """A checkpoint that is committed is good."""

    def read(self, step: int) -> dict[str, bytes]:
        """The files of a checkpoint as they are."""
        directory = self.directory_of(step)
        return {name: (directory / name).read_bytes() for name in ("state.json", "arrays.bin")}

    def is_intact(self, step: int) -> bool:
        """Whether the checkpoint is committed."""
        return (self.directory_of(step) / MANIFEST).exists()


class RestoresDamagedBytes(Trainer):
    """The right job on the wrong kind of directory, with a format in which any byte is as good as another."""

    directory_type = Unverified

    def encode(self) -> dict[str, bytes]:
        """Small values as text, arrays as bytes."""
        state = self.state
        version, (*words, position), gauss = state.noise.getstate()
        small = {"step": state.step, "epoch": state.epoch, "cursor": state.cursor, "noise": [version, position, gauss]}
        return {"state.json": json.dumps(small).encode(), "arrays.bin": ARRAYS.pack(*state.weights, *state.velocity, *words)}

    def decode(self, files: dict[str, bytes]) -> State:
        """The state that ``encode`` wrote, or what has become of it."""
        small, numbers = json.loads(files["state.json"]), ARRAYS.unpack(files["arrays.bin"])
        weights, velocity = [*numbers[:FEATURES]], [*numbers[FEATURES : 2 * FEATURES]]
        state = State(small["step"], small["epoch"], small["cursor"], weights, velocity)
        version, position, gauss = small["noise"]
        state.noise.setstate((version, (*numbers[2 * FEATURES :], position), gauss))
        return state


if __name__ == "__main__":
    raise SystemExit(main(RestoresDamagedBytes))
