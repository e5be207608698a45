"""Data-parallel linear regression over all devices of all processes: the data, the model and one step of it."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from workloads.jax_tpu.state import Arrays, TrainState

SAMPLES = 256
FEATURES = 8
BATCH = 32  # 8 steps an epoch
LEARNING_RATE = 0.05
MOMENTUM = 0.5
NOISE = 0.01  # augments the features, so that a forgotten random state shows
Advance = Callable[[TrainState], tuple[TrainState, float, list[int]]]


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
