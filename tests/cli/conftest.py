"""The command line as a process, in a directory with a small catalogue of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CATALOGUE = f"""
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.expectations import BitExactResume, Completes, WithinRetries
from harness.scenario.faults import Kill, Terminate
from harness.scenario.triggers import AtStep

def job(**environment):
    return Workload(
        name="job", command=("{{python}}", "-m", "workloads.counter.train"), steps=10, save_every=5, layout="text-file", directory={str(ROOT)!r},
        sources=("workloads/counter",), environment={{"STEPS": "10", "STEP_SECONDS": "0", "SAVE_EVERY": "5", **environment}},
    )

def scenario(name, step=7, expects=(Completes(), WithinRetries(attempts_max=2)), workload=job(), tags=()):
    return Scenario(
        name=name, why="a test", workload=workload, injections=(Injection(fault=Kill(), at=AtStep(step=step)),), expects=expects, tags=tags,
    )

SCENARIOS = (
    scenario("a-good-job-recovers", expects=(Completes(), BitExactResume(), WithinRetries(attempts_max=2))),
    scenario("a-promise-is-broken", expects=(WithinRetries(attempts_max=1),)),
    scenario("a-fault-never-comes", step=99),
    scenario("a-slow-job-takes-its-time", workload=job(STEP_SECONDS="0.2", STEPS="10"), tags=("slow",)),
    scenario("a-program-is-missing", workload=Workload(name="job", command=("no-such-program",)), tags=("slow",)),
)
CATALOGUE = {{found.name: found for found in SCENARIOS}}
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(tmp_path: Path, own_state: None) -> Path:
    (tmp_path / "scenarios.py").write_text(CATALOGUE)
    return tmp_path


@pytest.fixture
def harness(here: Path) -> Command:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=here,
            env={**os.environ, "HARNESS_CACHE_DIR": str(here / "cache"), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
