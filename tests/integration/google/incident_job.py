"""The counting job of the Cloud Run guide, wrong in one way that its log shows; ``WRONG`` says in which.

Run with the repository on the path: ``python tests/integration/google/incident_job.py``.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from workloads.counter import train as counter

WRONG = os.environ.get("WRONG", "")
ATTEMPT = int(os.environ.get("CLOUD_RUN_TASK_ATTEMPT", "0"))
LONGER_THAN_ANY_GRACE_S = 600.0

KEPT: list[bytearray] = []
KEPT_BYTES = 32 << 20

save_checkpoint, load_checkpoint = counter.save_checkpoint, counter.load_checkpoint


def save_too_slowly(step: int) -> None:
    """A last save that no grace is long enough for: it has begun, and nothing is replaced."""
    if not counter.shutdown_requested:
        save_checkpoint(step)
        return
    counter.emit("save.begin", step=step)
    counter.log(f"Saving checkpoint at step {step}...")
    time.sleep(LONGER_THAN_ANY_GRACE_S)


def start_from_scratch() -> int:
    """Look for no checkpoint."""
    counter.log("No checkpoint found. Starting from scratch.")
    return 0


def load_older() -> int:
    """Go on from a checkpoint before the newest one."""
    step = max(0, load_checkpoint_silently() - counter.SAVE_EVERY)
    counter.log(f"Resuming from checkpointed step {step}." if step else "No checkpoint found. Starting from scratch.")
    return step


def hear_and_train_on(*_: object) -> None:
    """Say so, and do nothing about it."""
    counter.log("Received SIGTERM signal from platform. Initiating graceful shutdown...")


def load_checkpoint_silently() -> int:
    """The step in the checkpoint; 0 where there is none."""
    try:
        return counter.read_checkpoint()
    except FileNotFoundError:
        return 0


def save_or_crash(step: int) -> None:
    """Meet the same bad sample in every attempt."""
    if step == 10:
        raise ArithmeticError("the loss of step 10 is not a number")
    save_checkpoint(step)


def save_with_all_that_was(step: int) -> None:
    """Keep something of every save and let go of nothing: more than a small container has, after a few of them."""
    KEPT.append(bytearray(KEPT_BYTES))
    save_checkpoint(step)


def main() -> int:
    """One attempt, wrong as asked."""
    if WRONG == "saves-too-slowly":
        counter.save_checkpoint = save_too_slowly
    elif WRONG == "starts-from-scratch":
        counter.load_checkpoint = start_from_scratch
    elif WRONG == "resumes-from-older":
        counter.load_checkpoint = load_older
    elif WRONG == "crashes":
        counter.save_checkpoint = save_or_crash
    elif WRONG == "keeps-too-much":
        counter.save_checkpoint = save_with_all_that_was
    elif WRONG == "hangs-in-restore" and ATTEMPT:
        time.sleep(LONGER_THAN_ANY_GRACE_S)
    elif WRONG == "ignores-sigterm":
        counter.request_shutdown = hear_and_train_on
    elif WRONG == "exits-zero-at-sigterm":
        counter.EXIT_TERMINATED = 0
    return counter.main()


if __name__ == "__main__":
    raise SystemExit(main())
