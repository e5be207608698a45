"""The JaxTrainer of the job: its scaling, its failure budget, and what runs in Ray's controller."""

from typing import Any

import ray.train
from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.jax import JaxConfig, JaxTrainer

from workloads import protocol
from workloads.jax_tpu.cluster import keep_on_loopback
from workloads.jax_tpu.settings import Settings

CHIPS_PER_HOST = 4  # of the guide's machine type, ct6e-standard-4t
KEPT = 2  # one to go back to when the newest is damaged


def make_trainer(settings: Settings) -> JaxTrainer:
    return JaxTrainer(
        train,
        train_loop_config=settings.loop,
        scaling_config=_scaling(settings),
        jax_config=None if settings.tpu_topology else CpuConfig(use_gpu=True),
        run_config=RunConfig(
            name=settings.run_name,  # fixed: by its own name, which holds the time, no retry would find the run
            storage_path=settings.storage_path,
            failure_config=FailureConfig(max_failures=settings.max_failures),
            checkpoint_config=CheckpointConfig(num_to_keep=KEPT),
            callbacks=[Acknowledge()],
        ),
    )


def _scaling(settings: Settings) -> ScalingConfig:
    if not settings.tpu_topology:
        return ScalingConfig(num_workers=settings.ranks, placement_strategy="SPREAD")  # hosts of a slice are machines of their own
    return ScalingConfig(
        num_workers=settings.ranks,
        use_tpu=True,
        topology=settings.tpu_topology,
        accelerator_type=settings.tpu_type,
        resources_per_worker={"TPU": CHIPS_PER_HOST},
    )


def train(config: dict[str, Any]) -> None:
    from workloads.jax_tpu import loop  # late: the driver and the controller do without JAX

    loop.train(config)


class Acknowledge(ray.train.UserCallback):
    """Runs in the controller once it has written a report into its snapshot: only then will a restart find the checkpoint.

    The snapshot is rewritten in place and not fsynced, so this holds against the death of processes, not of the machine.
    """

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: ray.train.Checkpoint | None) -> None:  # noqa: ARG002
        if checkpoint is not None:
            protocol.emit("save.end", step=metrics[0]["step"], digests=metrics[0]["digests"])


class CpuConfig(JaxConfig):
    """Connects CPU workers as chips would be: JaxTrainer calls jax.distributed.initialize only where it is told of an accelerator.

    Without this, each of the workers would silently train alone, as process 0 of 1. ``use_gpu`` asks for the call,
    JAX_PLATFORMS=cpu keeps the GPUs out of it.
    """

    @property
    def backend_cls(self) -> type:
        return LoopbackBackend


class LoopbackBackend(JaxConfig().backend_cls):  # type: ignore[misc]  # Ray makes it known by this property only
    def on_start(self, worker_group: Any, backend_config: JaxConfig) -> None:
        worker_group.execute(keep_on_loopback)
        super().on_start(worker_group, backend_config)
