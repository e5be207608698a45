"""Reading and checking a history of 100,000 events, and the page of it; each round in a process of its own."""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from benchmarks import ROOT
from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from harness.runner import check_run
from harness.store import RunDirectory

EVENTS = 100_000

SECONDS = Row(
    name="history-time",
    what="reading and checking a history of 100,000 events by all checkers, processor time",
    unit="s",
    goal=Goal(limit=1.0),
)
MEMORY = Row(name="history-memory", what="the same, peak memory of the process", unit="MB", goal=Goal(limit=150.0), decimals=0)
PAGE_SECONDS = Row(name="report-time", what="writing the report page of that run, processor time", unit="s")
PAGE_SIZE = Row(name="report-size", what="size of that page", unit="MB")
ELAPSED = "elapsed"


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Write the run once and read it again and again, each in a fresh process.

    What one has in memory does not count for the next; nor may it lie in memory here, for a child's peak is at least that of its parent.
    """
    samples: dict[str, list[float]] = {name: [] for name in (*(row.name for row in FIGURE.rows), ELAPSED)}
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch) / "run")
        _do("write", directory)
        for _ in range(effort.rounds(9, 2)):
            for name, value in (_do("check", directory) | _do("report", directory)).items():
                samples[name].append(value)
        count, more = (_lines(path) for path in (directory.history_path, directory.golden_path))
    elapsed_s = statistics.median(samples.pop(ELAPSED))
    note = f"{count:,} events, {more:,} more of the uninterrupted run beside it; {elapsed_s:.2f} s by the clock"
    return {name: Measured(found, note if name == SECONDS.name else "") for name, found in samples.items()}


def _do(work: str, directory: RunDirectory) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.long_history", work, str(directory.path)]
    answer: dict[str, float] = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    return answer


def write(directory: RunDirectory) -> dict[str, float]:
    """Tell the run."""
    from benchmarks.story import write_long_run  # late, like the report: who checks has no need of it

    write_long_run(directory.path, events_min=EVENTS)
    return {}


def check(directory: RunDirectory) -> dict[str, float]:
    """Judge the run. One thread that never waits: its processor time is its time on a machine that does nothing else."""
    begin_s, processor_begin_s = time.perf_counter(), time.process_time()
    run = check_run(directory)
    elapsed_s, processor_s = time.perf_counter() - begin_s, time.process_time() - processor_begin_s
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    assert run.verdict.is_valid, run.explain()
    directory.write(directory.verdict_path, msgspec.json.encode(run.verdict))
    return {SECONDS.name: processor_s, ELAPSED: elapsed_s, MEMORY.name: memory_mb}


def report(directory: RunDirectory) -> dict[str, float]:
    """Write the page of the judged run."""
    from harness.report import write_run

    begin_s = time.process_time()
    page = write_run(directory)
    return {PAGE_SECONDS.name: time.process_time() - begin_s, PAGE_SIZE.name: page.stat().st_size / 1e6}


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


WORK: Mapping[str, Callable[[RunDirectory], dict[str, float]]] = {"write": write, "check": check, "report": report}
FIGURE = Figure(rows=(SECONDS, MEMORY, PAGE_SECONDS, PAGE_SIZE), measure=measure)

if __name__ == "__main__":
    print(json.dumps(WORK[sys.argv[1]](RunDirectory(Path(sys.argv[2])))))
