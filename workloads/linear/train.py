"""Linear regression by SGD with momentum in the standard library: a small job that keeps the whole promise.

Killed anywhere and started again, it ends with the bits of a run that nobody touched. Run from the repository root:
``python -m workloads.linear.train``; ``RANKS=2`` trains data-parallel on two processes in one task (``ranks.py``).
"""

import json
import math
import os
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workloads.linear.checkpoints import CheckpointDirectory, FencedError
from workloads.linear.model import BATCH, FEATURES, SAMPLES, gradient_of, make_samples, order_of
from workloads.protocol import digest, emit

if TYPE_CHECKING:
    from workloads.linear.ranks import Gang

Value = TypeVar("Value")

MOMENTUM = 0.9
NOISE = 0.01
LEARNING_RATE = 0.05
WARM_UP_STEPS = 10
SLICE_S = 0.05  # how late a signal may be noticed inside a step

EXIT_TERMINATED = 143  # 128 + SIGTERM: saved and left, the platform retries
EXIT_SAVE_FAILED = 74  # EX_IOERR: the last save failed, so the platform has to retry
EXIT_FENCED = 75  # EX_TEMPFAIL: a newer attempt is at work


@dataclass
class State:
    """Everything that the next step depends on: what is not here cannot be restored."""

    step: int = 0
    epoch: int = 0
    cursor: int = 0
    weights: list[float] = field(default_factory=lambda: [0.0] * FEATURES)
    velocity: list[float] = field(default_factory=lambda: [0.0] * FEATURES)
    noise: random.Random = field(default_factory=random.Random)


