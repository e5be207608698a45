"""A harness that is killed while containers run, and ``harness clean`` after it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.history import ObservationLost, read_history
from harness.targets.docker.presence import open_engine
from tests.contract.driver import Run, python
from tests.contract.presence import skip_or_fail_without

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0

CATALOGUE = f"""
from harness.scenario import Injection, Platform, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.scenario.faults import FailWrites, OverlapAttempts, Pause
from harness.scenario.triggers import AtStep

LINEAR = Workload(
    name="job", command=("{{python}}", "-m", "workloads.linear.train"), steps=40, save_every=5, layout="step-directories", directory={str(ROOT)!r},
    sources=("workloads/linear",), environment={{"STEPS": "40", "STEP_SECONDS": "0.05", "SAVE_EVERY": "5"}},
)

def scenario(name, fault):
    return Scenario(name=name, why="a test", workload=LINEAR, injections=(Injection(fault=fault, at=AtStep(step=3)),), expects=(Completes(),))

SCENARIOS = (
    scenario("a-long-job-is-paused", Pause(duration_s=30.0)),
    scenario("a-long-job-is-overlapped", OverlapAttempts(zombie_s=30.0)),
    scenario("a-disk-is-full", FailWrites(error="ENOSPC")),
)
CATALOGUE = {{found.name: found for found in SCENARIOS}}
"""


@pytest.fixture
def here(tmp_path: Path, own_state: None) -> Iterator[Path]:
    skip_or_fail_without("docker")
    (tmp_path / "scenarios.py").write_text(CATALOGUE)
    yield tmp_path
    harness(tmp_path, "clean")


def harness(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=here, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)


def run_id_of(here: Path) -> str:
    (history,) = here.glob("runs/*/*/history.jsonl")
    return str(read_history(history).events[0].run_id)  # type: ignore[attr-defined]


def containers_of(run_id: str) -> list[str]:
    with open_engine() as engine:
        return [name for _, name in engine.containers_of(run_id)]


def wait_for(here: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not any(text in path.read_text(errors="replace") for path in here.glob("runs/*/*/history.jsonl")):
        assert time.monotonic() < deadline, f"no {text} came"
        time.sleep(0.01)


@pytest.mark.parametrize(("name", "moment"), [("a-long-job-is-paused", "fault.observed"), ("a-long-job-is-overlapped", '"attempt":1')])
def test_kill_9_of_everything_of_ours_leaves_no_container_after_clean(here: Path, name: str, moment: str) -> None:
    command = [sys.executable, "-m", "harness", "run", name, "--target", "docker"]
    process = subprocess.Popen(command, cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(here, moment)

    workers = psutil.Process(process.pid).children(recursive=True)
    for victim in (psutil.Process(process.pid), *workers):
        victim.send_signal(signal.SIGSTOP)  # so that none outlives the others to clear up
    for victim in (*workers, psutil.Process(process.pid)):
        victim.kill()
    process.wait()
    gone, alive = psutil.wait_procs(workers, PATIENCE_S)
    run_id = run_id_of(here)
    before = containers_of(run_id)
    said = harness(here, "clean").stdout

    assert not alive, gone
    assert len(before) == (2 if "overlapped" in name else 1)
    assert all(f"removed container {container}" in said for container in before), said
    assert containers_of(run_id) == []
    assert "nothing was left behind" in harness(here, "clean").stdout


def test_an_interrupt_ends_the_containers_too(here: Path) -> None:
    command = [sys.executable, "-m", "harness", "run", "a-long-job-is-paused", "--target", "docker"]
    process = subprocess.Popen(command, cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(here, "fault.observed")

    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(PATIENCE_S) == 130
    assert containers_of(run_id_of(here)) == []


def test_a_job_that_says_very_much_and_ends_at_once_is_waited_for_by_nobody(tmp_path: Path) -> None:
    skip_or_fail_without("docker")
    run = Run("docker", tmp_path, python("os.write(1, (b'x' * 99 + b'\\n') * 150_000)\nsys.exit(3)"), max_retries=1).start()

    run.finish()
    run.stop()

    assert [exited.exit_code for exited in run.exits()] == [3, 3]
    assert len(run.lines()) == 40_000, "as many of each as an attempt may say"
    assert [lost.count for lost in run.of(ObservationLost)] == [130_000, 130_000]


def test_storage_faults_while_running_are_refused_before_anything_starts(here: Path) -> None:
    refused = harness(here, "run", "a-disk-is-full", "--target", "docker")

    assert refused.returncode == 64
    assert "StorageInterposable" in refused.stdout + refused.stderr
    assert "target 'docker'" in refused.stdout + refused.stderr
