"""What every worker of the JaxTrainer runs: data-parallel linear regression over all devices of all workers."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import ray.train
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from workloads import protocol
from workloads.jax_tpu.state import Arrays, DamagedError, TrainState, read_checkpoint, write_checkpoint

SAMPLES = 256
FEATURES = 8
BATCH = 32  # 8 steps an epoch
LEARNING_RATE = 0.05
MOMENTUM = 0.5
NOISE = 0.01  # augments the features, so that a forgotten random state shows
Advance = Callable[[TrainState], tuple[TrainState, float, list[int]]]


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


def make_advance(seed: int, rank: int, ranks: int) -> Advance:
    """Make the function that does one step: its new state, its loss, and the samples that this rank has consumed."""
    if BATCH % ranks:
        raise ValueError(f"{ranks} ranks cannot share a batch of {BATCH} samples evenly: choose RANKS to divide it.")
    mesh = Mesh(np.array(jax.devices()), ("chips",))
    split = NamedSharding(mesh, PartitionSpec("chips"))
    everywhere = NamedSharding(mesh, PartitionSpec())
    compiled = jax.jit(descend, out_shardings=everywhere)
    features, targets = make_samples(seed)
    share = BATCH // ranks

    def advance(state: TrainState) -> tuple[TrainState, float, list[int]]:
        first = state.cursor.offset + rank * share
        batch_ids = state.cursor.order(SAMPLES)[first : first + share]
        x, y = (jax.make_array_from_process_local_data(split, rows[batch_ids]) for rows in (features, targets))
        params, momentum, rng, loss = jax.device_get(compiled(state.params, state.momentum, state.rng, x, y))
        cursor = state.cursor.advance(BATCH, SAMPLES)
        return TrainState(state.step + 1, cursor, params, momentum, rng), float(loss), batch_ids.tolist()

    return advance


def make_samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(seed).standard_normal((SAMPLES, FEATURES), np.float32)
    return features, features @ np.arange(1, FEATURES + 1, dtype=np.float32) + 1


def descend(params: Arrays, momentum: Arrays, rng: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Arrays, Arrays, jax.Array, jax.Array]:
    """One step of gradient descent with momentum; the mean over the batch becomes an all-reduce between the workers."""
    rng, noise_rng = jax.random.split(rng)
    x = x + NOISE * jax.random.normal(noise_rng, x.shape)

    def mean_squared_error(params: Arrays) -> jax.Array:
        return jax.numpy.mean((x @ params["weights"] + params["bias"] - y) ** 2)

    loss, gradient = jax.value_and_grad(mean_squared_error)(params)
    momentum = jax.tree.map(lambda old, slope: MOMENTUM * old + slope, momentum, gradient)
    params = jax.tree.map(lambda old, move: old - LEARNING_RATE * move, params, momentum)
    return params, momentum, rng, loss
