"""``pytest -m chaos --target gcp`` on a project: a plan is made and nothing runs, until it is applied; on an emulator, as on a project."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.emulator.session import PROJECT
from harness.targets.gcp.plan import read_plan
from tests.integration.google.course import ROOT, Course

NARROW = """
[workload]
name = "train"
command = ["python3", "train.py"]

[gcp.limits]
duration_s = 1.0
"""

NAMES = ("a-killed-job-is-tried-again", "another-killed-job-is-tried-again")

RUN_JOB = "google.cloud.run.v2.Jobs/RunJob"

CONFTEST = """
import pytest
from tests.integration.google.course import KILLED
from msgspec.structs import replace

@pytest.hookimpl
def pytest_harness_scenarios():
    other = replace(KILLED, name="another-killed-job-is-tried-again")
    return {found.name: found for found in (KILLED, other)}
"""

TESTS = """
import pytest

@pytest.mark.chaos
def test_scenario(chaos_run):
    assert chaos_run.verdict.is_valid, chaos_run.explain()

@pytest.mark.chaos
def test_of_ones_own(chaos_runner):
    from tests.integration.google.course import KILLED
    from msgspec.structs import replace
    chaos_runner(replace(KILLED, name="a-scenario-that-nobody-has-planned"))
"""


pytestmark = pytest.mark.usefixtures("named")


Chaos = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def suite(tmp_path: Path, course: Course) -> Path:
    """A repository of somebody, with two scenarios."""
    directory = tmp_path / "suite"
    directory.mkdir()
    (directory / "workloads").symlink_to(ROOT / "workloads")
    (directory / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (directory / "test_inner.py").write_text(TESTS, encoding="utf-8")
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:randomly -p no:cacheprovider\n", encoding="utf-8")
    return directory


@pytest.fixture
def chaos(suite: Path) -> Chaos:
    """``pytest -m chaos --target gcp`` there."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-m", "chaos", "--target", "gcp", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, timeout=280)

    return run


def begun(course: Course) -> int:
    return sum(call.method == RUN_JOB for call in course.emulator.world.calls.all())


def test_without_apply_a_plan_is_made_and_nothing_runs(suite: Path, chaos: Chaos, course: Course):
    before = len(course.emulator.world.calls.writes())

    ended = chaos("-k", "test_scenario")

    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout + ended.stderr
    assert f"plan for project {PROJECT}, region " in ended.stdout
    assert "pytest -m chaos --target gcp -k test_scenario --apply plan.json" in ended.stdout
    assert "1 deselected in" in ended.stdout.splitlines()[-1]
    assert len(course.emulator.world.calls.writes()) == before
    assert [scenario.name for scenario in read_plan(suite / "plan.json").scenarios] == sorted(NAMES)


def test_a_plan_that_was_asked_for_is_a_success(suite: Path, chaos: Chaos, course: Course):
    ended = chaos("--plan", "--plan-file", "other.json")

    assert ended.returncode == pytest.ExitCode.OK, ended.stdout + ended.stderr
    assert (suite / "other.json").exists()
    assert begun(course) == 0


def test_what_an_applied_plan_names_is_run_and_nothing_else_is(chaos: Chaos, course: Course):
    chaos("--plan", "-k", f"[{NAMES[0]}] or own")

    ended = chaos("--apply", "plan.json", "-k", f"[{NAMES[0]}] or own")

    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "NotPlannedError: scenario a-scenario-that-nobody-has-planned with seed 0 is not of the plan" in ended.stdout
    assert begun(course) == 1
    assert course.leftovers() == []


def test_a_plan_of_other_tests_is_refused_before_anything_runs(chaos: Chaos, course: Course):
    chaos("--plan", "-k", f"[{NAMES[0]}]")

    ended = chaos("--apply", "plan.json", "-k", "test_scenario")

    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout + ended.stderr
    assert f"the plan is for something else: scenario {NAMES[1]}: planned nothing" in ended.stderr
    assert begun(course) == 0


def test_a_plan_that_is_over_its_limits_is_a_failure(suite: Path, chaos: Chaos, course: Course):
    (suite / "narrow.toml").write_text(NARROW, encoding="utf-8")

    ended = chaos("--plan", "--gcp-config", "narrow.toml")

    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout + ended.stderr
    assert "problem  " in ended.stdout
    assert begun(course) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--apply", "plan.json", "--plan"), "--plan makes a plan, and --apply applies one"),
        (("--apply", "nowhere.json"), "nowhere.json"),
        (("-n", "2"), "leave -n out"),
        (("--target", "local", "--plan"), "the target is local"),
    ],
)
def test_what_cannot_be_meant_is_refused(chaos: Chaos, course: Course, arguments: tuple[str, ...], said: str):
    ended = chaos(*arguments)

    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in ended.stderr + ended.stdout
    assert begun(course) == 0
