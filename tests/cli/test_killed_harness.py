"""The command line killed without a word: its worker ends what it ran, or ``harness clean`` ends both."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.store import RunStore
from harness.targets import left_behind
from harness.undo import find
from tests.cli.conftest import Command
from tests.killed_harness import PATIENCE_S, awaited, run_that_began

LONG = """
CATALOGUE["a-job-takes-very-long"] = scenario("a-job-takes-very-long", workload=job(STEPS="60", STEP_SECONDS="10"))
"""


@pytest.fixture
def started(here: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts the command line; what is left of it and of its workers is killed at the end."""
    catalogue = here / "scenarios.py"
    catalogue.write_text(catalogue.read_text() + LONG)
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "harness", *arguments]
        running.append(subprocess.Popen(command, cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
    for run in RunStore(here / "runs", SystemClock()).runs():
        owner = run.owner()
        orphan = find(owner.process) if owner is not None else None
        if orphan is not None:
            orphan.kill()


@pytest.fixture
def clean(harness: Command) -> Callable[[], "subprocess.CompletedProcess[str]"]:
    return lambda: harness("clean")


def test_a_worker_whose_harness_was_killed_ends_its_run_and_itself(clean, here: Path, started) -> None:
    main = started("run", "a-job-takes-very-long")
    run, owner = run_that_began(here, "a-job-takes-very-long/*")
    assert left_behind(owner.run_id), "its job runs"

    main.kill()

    assert awaited(lambda: find(owner.process) is None)
    assert '"reason":"interrupted"' in run.history_path.read_text()
    assert left_behind(owner.run_id) == []
    assert clean().stdout == "nothing was left behind\n"


def test_clean_ends_a_worker_that_stands_still_and_whose_harness_was_killed(clean, here: Path, started) -> None:
    main = started("run", "a-job-takes-very-long")
    run, owner = run_that_began(here, "a-job-takes-very-long/*")
    os.kill(owner.process.pid, signal.SIGSTOP)
    main.kill()
    main.wait()

    result = clean()

    assert result.returncode == 0, result.stdout + result.stderr
    pid = owner.process.pid
    assert f"{run.name}: its harness was killed; waiting until process {pid}, which ran it, has ended it\n" in result.stdout
    assert f"{run.name}: killed process {pid}, which had not ended it\n" in result.stdout
    assert find(owner.process) is None
    assert left_behind(owner.run_id) == []
    assert clean().stdout == "nothing was left behind\n"


def test_clean_leaves_a_worker_alone_whose_harness_lives(clean, here: Path, started) -> None:
    started("run", "a-job-takes-very-long")
    run, owner = run_that_began(here, "a-job-takes-very-long/*")

    assert f"{run.name}: still running, left alone\n" in clean().stdout
    assert find(owner.process) is not None


UNENDING = """
import signal
from harness.cli import worker
worker.UNNOTICED_S = 0.0
orders = worker.Orders()
signal.signal(signal.SIGINT, signal.SIG_IGN)
worker.threading.Thread(target=orders.read, daemon=True).start()
orders._ending_s_max = 0.0
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_worker_that_cannot_end_its_run_is_not_there_for_ever() -> None:
    with subprocess.Popen([sys.executable, "-c", UNENDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"

        worker.stdin.close()

        try:
            assert worker.wait(PATIENCE_S) == -signal.SIGKILL
        finally:
            worker.kill()


NOBODY = {
    "HARNESS_GCP_EMULATOR": "grpc=127.0.0.1:1,http=127.0.0.1:1",
    "HARNESS_GCP_PROJECT": "my-project",
    "HARNESS_GCP_REGION": "europe-west4",
    "HARNESS_GCP_BUCKET": "my-bucket",
    "HARNESS_GCP_JOB": "my-job",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--target", "gcp", "a-good-job-recovers"],
        ["run", "--target", "gcp", "--plan", "a-good-job-recovers"],
        ["clean", "--target", "gcp"],
        ["reproduce", "--project", "my-project", "--execution", "my-job-1"],
    ],
    ids=["run", "plan", "clean", "reproduce"],
)
def test_an_emulator_that_has_ended_is_said_so_and_nothing_is_asked(harness: Command, here: Path, arguments: list[str]) -> None:
    result = harness(*arguments, **NOBODY)

    assert result.returncode == 64
    assert "no emulator answers at grpc=127.0.0.1:1,http=127.0.0.1:1; is it still running?" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (here / "plan.json").exists()