class Trainer:
    """One attempt at the job, on one rank of ``ranks``; only rank 0 writes."""

    directory_type: type[CheckpointDirectory] = CheckpointDirectory
    ranks_default = 1

    def __init__(self, rank: int, gang: "Gang | None") -> None:
        self.rank, self.gang = rank, gang
        self.steps = int(os.environ.get("STEPS", "40"))
        self.step_s = float(os.environ.get("STEP_SECONDS", "0.02"))
        self.save_every = int(os.environ.get("SAVE_EVERY", "5"))
        self.seed = int(os.environ.get("SEED", "0"))
        path, attempt = os.environ.get("CHECKPOINT_DIR", "/checkpoints"), os.environ.get("CLOUD_RUN_TASK_ATTEMPT", "0")
        self.checkpoints = self.directory_type(Path(path), int(attempt), keep=int(os.environ.get("KEEP", "2")))
        self.state = State(noise=random.Random(self.seed))
        self.samples = make_samples(self.seed)
        self.stopping = False

    def run(self) -> int:
        """Restore, train, save; returns the exit code."""
        signal.signal(signal.SIGTERM, self.handle_sigterm)
        self.emit("boot")
        try:
            self.restore()
            return self.train()
        except FencedError as error:
            print(error, flush=True)
            return EXIT_FENCED
        except OSError as error:
            print(f"Rank {self.rank} stops at step {self.state.step} with its work unsaved: {error}.", flush=True)
            return EXIT_SAVE_FAILED

    def handle_sigterm(self, *_: object) -> None:
        """Set a flag, which every phase looks at."""
        self.stopping = True
        self.emit("sigterm")

    def train(self) -> int:
        """Go through the steps; returns the exit code."""
        self.emit("start", restored_step=self.state.step, steps=self.steps)
        while self.state.step < self.steps:
            batch_ids = self.train_step()
            if batch_ids is None:
                return self.leave()
            self.emit("step", step=self.state.step, batch_ids=batch_ids, digests=self.digests())
            if self.state.step % self.save_every == 0 and self.state.step < self.steps and not self.stopping:
                self.save_or_go_on()
        return self.finish()

    def train_step(self) -> list[int] | None:
        """Do one step and return the samples that this rank took, or, when a signal ends it, do nothing at all."""
        self.wait(self.step_s)
        epoch, cursor, batch = self.next_batch()
        mine = batch[self.rank :: self.gang.size if self.gang else 1]
        gradient = gradient_of(self.state.weights, [self.samples[i] for i in mine])
        shares = self.gather((self.stopping, gradient))
        if any(stopping for stopping, _ in shares):
            return None
        rate = self.learning_rate(self.state.step)
        for i in range(FEATURES):
            slope = math.fsum(share[i] for _, share in shares) / len(batch) + self.state.noise.uniform(-NOISE, NOISE)
            self.state.velocity[i] = MOMENTUM * self.state.velocity[i] - rate * slope
            self.state.weights[i] += self.state.velocity[i]
        self.state.step, self.state.epoch, self.state.cursor = self.state.step + 1, epoch, cursor
        return mine

    def wait(self, seconds: float) -> None:
        """Take as long as a step would, in slices: ``time.sleep`` goes on after a signal handler (PEP 475)."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_S))

    def gather(self, value: Value) -> list[Value]:
        """Share a value with all ranks and return theirs in rank order; the ranks meet here."""
        if not self.gang:
            return [value]
        self.emit("collective", step=self.state.step)  # it waits for the others from here on, and is not the one they wait for
        return self.gang.gather(value)

    def next_batch(self) -> tuple[int, int, list[int]]:
        """The samples of the next step, and the epoch and the cursor after it."""
        at_end = self.state.cursor >= SAMPLES
        epoch, cursor = (self.state.epoch + 1, 0) if at_end else (self.state.epoch, self.state.cursor)
        return epoch, cursor + BATCH, order_of(self.seed, epoch)[cursor : cursor + BATCH]

    def learning_rate(self, step: int) -> float:
        """Warm-up, then a linear decay: a function of the step alone."""
        return LEARNING_RATE * min(1.0, (step + 1) / WARM_UP_STEPS) * (1.0 - step / self.steps)

    def digests(self) -> dict[str, str]:
        """Fingerprints of the state in memory, part by part."""
        state = self.state
        return {
            "params": digest(*map(float.hex, state.weights)),
            "optimizer": digest(*map(float.hex, state.velocity)),
            "rng": digest(repr(state.noise.getstate())),
            "data": digest(f"{state.epoch} {state.cursor}", repr(order_of(self.seed, state.epoch))),
            "step": digest(str(state.step)),
        }

    def encode(self) -> dict[str, bytes]:
        """The state as the files of a checkpoint; hexadecimal floats are exact."""
        state = self.state
        document = {"step": state.step, "epoch": state.epoch, "cursor": state.cursor, "noise": state.noise.getstate()}
        arrays = {"weights": [*map(float.hex, state.weights)], "velocity": [*map(float.hex, state.velocity)]}
        return {"state.json": json.dumps(document | arrays).encode()}

    def decode(self, files: dict[str, bytes]) -> State:
        """The state that ``encode`` wrote."""
        document = json.loads(files["state.json"])
        version, words, gauss = document["noise"]
        weights, velocity = ([*map(float.fromhex, document[name])] for name in ("weights", "velocity"))
        state = State(document["step"], document["epoch"], document["cursor"], weights, velocity)
        state.noise.setstate((version, tuple(words), gauss))
        return state

    def restore(self) -> None:
        """Take the directory over and go back to its newest intact checkpoint; all ranks to the one that rank 0 chose."""
        step = self.choose()
        if not step:
            print("No checkpoint to use: starting from scratch.", flush=True)
            return
        self.emit("restore.begin", step=step)
        self.state = self.decode(self.checkpoints.read(step))
        self.emit("restore", step=step, digests=self.digests())
        print(f"Resuming from step {self.state.step} of {self.steps}.", flush=True)

    def choose(self) -> int:
        """The step to restore, 0 for none."""
        step = 0
        if self.rank == 0:
            self.checkpoints.take_ownership()
            step = self.checkpoints.newest_intact()
        return self.gather(step)[0]

    def save_or_go_on(self) -> None:
        """Save on the cadence: a storage that fails now must not end the training, only the last save has to succeed."""
        try:
            self.save()
        except OSError as error:
            print(f"Cannot save step {self.state.step}: {error}. Training goes on.", flush=True)

    def save(self) -> None:
        """Make this step durable, on rank 0.

        Raises:
            FencedError: a newer attempt owns the checkpoints.
            OSError: the storage failed; the last good checkpoint is untouched.
        """
        step, digests = self.state.step, self.digests()
        if self.rank != 0 or step == 0:
            return
        self.checkpoints.check_ownership()
        if self.checkpoints.is_intact(step):
            print(f"Step {step} is saved already.", flush=True)
            return
        self.emit("save.begin", step=step, digests=digests)
        self.checkpoints.write(step, self.encode())
        self.emit("save.commit", step=step)
        with self.checkpoints.alone():
            self.checkpoints.commit(step)
            self.emit("save.latest", step=step)
            self.checkpoints.point_latest(step)
            self.emit("save.end", step=step, digests=digests)
        self.emit("gc.begin", step=step)
        self.checkpoints.collect(step)
        self.emit("gc.end", step=step)

    def leave(self) -> int:
        """Save the last completed step and ask for a retry."""
        print(f"Received SIGTERM: saving step {self.state.step} and leaving.", flush=True)
        self.save()
        return EXIT_TERMINATED

    def finish(self) -> int:
        """Make the result durable, then say that the job is done."""
        self.save()
        if self.rank == 0:
            self.checkpoints.replace_file("final.json", json.dumps(self.result()).encode())
        self.gather("saved")
        print(f"Completed {self.state.step} steps.", flush=True)
        self.emit("done", step=self.state.step)
        return 0

    def result(self) -> dict[str, object]:
        """What the training was for."""
        return {"step": self.state.step, "params": self.digests()["params"]}

    def emit(self, event: str, **fields: object) -> None:
        """Say what this rank is doing to whoever listens."""
        emit(event, rank=self.rank, **fields)


def main(trainer_type: type[Trainer] = Trainer) -> int:
    """Run the job of this process: one rank, or the launcher of several."""
    size = int(os.environ.get("RANKS", trainer_type.ranks_default))
    if size == 1:
        return trainer_type(0, None).run()
    from workloads.linear.ranks import Gang, launch  # late: a job of one process starts faster without it

    if "RANK" not in os.environ:
        return launch([sys.executable, *sys.orig_argv[1:]], size)
    return trainer_type(int(os.environ["RANK"]), Gang(size)).run()


if __name__ == "__main__":
    raise SystemExit(main())
