"""What every worker of the JaxTrainer runs: the regression, restored, stepped and saved through Ray Train."""

import tempfile
import time
from pathlib import Path
from typing import Any

import ray.train

from workloads import protocol
from workloads.jax_tpu.regression import FEATURES, make_advance
from workloads.jax_tpu.state import DamagedError, TrainState, read_checkpoint, write_checkpoint


def train(config: dict[str, Any]) -> None:
    """Train from the newest sound checkpoint to ``config["steps"]``.

    Raises:
        DamagedError: checkpoints exist and none of them is sound. To start again from scratch would hide that loss.
    """
    rank = ray.train.get_context().get_world_rank()
    protocol.emit("boot", rank=rank)
    state = restore_newest(rank) or TrainState.initial(seed=config["seed"], features=FEATURES)
    advance = make_advance(config["seed"], rank, ray.train.get_context().get_world_size())
    protocol.emit("start", rank=rank, restored_step=state.step, steps=config["steps"])
    was_preempted = False
    while state.step < config["steps"]:
        time.sleep(config["step_seconds"])
        state, loss, batch_ids = advance(state)
        protocol.emit("step", rank=rank, step=state.step, batch_ids=batch_ids, digests=state.digests())
        is_preempted = ray.train.get_preemption_info() is not None  # one answer for all ranks, at the price of a barrier
        is_due = state.step % config["save_every"] == 0 or state.step == config["steps"]
        if is_due or (is_preempted and not was_preempted):
            save(state, loss, rank)
        was_preempted = is_preempted


def restore_newest(rank: int) -> TrainState | None:
    """Load the newest sound checkpoint of those that the controller has committed; None where it has none."""
    reported = ray.train.get_all_reported_checkpoints()
    for report in reversed(reported):
        protocol.emit("restore.begin", rank=rank, step=report.metrics["step"])
        try:
            with report.checkpoint.as_directory() as directory:
                state = read_checkpoint(Path(directory))
        except DamagedError as error:
            print(f"Skipping the checkpoint of step {report.metrics['step']}: {error}.", flush=True)
            continue
        protocol.emit("restore", rank=rank, step=state.step, digests=state.digests())
        return state
    if reported:
        raise DamagedError(f"None of the {len(reported)} checkpoints of this run is sound.")
    return None


def save(state: TrainState, loss: float, rank: int) -> None:
    """Report a checkpoint, whose files rank 0 writes; every rank has to report.

    When this returns the files are on the storage, but the checkpoint counts only once the controller has written it into its
    snapshot (see ``Acknowledge`` in train.py). A worker lost in between leaves a directory that nothing will ever restore or remove.
    """
    metrics = {"step": state.step, "loss": loss, "digests": state.digests()}
    if rank > 0:
        ray.train.report(metrics)
        return
    protocol.emit("save.begin", step=state.step, digests=metrics["digests"])
    print(f"Step {state.step}: loss {loss:.6f}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        write_checkpoint(state, Path(directory))
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(directory))
