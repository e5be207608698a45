"""What tests of a command line that was killed without a word wait for."""

import time
from collections.abc import Callable
from pathlib import Path

from harness.clock import SystemClock
from harness.store import Owner, RunDirectory, RunStore

PATIENCE_S = 120.0
"""On a loaded machine. What would never come fails after it; a worker that asks a dead emulator as it would ask Google takes twice as long."""


def awaited(condition: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.02)
    return True


def run_that_began(here: Path, directories: str) -> tuple[RunDirectory, Owner]:
    """The only run, when the job of one in these directories has been started, and whose it is."""
    assert awaited(lambda: any("attempt.started" in path.read_text() for path in here.glob(f"runs/{directories}/history.jsonl")))
    (run,) = RunStore(here / "runs", SystemClock()).runs()
    owner = run.owner()
    assert owner is not None
    return run, owner
