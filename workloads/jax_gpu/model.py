"""The data, the model and the training step: a two-layer perceptron that learns labels made from the seed."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SAMPLES = 192
BATCH = 32  # six steps an epoch: saves every five steps fall before, after and on its boundary
FEATURES = 16
HIDDEN = 128
CLASSES = 4
DROPOUT = 0.1
WARMUP_STEPS = 5
DECAY_STEPS = 200  # fixed, not STEPS: a longer run follows the same trajectory

State = dict[str, object]
"""The arrays that training changes: ``params``, ``optimizer`` (the optax tree) and ``rng`` (the words of the key)."""


@dataclass(frozen=True)
class Cursor:
    """The place in the shuffled data: the next batch to read is number ``position`` of ``epoch``."""

    seed: int
    epoch: int = 0
    position: int = 0

    def order(self) -> np.ndarray:
        """Shuffle the samples of this epoch; a pure function of seed and epoch, so that a resumed job reads the same order."""
        return np.random.default_rng((self.seed, self.epoch)).permutation(SAMPLES)

    def batch_ids(self) -> np.ndarray:
        return self.order()[self.position * BATCH : (self.position + 1) * BATCH]

    def advanced(self) -> "Cursor":
        if (self.position + 1) * BATCH < SAMPLES:
            return Cursor(self.seed, self.epoch, self.position + 1)
        return Cursor(self.seed, self.epoch + 1)


@dataclass(frozen=True)
class Dataset:
    """Features and the labels that a random teacher gives them."""

    features: np.ndarray
    labels: np.ndarray

    @classmethod
    def from_seed(cls, seed: int) -> "Dataset":
        generator = np.random.default_rng(seed)
        features = generator.standard_normal((SAMPLES, FEATURES), dtype=np.float32)
        teacher = generator.standard_normal((FEATURES, CLASSES), dtype=np.float32)
        return cls(features, np.argmax(features @ teacher, axis=1).astype(np.int32))


def make_optimizer() -> optax.GradientTransformation:
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=1e-2, warmup_steps=WARMUP_STEPS, decay_steps=DECAY_STEPS, end_value=1e-4
    )
    return optax.adamw(schedule, weight_decay=1e-3)


def initial_state(seed: int) -> State:
    """Build the state of step 0 in host memory, the same on every rank."""
    generator = np.random.default_rng((seed, 1))

    def layer(inputs: int, outputs: int) -> dict[str, np.ndarray]:
        weight = generator.standard_normal((inputs, outputs), dtype=np.float32) / np.float32(np.sqrt(inputs))
        return {"weight": weight, "bias": np.zeros(outputs, np.float32)}

    params = {"hidden": layer(FEATURES, HIDDEN), "output": layer(HIDDEN, CLASSES)}
    key = jax.random.key_data(jax.random.key(seed))
    return jax.device_get({"params": params, "optimizer": make_optimizer().init(params), "rng": key})


@dataclass(frozen=True)
class Devices:
    """All devices of all ranks: the state is replicated on them, the batch is split over them."""

    mesh: Mesh

    @classmethod
    def all(cls) -> "Devices":
        return cls(Mesh(np.array(jax.devices()), ("batch",)))

    @property
    def replicated(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec())

    @property
    def split(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec("batch"))

    def replicate(self, state: State) -> State:
        def put(leaf: np.ndarray) -> jax.Array:
            return jax.make_array_from_callback(np.shape(leaf), self.replicated, lambda index: np.asarray(leaf)[index])

        return jax.tree.map(put, state)

    def own_part(self, batch_ids: np.ndarray) -> np.ndarray:
        """The samples of the batch that this rank reads."""
        return np.split(batch_ids, jax.process_count())[jax.process_index()]

    def split_batch(self, own: np.ndarray) -> jax.Array:
        """Join the parts of all ranks, shape (BATCH / ranks, ...) each, to one array split over all devices."""
        return jax.make_array_from_process_local_data(self.split, own)


TrainStep = Callable[[State, jax.Array, jax.Array], tuple[State, jax.Array]]


def compile_step(devices: Devices, state: State, features: jax.Array, labels: jax.Array) -> TrainStep:
    """Compile the step ahead of the loop, so that no step is longer than the others and a signal is seen soon.

    The state is not donated: an asynchronous save may still be reading it.
    """
    optimizer = make_optimizer()

    def loss_of(params: State, key: jax.Array, features: jax.Array, labels: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(features @ params["hidden"]["weight"] + params["hidden"]["bias"])
        kept = jax.random.bernoulli(key, 1 - DROPOUT, hidden.shape)
        logits = jnp.where(kept, hidden / (1 - DROPOUT), 0) @ params["output"]["weight"] + params["output"]["bias"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(state: State, features: jax.Array, labels: jax.Array) -> tuple[State, jax.Array]:
        key, dropout_key = jax.random.split(jax.random.wrap_key_data(state["rng"]))
        loss, gradients = jax.value_and_grad(loss_of)(state["params"], dropout_key, features, labels)
        updates, optimizer_state = optimizer.update(gradients, state["optimizer"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        return {"params": params, "optimizer": optimizer_state, "rng": jax.random.key_data(key)}, loss

    # Without the flag a GPU may sum in another order, or pick another kernel, from one attempt to the next.
    options = {"xla_gpu_deterministic_ops": True} if jax.default_backend() == "gpu" else None
    jitted = jax.jit(step, out_shardings=devices.replicated, compiler_options=options)
    return jitted.lower(state, features, labels).compile()
