"""Guide B's job, linear regression by JaxTrainer, with the checkpoints that the guide leaves out.

    CHECKPOINT_DIR=/checkpoints python -m workloads.jax_tpu.train

Environment: CHECKPOINT_DIR, STEPS (12), STEP_SECONDS (0.1, added to each step), SAVE_EVERY (3), SEED (0), RANKS (2, the hosts of the
slice), MAX_FAILURES (3, worker groups that may die in one attempt), RUN_NAME (CLOUD_RUN_JOB, or local-job). RAY_ADDRESS names the cluster,
and in a RayJob it is set; without it the job starts one on this machine, of RAY_NODES (1) nodes, with its files in RAY_TMPDIR. TPU_TOPOLOGY
and TPU_TYPE ask for the hosts of a slice as the guide does; without them each worker trains on its CPU.

Exit codes: 0 complete, 1 failed, 143 stopped by SIGTERM. A retry finds the run by its name and storage path and goes on from the last
committed report. A SIGTERM loses the steps since then: in a real cluster the workers are on other machines, and nothing asks them to save.

What CPU workers do not emulate: chips, a slice that is placed and lost as a whole, the network between its hosts. What they share with
the guide: Ray's placement, controller, retries and storage layout, and jax.distributed over all workers.
"""

import contextlib
import os
import signal
import sys
import threading
from typing import Any, NoReturn

from workloads import protocol
from workloads.jax_tpu.cluster import kill_descendants, start_cluster
from workloads.jax_tpu.settings import Settings

PREEMPTED = 128 + signal.SIGTERM
STOP_SECONDS = 4  # of the platform's 10; 1 or 2 are enough, and after 5 without its head Ray ends the process as failed

# Ray Train reads these in the driver and hands them on. Its own values are made for runs of hours.
DEFAULTS = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.25",  # 2; a report is committed no earlier than the next check
    "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "0.5",  # 5
    "RAY_TRAIN_METRICS_ENABLED": "0",  # nobody scrapes them
    "RAY_TRAIN_ENABLE_PRINT_PATCH": "0",  # prints each line of a worker twice
}


def main() -> int:
    signal.signal(signal.SIGTERM, stop)
    settings = Settings.from_environment()
    with contextlib.ExitStack() as stack:
        try:
            connect(stack, settings)
            return train(settings)
        except SystemExit:  # SIGTERM, by our handler or by one of those that Ray installs while it starts
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            protocol.emit("sigterm")
            print("Received SIGTERM: the run stops here; a retry goes on from its last committed report.", flush=True)
            limit_stop()
            abort_training()
            return PREEMPTED


def stop(_number: int, _frame: object) -> NoReturn:
    sys.exit(PREEMPTED)


def connect(stack: contextlib.ExitStack, settings: Settings) -> None:
    """Connect to RAY_ADDRESS, or start a cluster that ends with ``stack``, and say where it is: whoever wants to hurt it needs that."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS", "")
    if not address and settings.nodes == 1:
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")  # a process of its own, and a drained node would leave no other
    cluster: dict[str, Any] = {"address": address} if address else start_cluster(stack, nodes=settings.nodes, cpus=settings.ranks)
    import ray  # late: it reads the environment that start_cluster sets

    stack.callback(ray.shutdown)
    ray.init(address=cluster["address"], runtime_env={"env_vars": worker_environment(settings, cluster["address"])})
    signal.signal(signal.SIGTERM, stop)  # again: Ray has taken it
    protocol.emit("ray.up", **cluster)


def worker_environment(settings: Settings, address: str) -> dict[str, str]:
    """What the controller and the workers must know, on whatever machine they run; pods are told by their templates who they are.

    With an address in it Ray's own actors do not look for a cluster among all processes of the machine, where they may find another one.
    """
    prefixes = ("HARNESS_", "CLOUD_RUN_") if "KUBERNETES_SERVICE_HOST" not in os.environ else ()
    watched = {name: value for name, value in os.environ.items() if name.startswith(prefixes)}
    platforms = os.environ.get("JAX_PLATFORMS", "" if settings.tpu_topology else "cpu")
    return watched | {"RAY_ADDRESS": address} | ({"JAX_PLATFORMS": platforms} if platforms else {})


def train(settings: Settings) -> int:
    """Run the trainer to its end; returns the exit code."""
    import ray

    from workloads.jax_tpu.trainer import make_trainer

    try:
        result = make_trainer(settings).fit()
    except (ray.train.TrainingFailedError, ray.exceptions.RayError) as error:
        print(f"Training failed: {error}\n{hint(error, settings)}", flush=True)
        return 1
    step = result.metrics["step"]
    if step != settings.loop["steps"]:
        print(f"Training failed: the trainer returned, but its last committed checkpoint is of step {step}.", flush=True)
        return 1
    print(f"Metrics: step {step}, loss {result.metrics['loss']:.6f}", flush=True)
    print("Training Complete!", flush=True)
    protocol.emit("done", step=step)
    return 0


def hint(error: Exception, settings: Settings) -> str:
    """Say what to do about the one failure that no retry mends."""
    if "CheckpointManagerInitializationError" not in str(error):
        return "A retry goes on from the last committed report."
    return (
        f"Ray cannot start the run {settings.run_name!r}: {settings.storage_path}/{settings.run_name}/checkpoint_manager_snapshot.json is "
        "damaged, or a checkpoint that it lists is gone. Ray writes that file in place and keeps no older one, and it goes back to no "
        "earlier checkpoint by itself: repair the file, or start a new run under another name."
    )


def abort_training() -> None:
    """Have the controller stop the workers between two commits, by the handler that Ray has for Ctrl-C.

    Killed while it rewrites its snapshot, the controller would leave a run that nothing can start again.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return  # training has not begun
    import ray

    with contextlib.suppress(SystemExit, ray.exceptions.RayError):
        signal.raise_signal(signal.SIGINT)


def limit_stop() -> None:
    """Leave within the platform's grace whatever Ray does: where the head has got the signal too, it waits for it, deaf to signals."""

    def leave() -> None:
        kill_descendants()
        os._exit(PREEMPTED)

    timer = threading.Timer(STOP_SECONDS, leave)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(main())
