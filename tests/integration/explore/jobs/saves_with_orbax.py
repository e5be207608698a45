"""A job that leaves its checkpoints to Orbax, as the library's guide has it: the newest step is restored, and two are kept.

Where the newest cannot be restored it says so and starts from scratch, as the Cloud Run guide's job does.
"""

import hashlib
import json
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

LAST, KEPT = 3, 2

Params = dict[str, jax.Array]


def say(event: str, **fields: object) -> None:
    with Path(os.environ["HARNESS_EVENTS"]).open("a") as file:
        file.write(json.dumps({"event": event, **fields}) + "\n")


def initial() -> Params:
    return {f"w{number}": jnp.asarray(np.arange(64 * 64, dtype=np.float32).reshape(64, 64) + number) for number in range(4)}


def advanced(params: Params, step: int) -> Params:
    """In NumPy, which compiles nothing."""
    return {name: jnp.asarray(np.asarray(leaf) * np.float32(1.5) + np.float32(step)) for name, leaf in params.items()}


def digests(params: Params) -> dict[str, str]:
    return {name: hashlib.sha256(np.asarray(leaf).tobytes()).hexdigest()[:16] for name, leaf in params.items()}


def restore(manager: ocp.CheckpointManager) -> tuple[int, Params]:
    step, params = manager.latest_step(), initial()
    if step is None:
        return 0, params
    say("restore.begin", step=step)
    try:
        params = manager.restore(step, args=ocp.args.StandardRestore(params))
    except Exception as error:  # noqa: BLE001 - what Orbax raises on a damaged checkpoint is of many kinds
        print(f"Step {step} cannot be restored ({type(error).__name__}). Starting from scratch.", flush=True)
        return 0, params
    say("restore", step=step, digests=digests(params))
    return step, params


def main() -> None:
    options = ocp.CheckpointManagerOptions(max_to_keep=KEPT)
    with ocp.CheckpointManager(Path(os.environ["CHECKPOINT_DIR"]).resolve(), options=options) as manager:
        step, params = restore(manager)
        say("start", restored_step=step, steps=LAST)
        while step < LAST:
            step, params = step + 1, advanced(params, step)
            say("step", step=step, digests=digests(params))
            say("save.begin", step=step, digests=digests(params))
            if manager.save(step, args=ocp.args.StandardSave(params)):
                manager.wait_until_finished()
                say("save.end", step=step, digests=digests(params))
    say("done", step=step)


if __name__ == "__main__":
    main()
