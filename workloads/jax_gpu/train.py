"""Train a small model on a GPU when there is one, on the CPU otherwise, and lose nothing when the platform ends the job.

    CHECKPOINT_DIR=/checkpoints python -m workloads.jax_gpu.train          one process
    CHECKPOINT_DIR=/checkpoints RANKS=2 python -m workloads.jax_gpu.launch   two, over jax.distributed

Environment: CHECKPOINT_DIR, STEPS (20), STEP_SECONDS (0.05, added to each step), SAVE_EVERY (5), SEED (0), and for several
processes HEARTBEAT_SECONDS (10) with RANK, RANKS and COORDINATOR from the launcher. Exit codes: 0 complete, 143 saved after SIGTERM.
"""

import os
import sys

from workloads import protocol
from workloads.jax_gpu.preemption import SigtermFlag
from workloads.jax_gpu.settings import Settings


def limit_threads() -> None:
    """Keep a job this small on its own core: more threads only disturb the neighbours, and may split a sum in another way."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> int:
    settings = Settings.from_environment()
    flag = SigtermFlag() if settings.ranks == 1 else None
    protocol.emit("boot", rank=settings.rank)
    limit_threads()
    # Late: JAX takes seconds to import, and a signal in them must find its handler.
    from workloads.jax_gpu import loop
    from workloads.jax_gpu.checkpointing import SaveFailedError

    try:
        return loop.run(settings, flag)
    except SaveFailedError as error:
        print(error, flush=True)
        os._exit(1)  # not sys.exit: threads of a failed save wait for minutes for a directory that nobody makes


if __name__ == "__main__":
    sys.exit(main())
