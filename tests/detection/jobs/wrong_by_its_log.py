"""A job that says in its log what it does, in the words of ``harness init``, and from its second attempt on is wrong in one way.

``python -m tests.detection.jobs.wrong_by_its_log DIRECTORY right``, ``… skips``: it leaves steps out after it has resumed, ``… claims``: it goes on
from a step that nobody has saved, ``… stops``: it says that it is complete long before it is.
"""

import sys
import time
from pathlib import Path

STEPS = 60
SAVE_EVERY = 10
SKIPPED = 14
CLAIMED = 50
STOPS_AT = 25
STEP_S = 0.03


def say(words: str) -> None:
    """One line of the log."""
    print(words, flush=True)


def begin(checkpoint: Path, wrong: str) -> tuple[int, int]:
    """The step before the first, and the last one that it does."""
    if not checkpoint.exists():
        return 0, STEPS
    saved = int(checkpoint.read_text())
    step = CLAIMED if wrong == "claims" else saved
    say(f"resumed from step {step}")
    return step + (SKIPPED if wrong == "skips" else 0), STOPS_AT if wrong == "stops" else STEPS


def train(directory: Path, wrong: str) -> None:
    """Count, and save aside and rename."""
    checkpoint, temporary = directory / "state", directory / "state.tmp"
    begun, last = begin(checkpoint, wrong)
    for step in range(begun + 1, last + 1):
        time.sleep(STEP_S)
        say(f"step {step}")
        if step % SAVE_EVERY == 0:
            temporary.write_text(str(step))
            temporary.replace(checkpoint)
            say(f"saved checkpoint at step {step}")
    say("training complete")


if __name__ == "__main__":
    train(Path(sys.argv[1]), sys.argv[2])
