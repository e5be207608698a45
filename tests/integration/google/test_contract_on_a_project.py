"""The contract of a target on a project: only by its own plan, and then as on the emulator; here the project is an emulator's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.google.course import ROOT, Course

SOME = "(two_runs or later_success) and gcp"


pytestmark = pytest.mark.usefixtures("named")


def python(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=250)


def contract(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = (str(ROOT / "tests/contract/test_attempts.py"), "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"))
    return python(directory, "pytest", "-q", "-p", "no:cacheprovider", *where, "-k", SOME, *arguments)


def test_it_runs_by_its_plan(course: Course, tmp_path: Path):
    planned = python(tmp_path, "tests.contract.project")
    assert planned.returncode == 0, planned.stdout + planned.stderr

    ended = contract(tmp_path, "--target", "gcp", "--apply", "plan.json")

    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr
    assert course.leftovers() == []


def test_without_a_plan_nothing_of_it_begins(course: Course, tmp_path: Path):
    (tmp_path / "no-plan").mkdir()

    ended = contract(tmp_path / "no-plan", "--target", "gcp", "--apply", "plan.json")

    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout + ended.stderr
    assert not [call for call in course.emulator.world.calls.all() if call.method.endswith("RunJob")]
