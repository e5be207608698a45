"""The Cloud Run guide's job through Google's own clients: deployed, executed, maintained, retried, resumed, judged."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from google.cloud import run_v2
from msgspec.structs import replace

from harness.emulator import Emulator
from harness.emulator.session import PROJECT
from harness.history import Event, LogLine, ObservationLost
from harness.runner import Run
from harness.scenario import Injection, Platform, Scenario
from harness.scenario.faults import FlipByte, Kill, Maintenance, Terminate
from harness.scenario.triggers import AtMarker, AtStep, OnEffect
from harness.targets import left_behind
from harness.targets.gcp.guard import NotAllowedError
from harness.verdict import Outcome
from scenarios import CATALOGUE
from scenarios.cloud_run_guide import MAINTENANCE
from scenarios.jobs import LINEAR
from tests.integration.google.conftest import RunIt, objects_left
from tests.integration.google.same_scenarios import BOUNDS
from workloads.broken import BROKEN

ROOT = Path(__file__).resolve().parents[3]
PARENT = f"projects/{PROJECT}/locations/europe-west4"


def seen(run: Run, kind: type[Event]) -> list[Event]:
    return [event for event in run.history.events if isinstance(event, kind)]


def nothing_left(emulator: Emulator, run: Run) -> bool:
    run_id = run.history.events[0].run_id  # type: ignore[attr-defined]
    return not objects_left(emulator) and not left_behind(run_id)


def test_maintenance_is_survived_with_the_guides_four_lines_in_order(run_it: RunIt, emulator: Emulator):
    run = run_it(MAINTENANCE)

    assert run.verdict.is_valid, run.explain()
    lines = [event.text for event in seen(run, LogLine) if isinstance(event, LogLine)]
    four = [
        "Received SIGTERM signal from platform. Initiating graceful shutdown...",
        "Saving checkpoint at step 12...",
        "Container instance preemption initiated by the platform due to underlying hardware maintenance.",
        "Resuming from checkpointed step 12.",
    ]
    assert [line for line in lines if line in four] == four
    played = [event for event in seen(run, LogLine) if isinstance(event, LogLine) and event.text == four[2]]
    assert [(line.stream, line.reason) for line in played] == [("system", "INSTANCE_PREEMPTED")]
    lost = [event for event in seen(run, ObservationLost) if isinstance(event, ObservationLost)]
    assert [event for event in lost if event.what != "moments"] == []  # on a slow machine its grace may have stood still for long
    assert nothing_left(emulator, run)


def test_the_job_is_made_run_once_and_deleted(run_it: RunIt, emulator: Emulator):
    run_it(CATALOGUE["an-uninterrupted-job-saves-every-fifth-step-and-exits-zero"])

    written = [call.method.rpartition("/")[2] for call in emulator.world.calls.writes() if "Jobs/" in call.method]
    assert written == ["CreateJob", "RunJob", "DeleteJob"]


BROKEN_JOBS = {
    "saves_nothing": (Injection(fault=Kill(), at=AtStep(step=12)),),
    "starts_from_scratch": (Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2)),),
    "off_by_one_on_resume": (Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2)),),
    "exits_zero_on_sigterm": (Injection(fault=Terminate(), at=AtStep(step=12)),),
    "ignores_sigterm": (Injection(fault=Maintenance(), at=AtStep(step=12)),),
    "restores_damaged_bytes": (
        Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2), name="kill"),
        Injection(fault=FlipByte(), at=OnEffect(of="kill")),
    ),
}


@pytest.mark.parametrize("job", BROKEN_JOBS)
def test_a_broken_job_is_caught(run_it: RunIt, job: str):
    steps = {"STEP_SECONDS": "0.1"} if job == "ignores_sigterm" else {}  # so that the grace is over before the job is
    name, command = job.replace("_", "-"), ("{python}", "-m", f"workloads.broken.{job}")
    run = run_it(
        Scenario(
            name=f"{name}-is-caught",
            why="a job that is wrong in one known way",
            workload=replace(LINEAR, name=name, command=command, environment={**LINEAR.environment, **steps}),
            platform=Platform(grace_s=1.0),
            injections=BROKEN_JOBS[job],
            expects=BOUNDS,
            deadline_s=120.0,
        )
    )

    assert run.verdict.outcome is Outcome.INVALID, run.explain()
    assert BROKEN[job].promise in {finding.checker for finding in run.verdict.worst()}, run.explain()


def test_damage_between_two_attempts_is_found_by_the_next_one(run_it: RunIt):
    run = run_it(CATALOGUE["an-unreadable-checkpoint-is-said-and-training-starts-from-scratch"])

    assert run.verdict.is_valid, run.explain()


def adopted_job(labels: dict[str, str]) -> run_v2.Job:
    container = run_v2.Container(image="users/image", command=["python3", "train.py"], env=[run_v2.EnvVar(name="OWN", value="1")])
    task = run_v2.TaskTemplate(containers=[container], max_retries=1, timeout=timedelta(seconds=50))
    return run_v2.Job(labels=labels, template=run_v2.ExecutionTemplate(template=task))


def make_job(labels: dict[str, str]) -> run_v2.JobsClient:
    from harness.targets.gcp.connection import connect
    from harness.targets.gcp.secrets import Secrets

    jobs = connect(PROJECT, os.environ, Secrets()).jobs
    jobs.create_job(parent=PARENT, job=adopted_job(labels), job_id="emulated-job").result(timeout=30)
    return jobs


def test_an_adopted_job_is_copied_and_not_changed(run_it: RunIt, emulator: Emulator):
    jobs = make_job({"harness-chaos": "allowed"})
    before = jobs.get_job(name=f"{PARENT}/jobs/emulated-job")

    run = run_it(CATALOGUE["an-uninterrupted-job-saves-every-fifth-step-and-exits-zero"])

    assert run.verdict.is_valid, run.explain()
    assert jobs.get_job(name=f"{PARENT}/jobs/emulated-job") == before
    assert [job.name.rpartition("/")[2] for job in jobs.list_jobs(parent=PARENT)] == ["emulated-job"]


def test_a_job_whose_owner_has_not_allowed_it_is_left_alone(run_it: RunIt, emulator: Emulator):
    jobs = make_job({"team": "training"})

    with pytest.raises(NotAllowedError, match="harness-chaos"):
        run_it(CATALOGUE["an-uninterrupted-job-saves-every-fifth-step-and-exits-zero"])

    assert [job.name.rpartition("/")[2] for job in jobs.list_jobs(parent=PARENT)] == ["emulated-job"]
    assert not [call for call in emulator.world.calls.all() if call.method.endswith("RunJob")]


@pytest.mark.parametrize("way", ["pytest", "harness run"])
def test_the_same_scenario_is_valid_from_the_command_line_and_from_pytest(tmp_path: Path, way: str):
    name = MAINTENANCE.name
    common = ["--target", "gcp", "--emulator", "--runs-dir", str(tmp_path / "runs")]
    if way == "pytest":
        command = [sys.executable, "-m", "pytest", "-q", "-m", "chaos", *common, "-k", name, "tests/chaos", "-p", "no:cacheprovider"]
    else:
        command = [sys.executable, "-m", "harness", "run", *common, name]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_")}
    environment |= {"XDG_STATE_HOME": str(tmp_path / "state"), "HARNESS_CACHE_DIR": str(tmp_path / "cache")}

    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ("1 passed" if way == "pytest" else "1 valid") in ended.stdout
