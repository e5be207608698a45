"""What the environment asks of the job."""

import os
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    storage_path: str
    run_name: str
    ranks: int
    nodes: int
    max_failures: int
    tpu_topology: str
    tpu_type: str
    loop: dict[str, Any]

    @classmethod
    def from_environment(cls) -> "Settings":
        environment = os.environ
        if "CHECKPOINT_DIR" not in environment:
            sys.exit("CHECKPOINT_DIR is not set: name the directory that outlives this job.")
        return cls(
            storage_path=environment["CHECKPOINT_DIR"],
            run_name=environment.get("RUN_NAME", environment.get("CLOUD_RUN_JOB", "local-job")),
            ranks=int(environment.get("RANKS", "2")),
            nodes=int(environment.get("RAY_NODES", "1")),
            max_failures=int(environment.get("MAX_FAILURES", "3")),
            tpu_topology=environment.get("TPU_TOPOLOGY", ""),
            tpu_type=environment.get("TPU_TYPE", "TPU-V6E"),
            loop={
                "steps": int(environment.get("STEPS", "12")),
                "step_seconds": float(environment.get("STEP_SECONDS", "0.1")),
                "save_every": int(environment.get("SAVE_EVERY", "3")),
                "seed": int(environment.get("SEED", "0")),
            },
        )
