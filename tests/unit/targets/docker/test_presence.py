"""A machine without an engine, or without its client."""

import subprocess
import sys

import pytest

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError
from harness.targets import availability, create, left_behind, remove_left_behind
from harness.targets.docker import presence
from harness.targets.docker.target import DockerTarget


def test_without_its_packages_the_target_says_what_to_install(monkeypatch):
    monkeypatch.setattr(presence, "PACKAGES", ("no_such_package",))

    found = availability("docker")

    assert (found.is_available, found.reason) == (False, "no_such_package not installed")
    assert "chaos-harness[docker]" in found.advice
    assert left_behind("r") == []
    assert remove_left_behind("r") == []


def test_on_another_system_than_linux_it_says_why(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(TargetUnavailableError, match="darwin"), presence.open_engine():
        pass


def test_making_the_target_and_asking_it_imports_no_client_of_an_engine():
    code = """
import sys
from harness.clock import ManualClock
from harness.targets import create
target = create("docker", ManualClock())
target.fidelity(), target.interpreter()
sys.exit(any(name.split(".")[0] in ("docker", "testcontainers", "requests") for name in sys.modules))
"""

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_memory_cannot_be_limited_where_no_engine_answers(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    target = create("docker", ManualClock())
    assert isinstance(target, DockerTarget)

    assert "no Docker engine answers" in target.memory_problem()
