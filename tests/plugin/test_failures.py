"""A failure of a drawn schedule is seen again: by the test that was written of it, and by the line that was printed."""

import shlex
import subprocess
import sys

import pytest

from harness.explore.schedules.cases import Case
from harness.explore.schedules.failures import failure_of, write_failure
from harness.explore.schedules.promises import scenario_of
from harness.scenario import Injection, Scenario, Schedule, Workload, encode
from harness.scenario.expectations import Completes
from harness.scenario.faults import Kill
from harness.scenario.triggers import OnLog
from harness.scenario.workload import LogPatterns, Outside

pytest_plugins = ["pytester"]

JOB = """
import os, pathlib, sys, time

saved = pathlib.Path(os.environ["CHECKPOINT_DIR"]) / "saved"
if saved.exists() and os.environ["SEED"] == "7":
    sys.exit("of no use after a death")
for step in range(1, 6):
    print("step", step, flush=True)
    time.sleep(0.1)
    saved.write_text(str(step))
print("done", flush=True)
"""

SCENARIO = Scenario(
    name="a-job-is-hit",
    why="a test",
    workload=Workload(
        name="job",
        command=("{python}", "job.py"),
        steps=5,
        speaks_protocol=False,
        sources=("job.py",),
        environment={"SEED": "{seed}"},
        outside=Outside(logs=LogPatterns(step=r"^step (?P<step>\d+)", done="^done$")),
    ),
    expects=(Completes(),),
)
SCHEDULE = Schedule(injections=(Injection(fault=Kill(), at=OnLog(pattern="^step 3$")),))

FAULTY = scenario_of(SCENARIO, SCHEDULE)

DRAWN = """
from pathlib import Path

import pytest

from harness.scenario import read_scenario, read_schedule

SCENARIO, SCHEDULE = (read(Path(__file__).with_name(name)) for read, name in ((read_scenario, "s.json"), (read_schedule, "f.json")))

@pytest.mark.chaos
def test_drawn(chaos_schedule):
    run = chaos_schedule(SCENARIO, SCHEDULE)
    assert run.verdict.is_valid, run.explain()
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """The job lies in the root directory, the tests below it."""
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(job=JOB)
    tests = pytester.mkdir("tests")
    (tests / "test_drawn.py").write_text(DRAWN)
    (tests / "s.json").write_bytes(encode(SCENARIO))
    (tests / "f.json").write_bytes(encode(SCHEDULE))
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-m", "chaos", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


def in_tests(suite: pytest.Pytester, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=suite.path / "tests", capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def test_the_test_of_a_failure_runs_by_the_seed_with_which_it_failed(suite: pytest.Pytester) -> None:
    write_failure(failure_of(Case(scenario=FAULTY, seed=7), ("completes",), (5, 5)), suite.path / "tests")

    broken = run(suite, "tests", "-k", "mended", "--seed", "0", "--junitxml", "out.xml")
    broken.assert_outcomes(failed=1)
    assert 'name="seed" value="7"' in (suite.path / "out.xml").read_text()

    (suite.path / "job.py").write_text(JOB.replace('"7"', '"none"'))
    run(suite, "tests", "-k", "mended", "--seed", "0").assert_outcomes(passed=1)


def test_the_test_of_a_failure_runs_on_the_target_on_which_it_failed(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    write_failure(failure_of(Case(scenario=FAULTY, target="docker"), ("completes",), (5, 5)), suite.path / "tests")

    result = run(suite, "tests", "-k", "mended", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*target 'docker' is not available*"])


def test_the_line_that_is_printed_replays_the_failure_from_where_it_is_printed(suite: pytest.Pytester) -> None:
    told = in_tests(suite, "pytest", "-m", "chaos", "-p", "no:cacheprovider", "--seed", "7", "--runs-dir", "runs").stdout
    (line,) = {line.split("replay: ")[1] for line in told.splitlines() if "replay: harness replay" in line}

    again = in_tests(suite, *shlex.split(line))

    assert again.returncode == 1, again.stdout + again.stderr
    assert "it failed in 5 of 5 runs as: completes" in again.stdout
    assert "it fails as before" in again.stdout


def test_tests_of_failures_run_where_they_were_written(suite: pytest.Pytester) -> None:
    write_failure(failure_of(Case(scenario=FAULTY, seed=7), ("completes",), (5, 5)), suite.path / "out" / ".failures")
    run(suite, "--runs-dir", "out", "out/.failures").assert_outcomes(failed=1)


def test_what_is_neither_a_scenario_nor_a_failure_is_refused(suite: pytest.Pytester) -> None:
    (suite.path / "tests" / "test_wrong.py").write_text(
        "import pytest\n@pytest.mark.chaos('a-job-is-hit')\ndef test_wrong(chaos_run):\n    assert 0\n"
    )
    run(suite, "tests/test_wrong.py").stdout.fnmatch_lines(["*'a-job-is-hit' in @pytest.mark.chaos(...) is no scenario, and no failure*"])
