"""Harness wall time over the bare workload's: what it costs a job to be watched, judged and reported."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks import ROOT
from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from benchmarks.jobs import counter, run_bare, run_judged
from harness.scenario import Injection, Scenario, encode
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtMarker

STEPS, STEP_S = 100, 0.02
"""The counter's own number of steps, a fiftieth of their length: two seconds, in which a fixed cost still shows."""

PLAIN = Row(name="wall-time", what="harness wall time over the bare counter's, no fault", goal=Goal(limit=1.15))
ARMED = Row(name="wall-time-armed", what="the same with the barrier armed at every step", goal=Goal(limit=1.15))
PROCESS = Row(name="wall-time-process", what="the same as a process: `harness run`, its start included")

SCENARIO = counter("a-job-that-nobody-hurts-is-not-slowed-down", steps=STEPS, step_s=STEP_S)
ARMED_SCENARIO = msgspec.structs.replace(
    SCENARIO,
    name="a-job-that-asks-the-barrier-at-every-step-is-not-slowed-down",
    injections=(Injection(fault=Kill(), at=AtMarker(event="step", nth=STEPS + 1), name="never"),),
)
"""Every step asks; the kill waits for one that never comes, so this run is unknown: its fault has not landed."""


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Alternate the four, forwards and backwards, and compare within each round."""
    ratios: dict[str, list[float]] = {row.name: [] for row in FIGURE.rows}
    for number in range(effort.rounds(9, 2)):
        seconds: dict[str, float] = {}
        order = ["bare", *ratios]
        for name in order if number % 2 == 0 else reversed(order):
            seconds[name] = _run(name)
        for name, found in ratios.items():
            found.append(seconds[name] / seconds["bare"])
    return {name: Measured(found) for name, found in ratios.items()}


def _run(name: str) -> float:
    if name == "bare":
        return run_bare(STEPS, STEP_S)
    if name == PROCESS.name:
        return _run_process(SCENARIO)
    seconds, run = run_judged(SCENARIO if name == PLAIN.name else ARMED_SCENARIO)
    undecided = [] if name == PLAIN.name else ["landed"]
    unproved = [finding.checker for finding in run.verdict.findings if finding.outcome != "valid"]
    assert unproved == undecided, run.explain()
    return seconds


def _run_process(scenario: Scenario) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "scenario.json"
        path.write_bytes(encode(scenario))
        command = [sys.executable, "-m", "harness", "run", str(path), "--runs-dir", f"{scratch}/runs"]
        begin_s = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin_s


FIGURE = Figure(rows=(PLAIN, ARMED, PROCESS), measure=measure)
