"""How a process ended, by the kernel and by the engine."""

import os
import signal
import subprocess
import sys

import pytest

from harness.targets.docker.exit_status import exit_status, status_of_engine


@pytest.mark.parametrize(
    ("exit_code", "was_killed", "status"),
    [
        (0, False, 0),
        (7, False, 7),
        (137, True, -signal.SIGKILL),
        (137, False, 137),
        (139, False, -signal.SIGSEGV),
        (134, False, -signal.SIGABRT),
        (143, False, 143),
        (143, True, 143),
        (130, False, 130),
        (255, False, 255),
    ],
)
def test_the_engine_s_code_is_read_by_what_can_end_a_first_process(exit_code, was_killed, status):
    assert status_of_engine(exit_code, was_killed=was_killed) == status


@pytest.mark.parametrize(
    ("code", "status"), [("pass", 0), ("raise SystemExit(137)", 137), ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL)]
)
def test_the_kernel_says_it_or_says_nothing_and_never_something_else(code, status):
    process = subprocess.Popen([sys.executable, "-S", "-c", code])
    descriptor = os.pidfd_open(process.pid)
    try:
        process.wait()

        assert exit_status(descriptor) in (status, None)
    finally:
        os.close(descriptor)


def test_of_a_process_that_runs_the_kernel_says_nothing():
    descriptor = os.pidfd_open(os.getpid())
    try:
        assert exit_status(descriptor) is None
    finally:
        os.close(descriptor)
