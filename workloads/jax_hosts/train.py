"""One host of a job of several: the regression of guide B over jax.distributed, without Ray.

    export CHECKPOINT_DIR=/checkpoints JAX_COORDINATOR_ADDRESS=job-0.hosts:8476 JAX_PROCESS_COUNT=2
    JAX_PROCESS_ID=0 python -m workloads.jax_hosts.train

Environment: the JAX_* above for each host (one host alone needs none of them), STEPS (20), STEP_SECONDS (0.05, added to each step),
SAVE_EVERY (5), SEED (0), START_SECONDS (60, for all hosts to meet), HEARTBEAT_SECONDS (10, after which a host that is silent is dead;
JAX's own 100 are made for hosts by the thousand), JAX_PLATFORMS (cpu).

Exit codes: 0 complete; 143 saved and left at SIGTERM; 69 another host was lost; 74 the storage failed; 75 a newer incarnation has taken the
checkpoints over; 134 another host was silent, for which JAX aborts the process. All but 0 ask for new pods, which go on from the newest
checkpoint.
"""

import os
import signal
import sys
import threading

from workloads import protocol
from workloads.jax_hosts.settings import Settings

TERMINATED = 128 + signal.SIGTERM


def main() -> int:
    settings = Settings.from_environment()
    leave_on_sigterm(settings)
    protocol.emit("boot", rank=settings.process_id)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # A job this small stays on its own core: more threads disturb the neighbours, and may split a sum in another way.
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    from workloads.jax_hosts import loop  # late: JAX takes seconds to import, and a signal in them must find its handler

    return loop.run(settings)


def leave_on_sigterm(settings: Settings) -> None:
    """Leave at once on a signal until JAX takes it over: there is nothing to save yet.

    A host waits for the others in C++, where no handler of Python's runs, and as PID 1 of a container it has no default action that would
    end it: a thread has to.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(writing)

    def leave() -> None:
        os.read(reading, 1)
        protocol.emit("sigterm", rank=settings.process_id)
        os.write(1, b"Received SIGTERM before the training: leaving.\n")
        os._exit(TERMINATED)

    threading.Thread(target=leave, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
