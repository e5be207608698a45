"""Start time of the counter: what every kill-and-restart pays."""

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from benchmarks.jobs import run_bare

START = Row(
    name="counter-start", what="counter: from the launch of its process to ready to train", unit="ms", goal=Goal(limit=100.0), decimals=0
)


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Read from the job's own word; its clock and ours are one, that of the machine."""
    return {START.name: Measured([_start_ms() for _ in range(effort.rounds(30, 5))])}


def _start_ms() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch) / "events.jsonl"
        begin_s = time.monotonic()
        run_bare(1, 0.0, more={"HARNESS_EVENTS": str(events)})
        words = map(json.loads, events.read_text(encoding="utf-8").splitlines())
        ready_s = next(float(word["t"]) for word in words if word["event"] == "start")
        return 1000 * (ready_s - begin_s)


FIGURE = Figure(rows=(START,), measure=measure)
