"""The counter as the benchmarks run it, bare and under the harness."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import ROOT
from harness.clock import SystemClock
from harness.report import write_run
from harness.runner import Options, Run, run_scenario
from harness.scenario import Expectation, Injection, Platform, Scenario, Workload
from harness.scenario.expectations import (
    Completes,
    ExitCodes,
    Goodput,
    IntactCheckpoints,
    MakesProgress,
    NoHang,
    SavesAtCadence,
    WithinRetries,
)
from harness.store import RunStore
from harness.targets import create

SAVE_EVERY = 5
COMMAND = ("-m", "workloads.counter.train")

UNHURT: tuple[Expectation, ...] = (
    Completes(),
    ExitCodes(),
    IntactCheckpoints(),
    WithinRetries(attempts_max=1),
    SavesAtCadence(every=SAVE_EVERY),
    MakesProgress(),
    NoHang(),
    Goodput(),
)
"""What an uninterrupted run can prove by itself: nothing here asks for a golden run, which would be made once and then be found."""


def environment_of(steps: int, step_s: float) -> dict[str, str]:
    """The counter's own variables."""
    return {"STEPS": str(steps), "STEP_SECONDS": str(step_s), "SAVE_EVERY": str(SAVE_EVERY)}


def counter(
    name: str,
    *,
    steps: int,
    step_s: float,
    expects: tuple[Expectation, ...] = UNHURT,
    injections: tuple[Injection, ...] = (),
    max_retries: int = 3,
) -> Scenario:
    """A scenario of the counter."""
    workload = Workload(
        name="counter",
        command=("{python}", *COMMAND),
        steps=steps,
        save_every=SAVE_EVERY,
        environment=environment_of(steps, step_s),
        layout="text-file",
    )
    return Scenario(
        name=name,
        why="a figure of the design",
        workload=workload,
        expects=expects,
        injections=injections,
        platform=Platform(max_retries=max_retries),
    )


def run_bare(steps: int, step_s: float, *, more: Mapping[str, str] | None = None) -> float:
    """Run the counter as production does; seconds."""
    with tempfile.TemporaryDirectory() as checkpoints:
        environment = {**os.environ, "CHECKPOINT_DIR": checkpoints, **environment_of(steps, step_s), **(more or {})}
        begin_s = time.perf_counter()
        subprocess.run([sys.executable, *COMMAND], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin_s


def run_judged(scenario: Scenario) -> tuple[float, Run]:
    """Run a scenario, judge it and write its report; seconds, and the run."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as runs:
        begin_s = time.perf_counter()
        store = RunStore(Path(runs), clock)
        run = run_scenario(scenario, target=lambda: create("local", clock), clock=clock, store=store, options=Options(root=ROOT))
        write_run(run.directory)
        return time.perf_counter() - begin_s, run
