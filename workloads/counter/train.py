"""The long job of Cloud Run's GPU guide, in the standard library only: it counts to STEPS, a step a second.

Run from the repository root: ``python -m workloads.counter.train``.

The job is the guide's to the letter, its gaps included: the checkpoint is written to ``.tmp`` and renamed but never
fsynced, so it survives the death of the process and not always that of the node; and the signal handler only sets a
flag, so a long step delays the last save (``time.sleep`` goes on after a handler returns, PEP 475). A save that fails
ends the attempt with a traceback and exit code 1; the last good checkpoint stays, and the platform retries.

Source: facts of the guide "Cloud Run jobs with GPUs: survive maintenance".
"""

import os
import signal
import time

from workloads.protocol import digest, emit

JOB = os.environ.get("CLOUD_RUN_JOB", "local-job")
TASK_INDEX = os.environ.get("CLOUD_RUN_TASK_INDEX", "0")
CHECKPOINT_DIR = os.environ.get("CHECKPOINT_DIR", "/checkpoints")
CHECKPOINT = os.path.join(CHECKPOINT_DIR, f"{JOB}-task-{TASK_INDEX}-checkpoint.txt")
STEPS = int(os.environ.get("STEPS", "100"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "5"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "1.0"))

EXIT_TERMINATED = 143  # 128 + SIGTERM: not a success, so the platform retries the task

shutdown_requested = False


def log(message: str) -> None:
    """Write one line at once. A signal handler may call it: ``print`` can raise there when it interrupts another ``print``."""
    os.write(1, f"{message}\n".encode())


def request_shutdown(*_: object) -> None:
    """Set the flag that the loop reads before its next step."""
    global shutdown_requested
    shutdown_requested = True
    log("Received SIGTERM signal from platform. Initiating graceful shutdown...")
    emit("sigterm")


def digests_of(step: int) -> dict[str, str]:
    """The count is the job's step and its only parameter."""
    return {"params": digest("count", str(step)), "step": digest(str(step))}


def read_checkpoint() -> int:
    """Return the step in the checkpoint file.

    Raises:
        FileNotFoundError: there is none yet.
        OSError: the file cannot be read.
        ValueError: the file does not hold a step of this job.
    """
    with open(CHECKPOINT, "rb") as file:
        text = file.read()
    if not text.strip().isdigit():
        raise ValueError(f"{text[:40]!r} is not a step")
    step = int(text)
    if step > STEPS:
        raise ValueError(f"step {step} is beyond the last step {STEPS}")
    return step


def load_checkpoint() -> int:
    """Return the step to go on from; 0, and a line that says why, when there is no checkpoint to use."""
    try:
        step = read_checkpoint()
    except FileNotFoundError:
        log("No checkpoint found. Starting from scratch.")
        return 0
    except (OSError, ValueError) as error:
        log(f"Checkpoint unreadable ({error}). Starting from scratch.")
        return 0
    emit("restore.begin", step=step)
    log(f"Resuming from checkpointed step {step}.")
    emit("restore", step=step, digests=digests_of(step))
    return step


def save_checkpoint(step: int) -> None:
    """Write the step beside the checkpoint and rename it over: a save that is cut short never replaces a good one."""
    digests = digests_of(step)
    emit("save.begin", step=step, digests=digests)
    log(f"Saving checkpoint at step {step}...")
    with open(f"{CHECKPOINT}.tmp", "w", encoding="ascii") as file:
        file.write(str(step))
    emit("save.commit", step=step)
    os.replace(f"{CHECKPOINT}.tmp", CHECKPOINT)
    emit("save.end", step=step, digests=digests)


def train(step: int) -> int:
    """Count from ``step`` to STEPS; returns the exit code."""
    while step < STEPS:
        if shutdown_requested:
            save_checkpoint(step)
            return EXIT_TERMINATED
        time.sleep(STEP_SECONDS)
        step += 1
        emit("step", step=step, batch_ids=[step], digests=digests_of(step))
        if step == STEPS or (step % SAVE_EVERY == 0 and not shutdown_requested):
            save_checkpoint(step)
    log(f"Completed {STEPS} steps.")
    emit("done", step=step)
    return 0


def main() -> int:
    """Run one attempt of the task."""
    signal.signal(signal.SIGTERM, request_shutdown)
    emit("boot")
    step = load_checkpoint()
    emit("start", restored_step=step, steps=STEPS)
    return train(step)


if __name__ == "__main__":
    raise SystemExit(main())
