"""What the environment asks of the job."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What the environment asks for."""

    root: Path
    steps: int
    step_seconds: float
    save_every: int
    seed: int
    rank: int
    ranks: int
    coordinator: str
    heartbeat_seconds: int

    @classmethod
    def from_environment(cls) -> "Settings":
        environment = os.environ
        directory = environment.get("CHECKPOINT_DIR", "")
        if not os.path.isdir(directory):
            sys.exit(f"CHECKPOINT_DIR is {directory!r}, not a directory: name one that outlives this job.")
        if int(environment.get("RANKS", "1")) > 1 and "RANK" not in environment:
            sys.exit("RANKS is above 1 but RANK is not set: start the ranks with python -m workloads.jax_gpu.launch.")
        return cls(
            root=Path(directory).absolute(),  # Orbax refuses relative paths
            steps=int(environment.get("STEPS", "20")),
            step_seconds=float(environment.get("STEP_SECONDS", "0.05")),
            save_every=int(environment.get("SAVE_EVERY", "5")),
            seed=int(environment.get("SEED", "0")),
            rank=int(environment.get("RANK", "0")),
            ranks=int(environment.get("RANKS", "1")),
            coordinator=environment.get("COORDINATOR", ""),
            heartbeat_seconds=int(environment.get("HEARTBEAT_SECONDS", "10")),
        )
