"""The training loop of one host: meet the others, restore what host 0 chose, step together, save on host 0, leave together."""

import functools
import json
import os
import sys
import time
from typing import NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils
from jaxlib import _jax

from workloads import protocol
from workloads.jax_gpu.preemption import SyncPoint
from workloads.jax_hosts.checkpoints import ClaimedDirectory
from workloads.jax_hosts.settings import Settings
from workloads.jax_tpu.regression import FEATURES, Advance, make_advance
from workloads.jax_tpu.state import TrainState, decode, encode
from workloads.linear.checkpoints import FencedError

TERMINATED = 143  # 128 + SIGTERM: saved and left, new pods go on
PEER_LOST = 69  # EX_UNAVAILABLE: what this host waits for does not come
SAVE_FAILED = 74  # EX_IOERR
FENCED = 75  # EX_TEMPFAIL: a newer incarnation is at work


def run(settings: Settings) -> int:
    """Run this host to the end of the job, to the platform's signal, or to the loss of another host; returns the exit code."""
    try:
        connect(settings)
        return Host(settings).run()
    except jax.errors.JaxRuntimeError as error:
        leave(settings, PEER_LOST, f"another host is lost: {str(error).partition(chr(10))[0]}")
    except FencedError as error:
        leave(settings, FENCED, str(error))
    except OSError as error:
        leave(settings, SAVE_FAILED, f"the storage failed: {error}")


def leave(settings: Settings, code: int, why: str) -> NoReturn:
    """End this host alone and at once: JAX would wait at the exit for hosts that are gone."""
    print(f"Host {settings.process_id} stops: {why}", flush=True)
    os._exit(code)


def connect(settings: Settings) -> None:
    """Meet the other hosts; collectives between CPU devices go over gloo, which listens where the name of the host points."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if settings.is_on_loopback:
        _jax.make_gloo_tcp_collectives = functools.partial(_jax.make_gloo_tcp_collectives, hostname="127.0.0.1")
    jax.distributed.initialize(
        settings.coordinator,
        settings.process_count,
        settings.process_id,
        local_device_ids=[0],
        initialization_timeout=settings.start_seconds,
        coordinator_bind_address=settings.coordinator if settings.is_on_loopback else None,
        heartbeat_timeout_seconds=settings.heartbeat_seconds,
        shutdown_timeout_seconds=settings.heartbeat_seconds,
    )


class Host:
    """One process of the job."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.emit = functools.partial(protocol.emit, rank=settings.process_id)
        self.notice = SyncPoint(settings.process_id, multihost_utils.reached_preemption_sync_point)
        self.checkpoints = ClaimedDirectory(settings.root)
        self.saved_step = 0

    def run(self) -> int:
        state = self.restore()
        self.say(f"Resuming from step {state.step}." if state.step else "No checkpoint to use: starting from scratch.")
        advance = self.compile(state)
        self.emit("start", restored_step=state.step, steps=self.settings.steps)
        state = self.train(state, advance)
        self.save(state)
        is_done = state.step == self.settings.steps
        if is_done and self.settings.process_id == 0:
            self.checkpoints.replace_file("final.json", json.dumps({"step": state.step, "params": state.digests()["params"]}).encode())
        multihost_utils.sync_global_devices("saved")  # nobody leaves before host 0 has saved: it would be ended with them
        if not is_done:
            self.say(f"Received SIGTERM: saved step {state.step} and leaving.")
            return TERMINATED
        self.say(f"Completed {state.step} steps.")
        self.emit("done", step=state.step)
        return 0

    def restore(self) -> TrainState:
        """Take the directory over and go back to its newest intact checkpoint; all hosts to the one that host 0 found."""
        step = 0
        if self.settings.process_id == 0:
            self.checkpoints.take_ownership()
            step = self.checkpoints.newest_intact()
        self.saved_step = step = int(multihost_utils.broadcast_one_to_all(np.int32(step)))
        if step == 0:
            return TrainState.initial(seed=self.settings.seed, features=FEATURES)
        self.emit("restore.begin", step=step)
        state = decode(self.checkpoints.read(step))
        self.emit("restore", step=state.step, digests=state.digests())
        return state

    def compile(self, state: TrainState) -> Advance:
        """Take one step and forget it, so that the first one that counts is as long as any."""
        self.emit("compile.begin")
        advance = make_advance(self.settings.seed, self.settings.process_id, self.settings.process_count)
        advance(state)
        self.emit("compile.end")
        return advance

    def train(self, state: TrainState, advance: Advance) -> TrainState:
        """Step until the final step or the platform's notice; returns the state of the last completed step."""
        while state.step < self.settings.steps and not self.notice.reached():
            time.sleep(self.settings.step_seconds)
            self.emit("collective", step=state.step)  # it waits for the others from here on, and is not the one they wait for
            state, _, batch_ids = advance(state)
            self.emit("step", step=state.step, batch_ids=batch_ids, digests=state.digests())
            if state.step % self.settings.save_every == 0:
                self.save(state)
        return state

    def save(self, state: TrainState) -> None:
        """Make this step durable, on host 0.

        Raises:
            FencedError: a newer incarnation owns the checkpoints.
            OSError: the storage failed; the last good checkpoint is untouched.
        """
        step, digests = state.step, state.digests()
        if self.settings.process_id > 0 or step == self.saved_step:
            return
        self.emit("save.begin", step=step, digests=digests)
        self.checkpoints.write(step, encode(state))
        self.emit("save.commit", step=step)
        with self.checkpoints.alone():
            self.checkpoints.commit(step)
            self.checkpoints.point_latest(step)
            self.emit("save.end", step=step, digests=digests)
        self.saved_step = step
        self.checkpoints.collect(step)

    def say(self, line: str) -> None:
        """Print for all hosts once, each line in one write."""
        if self.settings.process_id == 0:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
