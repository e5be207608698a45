"""The training loop: restore, step, save, and leave in order when the platform asks."""

import functools
import sys
import time
from dataclasses import dataclass

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxlib import _jax

from workloads import protocol
from workloads.jax_gpu import model
from workloads.jax_gpu.checkpointing import Checkpoints, Emitter, Snapshot, restore, restore_newest, write_result
from workloads.jax_gpu.preemption import SigtermFlag, SyncPoint
from workloads.jax_gpu.settings import Settings

PREEMPTED = 143  # 128 + SIGTERM: the platform retries


@dataclass(frozen=True)
class Trainer:
    """Makes a snapshot of step n + 1 from that of step n."""

    data: model.Dataset
    devices: model.Devices
    compiled: model.TrainStep

    @classmethod
    def compile(cls, snapshot: Snapshot, devices: model.Devices, emit: Emitter) -> "Trainer":
        emit("compile.begin")
        data = model.Dataset.from_seed(snapshot.cursor.seed)
        own = devices.own_part(snapshot.cursor.batch_ids())
        batch = devices.split_batch(data.features[own]), devices.split_batch(data.labels[own])
        compiled = model.compile_step(devices, snapshot.state, *batch)
        emit("compile.end")
        return cls(data, devices, compiled)

    def advance(self, snapshot: Snapshot) -> tuple[Snapshot, np.ndarray, float]:
        """Take one step; returns the ids of the samples that this rank consumed and the loss over all ranks."""
        own = self.devices.own_part(snapshot.cursor.batch_ids())
        batch = self.devices.split_batch(self.data.features[own]), self.devices.split_batch(self.data.labels[own])
        state, loss = self.compiled(snapshot.state, *batch)
        return Snapshot(snapshot.step + 1, state, snapshot.cursor.advanced()), own, float(loss)


def run(settings: Settings, flag: SigtermFlag | None) -> int:
    """Run the job to its end or to the platform's signal; returns the exit code."""
    _connect(settings)
    emit = functools.partial(protocol.emit, rank=settings.rank)
    notice = flag or SyncPoint(settings.rank, multihost_utils.reached_preemption_sync_point)
    backend, kind = jax.default_backend(), jax.local_devices()[0].device_kind
    _say(settings, f"Training on {backend} ({kind}), rank {settings.rank} of {settings.ranks}.")

    snapshot = _restored(settings, emit)
    _say(settings, f"Resuming from checkpointed step {snapshot.step}." if snapshot.step else "Starting from scratch.")
    checkpoints = Checkpoints(settings.root, emit, saved_step=snapshot.step)
    devices = model.Devices.all()
    snapshot = Snapshot(snapshot.step, devices.replicate(snapshot.state), snapshot.cursor)
    trainer = Trainer.compile(snapshot, devices, emit)
    emit("start", restored_step=snapshot.step, steps=settings.steps)
    snapshot = _train(settings, trainer, snapshot, checkpoints, notice)

    if snapshot.step < settings.steps:
        _say(settings, "Received SIGTERM signal from platform. Initiating graceful shutdown...")
        _say(settings, f"Saving checkpoint at step {snapshot.step}.")
    checkpoints.save(snapshot)
    checkpoints.close()
    if snapshot.step < settings.steps:
        return PREEMPTED
    _conclude(settings, snapshot)
    emit("done", step=snapshot.step)
    _say(settings, f"Training complete at step {snapshot.step}.")
    return 0


def _say(settings: Settings, line: str) -> None:
    """Print for all ranks once; each line in one write, because the ranks share the terminal."""
    if settings.rank == 0:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _connect(settings: Settings) -> None:
    """Join the other ranks, all on this machine: CPU devices through gloo, GPUs by one a rank."""
    if settings.ranks == 1:
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # JAX lets gloo listen wherever the name of this machine points, which may be the outside.
    _jax.make_gloo_tcp_collectives = functools.partial(_jax.make_gloo_tcp_collectives, hostname="127.0.0.1")
    jax.distributed.initialize(
        settings.coordinator,
        settings.ranks,
        settings.rank,
        local_device_ids=[settings.rank],
        coordinator_bind_address=settings.coordinator,
        heartbeat_timeout_seconds=settings.heartbeat_seconds,
        shutdown_timeout_seconds=settings.heartbeat_seconds,
    )


def _restored(settings: Settings, emit: Emitter) -> Snapshot:
    """Restore the same checkpoint on all ranks: rank 0 looks for a sound one, the others take its choice and check it too."""
    initial = Snapshot(0, model.initial_state(settings.seed), model.Cursor(settings.seed))
    snapshot = restore_newest(settings.root, initial, emit) if settings.rank == 0 else initial
    if settings.ranks > 1:
        step = int(multihost_utils.broadcast_one_to_all(np.int32(snapshot.step)))
        if settings.rank > 0 and step > 0:
            snapshot = restore(settings.root, step, initial, emit)
    if snapshot.cursor.seed != settings.seed:
        found = f"{settings.root} holds a job of SEED={snapshot.cursor.seed}"
        raise SystemExit(f"{found}, not {settings.seed}: use that seed or another directory.")
    return snapshot


def _train(settings: Settings, trainer: Trainer, snapshot: Snapshot, checkpoints: Checkpoints, notice: SigtermFlag | SyncPoint) -> Snapshot:
    """Step until the final step or the platform's notice; returns the last completed step."""
    while snapshot.step < settings.steps and not notice.reached():
        snapshot, own, loss = trainer.advance(snapshot)
        protocol.emit("step", rank=settings.rank, step=snapshot.step, batch_ids=own.tolist(), digests=snapshot.digests())
        time.sleep(settings.step_seconds)
        checkpoints.poll()
        if snapshot.step % settings.save_every == 0:
            checkpoints.save(snapshot)
            _say(settings, f"Step {snapshot.step} of {settings.steps}, loss {loss:.4f}")
    return snapshot


def _conclude(settings: Settings, snapshot: Snapshot) -> None:
    if settings.rank == 0:
        write_result(settings.root, snapshot)
    if settings.ranks > 1:
        multihost_utils.sync_global_devices("result written")
