"""How much faster two workers of xdist run chaos tests than none."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from benchmarks import ROOT
from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from harness.clock import SystemClock
from harness.runner import belongs_to
from harness.targets import create
from scenarios import CATALOGUE

FASTER = Row(
    name="two-workers", what="`pytest -m chaos --target local -n 2`, times faster than `-n 0`", goal=Goal(limit=1.7, kind="at least")
)

WORKLOADS = ("counter", "linear")
"""The jobs of most scenarios. Those with JAX or Ray keep both cores busy by themselves, so that no worker could add anything."""

QUICK_COUNT = 8


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Run the same scenarios with two workers and with none, each time in a fresh runs directory, the golden runs included."""
    here = create("local", SystemClock())
    own = [scenario for scenario in CATALOGUE.values() if scenario.workload.name in WORKLOADS and belongs_to(scenario, here)]
    names = [scenario.name for scenario in own if "slow" not in scenario.tags]
    if effort.is_quick:
        names = names[:: len(names) // QUICK_COUNT]
    ratios: list[float] = []
    for number in range(effort.rounds(3, 1)):
        seconds = {workers: _run_s(names, workers) for workers in ((0, 2) if number % 2 == 0 else (2, 0))}
        ratios.append(seconds[0] / seconds[2])
    return {FASTER.name: Measured(ratios, note=f"{len(names)} scenarios of {' and '.join(WORKLOADS)}")}


def _run_s(names: Sequence[str], workers: int) -> float:
    ids = [f"tests/chaos/test_catalogue.py::test_scenario[{name}]" for name in names]
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "chaos", "--target", "local", "--runs-dir", runs, "-n", str(workers)]
        begin_s = time.perf_counter()
        subprocess.run([*command, "-p", "no:cacheprovider", *ids], cwd=ROOT, stdout=subprocess.DEVNULL, env=os.environ, check=True)
        return time.perf_counter() - begin_s


FIGURE = Figure(rows=(FASTER,), measure=measure)
