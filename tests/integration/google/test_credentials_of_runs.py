"""A job that tells credentials: nothing that a run on Google Cloud writes down here has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.history import LogLine
from harness.report import write_run
from harness.runner import Options, run_scenario
from harness.scenario import Injection, Platform, Scenario, Workload, encode
from harness.scenario.expectations import Completes
from harness.scenario.faults import FlipByte, Kill
from harness.scenario.triggers import AtStep, OnEffect
from harness.store import RunStore
from harness.targets.gcp.target import GcpTarget
from tests.integration.google.course import PLACE, ROOT

TOKEN, PASSWORD = "ya29.a0AfB_planted-token", "hunter22"
SCRIPT = f"import sys; print('connects with {TOKEN}', flush=True); sys.exit('password={PASSWORD} is wrong')"
LEAKING = Scenario(
    name="a-job-that-tells-its-credentials",
    why="a debug line",
    workload=Workload(name="leaks", command=("{python}", "leaks.py")),
    platform=Platform(max_retries=0),
    injections=(),
    expects=(Completes(),),
    deadline_s=60.0,
)


@pytest.mark.usefixtures("emulator")
def test_what_a_job_prints_is_masked_in_everything_that_is_written(tmp_path: Path):
    (tmp_path / "leaks.py").write_text(SCRIPT)
    clock = SystemClock()
    store = RunStore(tmp_path / "runs", clock)
    run = run_scenario(
        LEAKING,
        target=lambda: GcpTarget(clock),
        clock=clock,
        store=store,
        options=Options(root=tmp_path, keep=True),
    )
    lines = [event.text for event in run.history.events if isinstance(event, LogLine)]
    assert "connects with [redacted]" in lines
    assert any("password=[redacted]" in line for line in lines)
    write_run(run.directory)
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert {"history.jsonl", "entries.jsonl", "report.html"} <= {path.name for path in files}
    for path in files:
        text = path.read_bytes().decode(errors="replace")
        assert TOKEN not in text
        assert PASSWORD not in text


# ---- the whole way, as a person goes it ------------------------------------------------------------------------------

OURS = "planted-without-a-known-form"
"""What the harness itself has in its environment; the job tells it, too."""

PEM = (
    "-----BEGIN PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "Kj8planted0K",
    "-----END PRIVATE KEY-----",
)

JOB = f"""
import runpy, sys
sys.path.insert(0, {str(ROOT)!r})
for text in {("connects with " + TOKEN, "password=" + PASSWORD, "knows " + OURS, *PEM)!r}:
    print(text, flush=True)
print({TOKEN!r}, file=sys.stderr, flush=True)
runpy.run_module("workloads.counter.train", run_name="__main__")
"""

DAMAGED = Scenario(
    name="a-damaged-job-that-tells-its-credentials",
    why="a debug line, and a fault with an undo",
    workload=Workload(
        name="leaks",
        command=("{python}", "leaks.py"),
        steps=6,
        save_every=2,
        environment={"STEPS": "6", "STEP_SECONDS": "0.02", "SAVE_EVERY": "2"},
        layout="text-file",
    ),
    platform=Platform(max_retries=1, timeout_s=60.0),
    injections=(Injection(name="kill", fault=Kill(), at=AtStep(step=5)), Injection(fault=FlipByte(), at=OnEffect(of="kill"))),
    expects=(Completes(),),
    deadline_s=60.0,
)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("course")
def test_from_plan_to_clean_no_credential_is_in_a_file_or_in_what_is_printed(tmp_path: Path):
    (tmp_path / "leaks.py").write_text(JOB)
    (tmp_path / "scenario.json").write_bytes(encode(DAMAGED))
    place = [word for name, value in PLACE.named().items() if value for word in (f"--{name}", value)]
    run = ["run", "scenario.json", "--target", "gcp", "--runs-dir", "runs", "--root", "."]
    printed = [
        harness(tmp_path, *run, *place),
        harness(tmp_path, *run, "--apply", "plan.json", "--keep"),
        harness(tmp_path, "clean", "--target", "gcp", "--runs-dir", "runs", *place),
    ]
    assert "nothing was changed" in printed[0]
    assert DAMAGED.name in printed[1], printed[1]  # judged; what the job makes of a byte that was flipped is its own affair
    files = [path for path in (tmp_path / "runs", tmp_path / "state", tmp_path / "plan.json") for path in (path, *path.rglob("*"))]
    written = {path: path.read_bytes().decode(errors="replace") for path in files if path.is_file()}
    assert {"history.jsonl", "entries.jsonl", "report.html", "undo.jsonl", "plan.json"} <= {path.name for path in written}
    assert any("KeptOriginal" in text or "kept-original" in text for path, text in written.items() if path.name == "undo.jsonl")
    assert any("connects with [redacted]" in text for path, text in written.items() if path.name == "history.jsonl")
    for text in (*printed, *written.values()):
        for secret in (TOKEN, PASSWORD, OURS, *PEM[1:3]):
            assert secret not in text


def harness(directory: Path, *arguments: str) -> str:
    """All that it prints."""
    environment = {**os.environ, "WANDB_API_KEY": OURS, "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN, "HARNESS_TRACEBACK": "1"}
    command = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=240)
    return done.stdout + done.stderr
