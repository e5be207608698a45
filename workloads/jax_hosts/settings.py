"""What the environment asks of one host."""

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    root: Path
    coordinator: str
    process_id: int
    process_count: int
    steps: int
    step_seconds: float
    save_every: int
    seed: int
    start_seconds: int
    heartbeat_seconds: int

    @classmethod
    def from_environment(cls) -> "Settings":
        environment = os.environ
        directory = environment.get("CHECKPOINT_DIR", "")
        if not os.path.isdir(directory):
            sys.exit(f"CHECKPOINT_DIR is {directory!r}, not a directory: name one that outlives this job and that all hosts see.")
        process_count = int(environment.get("JAX_PROCESS_COUNT", "1"))
        if process_count > 1 and not environment.get("JAX_COORDINATOR_ADDRESS"):
            sys.exit("JAX_PROCESS_COUNT is above 1 but JAX_COORDINATOR_ADDRESS is not set: name host and port of process 0.")
        return cls(
            root=Path(directory),
            coordinator=environment.get("JAX_COORDINATOR_ADDRESS") or free_address(),
            process_id=int(environment.get("JAX_PROCESS_ID", "0")),
            process_count=process_count,
            steps=int(environment.get("STEPS", "20")),
            step_seconds=float(environment.get("STEP_SECONDS", "0.05")),
            save_every=int(environment.get("SAVE_EVERY", "5")),
            seed=int(environment.get("SEED", "0")),
            start_seconds=int(environment.get("START_SECONDS", "60")),
            heartbeat_seconds=int(environment.get("HEARTBEAT_SECONDS", "10")),
        )

    @property
    def is_on_loopback(self) -> bool:
        """Whether all hosts are this machine: then nothing may listen beyond it."""
        return self.coordinator.startswith("127.")


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
