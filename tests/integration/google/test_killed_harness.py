"""``harness run --target gcp --emulator`` killed without a word: the emulator is gone with it, and nobody asks for it for long."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.clock import SystemClock
from harness.process_table import read_table
from harness.store import Owner, RunDirectory, RunStore
from harness.undo import find
from tests.killed_harness import awaited, run_that_began

ROOT = Path(__file__).resolve().parents[3]

CATALOGUE = f"""
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.expectations import BitExactResume, Completes
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep

SLOW = Workload(
    name="job", command=("{{python}}", "-m", "workloads.counter.train"), steps=60, save_every=5, layout="text-file", directory={str(ROOT)!r},
    sources=("workloads/counter",), environment={{"STEPS": "60", "STEP_SECONDS": "10", "SAVE_EVERY": "5"}},
)
CATALOGUE = {{
    "a-slow-job-recovers": Scenario(
        name="a-slow-job-recovers", why="a test", workload=SLOW, injections=(Injection(fault=Kill(), at=AtStep(step=7)),),
        expects=(Completes(), BitExactResume()), deadline_s=600.0,
    )
}}
"""


class Killed:
    """The command line at work in a directory, to be killed."""

    def __init__(self, here: Path) -> None:
        self.here = here
        (here / "scenarios.py").write_text(CATALOGUE)
        (here / "tmp").mkdir()
        self.environment = {**os.environ, "XDG_STATE_HOME": str(here / "state"), "TMPDIR": str(here / "tmp")}
        command = [sys.executable, "-m", "harness", "run", "--target", "gcp", "--emulator", "a-slow-job-recovers"]
        self.process = subprocess.Popen(
            command,
            cwd=here,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run_that_began(self) -> tuple[RunDirectory, Owner]:
        """The uninterrupted run, when its job has been started, and whose it is."""
        return run_that_began(self.here, ".golden/*/*")

    def clean(self) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "harness", "clean"]
        return subprocess.run(command, cwd=self.here, env=self.environment, capture_output=True, text=True, timeout=120)

    def left(self) -> list[str]:
        """Processes that carry its directory, and files that it has made for a while or written down."""
        files = [str(path) for pattern in ("tmp/*", "state/harness/*/*") for path in self.here.glob(pattern)]
        return files + [str(pid) for pid in read_table().carrying([f"XDG_STATE_HOME={self.here / 'state'}".encode()])]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pid in read_table().carrying([f"XDG_STATE_HOME={self.here / 'state'}".encode()]):
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    found = Killed(tmp_path)
    yield found
    found.end()


def is_lock_free(run: RunDirectory) -> bool:
    """Whether the uninterrupted run may be made by the next one at once."""
    told: list[str] = []

    class NotFreeError(Exception):
        pass

    def refuse(why: str) -> None:
        told.append(why)
        raise NotFreeError

    with contextlib.suppress(NotFreeError), RunStore(run.path.parents[2], SystemClock()).golden_lock(run.path.parent.name, waits=refuse):
        pass
    return not told


def test_a_worker_whose_emulator_died_with_the_harness_ends_and_clean_takes_the_rest(killed: Killed):
    run, owner = killed.run_that_began()
    killed.process.kill()
    killed.process.wait()

    assert awaited(lambda: find(owner.process) is None)
    assert "EMULATOR_GONE" in run.history_path.read_text(), "nobody was asked again and again"
    assert is_lock_free(run)
    result = killed.clean()

    assert result.returncode == 0, result.stdout + result.stderr
    assert "left alone" not in result.stdout
    assert killed.left() == []
    assert killed.clean().stdout == "nothing was left behind\n"


def test_a_worker_that_stands_still_is_ended_by_clean_with_all_that_the_emulator_left(killed: Killed):
    run, owner = killed.run_that_began()
    os.kill(owner.process.pid, signal.SIGSTOP)
    killed.process.kill()
    killed.process.wait()
    assert not is_lock_free(run)

    result = killed.clean()

    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    ended = next(index for index, line in enumerate(lines) if f"killed process {owner.process.pid}, which had not ended it" in line)
    removed = next(index for index, line in enumerate(lines) if line.startswith("emulator ") and "removed /" in line)
    assert ended < removed, "nobody works any more in what is removed"
    assert is_lock_free(run)
    assert killed.left() == []
    assert killed.clean().stdout == "nothing was left behind\n"
