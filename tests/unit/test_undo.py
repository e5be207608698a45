"""Processes are told from one another whatever their ids and the time of day."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.clock import SystemClock
from harness.store import RunStore
from harness.undo import ContinueProcesses, KillProcesses, find, identify, perform


@pytest.fixture
def other():
    """A process that waits."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_run_lives_on_when_somebody_sets_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run, _ = RunStore(tmp_path, SystemClock()).create("a-run-lives", 0)
    booted_s = psutil.boot_time()
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: booted_s + 3600.0)

    assert run.is_running()


def test_another_process_with_the_same_id_is_left_alone(other: subprocess.Popen[bytes]):
    (mine,) = identify([other.pid])
    strangers = [msgspec.structs.replace(mine, started_s=mine.started_s - 1), msgspec.structs.replace(mine, boot_id="another")]

    assert [perform(KillProcesses(processes=(stranger,))) for stranger in strangers] == ["SIGKILL to 0 processes"] * 2
    assert other.poll() is None


def test_a_stopped_process_goes_on(other: subprocess.Popen[bytes]):
    processes = identify([other.pid])
    os.kill(other.pid, signal.SIGSTOP)
    os.waitpid(other.pid, os.WUNTRACED)

    assert perform(ContinueProcesses(processes=processes)) == "SIGCONT to 1 processes"
    assert os.WIFCONTINUED(os.waitpid(other.pid, os.WCONTINUED)[1])


def test_a_process_that_has_ended_is_gone_even_before_it_is_waited_for(other: subprocess.Popen[bytes]):
    (process,) = identify([other.pid])
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)

    assert find(process) is None
