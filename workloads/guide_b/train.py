"""The guide's own training script: linear regression by JaxTrainer on four hosts of a 4x4 slice.

Its structure and numbers are the guide's: every host trains the same model by itself, metrics are reported every ten epochs, nothing is
ever saved, and the run has no name of its own. So whatever ends it ends all of its work. It knows nothing of the harness.

Environment, by default the guide's: EPOCHS (50), HOSTS (4), TOPOLOGY (4x4), ACCELERATOR_TYPE (TPU-V6E), and EPOCH_SECONDS (0, added to each
epoch so that something can happen during the training).

Source: https://docs.cloud.google.com/kubernetes-engine/docs/tutorials/ray-kueue-dws
"""

import os
import time

import jax
import jax.numpy as jnp
import ray.train
from ray.train import ScalingConfig
from ray.train.v2.jax import JaxTrainer

EPOCHS = int(os.environ.get("EPOCHS", "50"))
EPOCH_SECONDS = float(os.environ.get("EPOCH_SECONDS", "0"))
HOSTS = int(os.environ.get("HOSTS", "4"))
TOPOLOGY = os.environ.get("TOPOLOGY", "4x4")
ACCELERATOR_TYPE = os.environ.get("ACCELERATOR_TYPE", "TPU-V6E")
CHIPS_PER_HOST = 4  # of the guide's machine type, ct6e-standard-4t
REPORT_EVERY = 10
LEARNING_RATE = 0.1
DRAIN_SECONDS = 3  # the guide waits so long at the end for its metrics to arrive


def train() -> None:
    """Run on each host; JaxTrainer has connected them."""
    print(f"Local devices: {jax.local_devices()}", flush=True)
    key = jax.random.PRNGKey(0)
    features = jax.random.normal(key, (1000, 10))
    targets = features @ jax.random.normal(key, (10, 1))

    def mean_squared_error(weights: jax.Array) -> jax.Array:
        return jnp.mean((features @ weights - targets) ** 2)

    @jax.jit
    def descend(weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        loss, slope = jax.value_and_grad(mean_squared_error)(weights)
        return weights - LEARNING_RATE * slope, loss

    weights = jnp.zeros((10, 1))
    for epoch in range(EPOCHS):
        time.sleep(EPOCH_SECONDS)
        weights, loss = descend(weights)
        if epoch % REPORT_EVERY == 0:
            ray.train.report({"loss": loss.item(), "epoch": epoch})
            print(f"Epoch {epoch}: Loss {loss:.4f}", flush=True)
    print("Training Complete!", flush=True)
    time.sleep(DRAIN_SECONDS)


def main() -> None:
    trainer = JaxTrainer(
        train,
        scaling_config=ScalingConfig(
            num_workers=HOSTS,
            resources_per_worker={"TPU": CHIPS_PER_HOST},
            use_tpu=True,
            topology=TOPOLOGY,
            accelerator_type=ACCELERATOR_TYPE,
        ),
    )
    print(f"Run result: {trainer.fit().metrics}", flush=True)


if __name__ == "__main__":
    main()
