"""Drawn schedules on real jobs: all of them act, a wrong job is found, and what is written down fails again in the same way."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from harness.explore.schedules import ScheduleRun, ScheduleRunner, read_failure, run_schedule
from harness.explore.schedules.cases import signature_of
from harness.runner import check_run
from harness.scenario import Injection, Schedule
from harness.scenario.faults import EndGrace, Kill, Terminate
from harness.scenario.triggers import AtMarker, AtStep
from harness.store import RunDirectory, RunStore
from harness.strategies import schedules
from scenarios.jobs import LINEAR

ROOT = Path(__file__).resolve().parents[3]
FAST = {"STEPS": "20", "STEP_SECONDS": "0.01", "SAVE_EVERY": "5", "SEED": "{seed}"}
RIGHT = msgspec.structs.replace(LINEAR, steps=20, environment=FAST)
WRONG = msgspec.structs.replace(
    RIGHT, name="off-by-one", command=("{python}", "-m", "workloads.broken.off_by_one_on_resume"), sources=("workloads",)
)
THREE = Schedule(
    injections=(
        Injection(fault=Kill(), at=AtMarker(event="save.end")),
        Injection(fault=Terminate(), at=AtStep(step=12), attempts=(1,)),
        Injection(fault=EndGrace(), at=AtMarker(event="sigterm"), attempts=(1,)),
    )
)


def test_a_right_job_survives_what_is_drawn_and_every_fault_of_it_acts(tmp_path: Path) -> None:
    drawn: list[ScheduleRun] = []

    @settings(max_examples=6, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(schedules(RIGHT, max_faults=4))
    def survives(schedule: Schedule) -> None:
        drawn.append(run_schedule(RIGHT, schedule, runs_dir=tmp_path / "runs", root=ROOT))
        assert drawn[-1].verdict.is_valid, drawn[-1].explain()

    survives()
    assert drawn


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> ScheduleRun:
    """A wrong job under three faults, made small."""
    from harness.clock import SystemClock

    clock = SystemClock()
    runner = ScheduleRunner(store=RunStore(tmp_path_factory.mktemp("runs"), clock), root=ROOT, clock=clock)
    return runner.run(WRONG, THREE)


def test_a_wrong_job_is_told_by_its_smallest_schedule(failed: ScheduleRun) -> None:
    assert failed.shrunk is not None, failed.explain()
    (kill,) = failed.shrunk.case.injections
    assert (kill.fault, kill.attempts) == (Kill(), (0,))
    assert failed.shrunk.runs <= 12
    assert failed.reproduction == "reproduces 5 of 5"
    assert "bit-exact-resume" in signature_of(failed.verdict)[0]


def test_what_was_written_down_fails_again_in_the_same_way(failed: ScheduleRun, tmp_path: Path) -> None:
    assert failed.artefact is not None
    command = [sys.executable, "-m", "harness", "replay", str(failed.artefact), "--root", str(ROOT), "--runs-dir", str(tmp_path / "runs")]
    replayed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert replayed.returncode == 1, replayed.stderr
    (verdict,) = (tmp_path / "runs").glob("off-by-one-*/*/verdict.json")
    assert signature_of(check_run(RunDirectory(verdict.parent)).verdict) == read_failure(failed.artefact).signature


def test_the_test_that_was_written_fails_until_the_job_is_mended(failed: ScheduleRun, tmp_path: Path) -> None:
    assert failed.artefact is not None
    (test,) = failed.artefact.parent.glob("test_*.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "chaos",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={ROOT}",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    ran = subprocess.run([*command, "--runs-dir", str(tmp_path / "runs"), str(test)], cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert ran.returncode == 1, ran.stdout
    assert "1 failed" in ran.stdout
    assert "bit-exact-resume" in ran.stdout
