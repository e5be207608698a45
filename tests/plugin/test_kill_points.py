"""Kill points as tests: inner suites with a job that is right, and one that writes over its only checkpoint."""

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from harness.explore.kill_points.choice import Moment, choose
from harness.explore.result import Exploration
from harness.explore.trials_file import read_trials
from harness.store import RunDirectory
from harness.targets.local.scratch import find_scratch_directories
from harness.verdict import Outcome

pytest_plugins = ["pytester"]

JOB = """
import json, os, pathlib, sys, time
root, way = pathlib.Path(os.environ["CHECKPOINT_DIR"]), os.environ["WAY"]
counted = os.open(os.environ["COUNT"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(counted, b".")

def say(event, **fields):
    with open(os.environ["HARNESS_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, **fields}) + "\\n")

step, total = 0, 0
try:
    step, total = map(int, (root / "checkpoint").read_text().split())
except (OSError, ValueError):
    pass
if step:
    say("restore", step=step, digests={"total": str(total)})
say("start", attempt=0, restored_step=step)
if way == "slow" and step == 2:
    time.sleep(60)
while step < 4:
    step += 1
    total += step * step
    say("step", step=step, digests={"total": str(total)})
    if step % 2 == 0:
        say("save.begin", step=step, digests={"total": str(total)})
        name = {"right": "checkpoint.tmp", "wrong": "checkpoint", "slow": "checkpoint"}.get(way)
        if name:
            with open(root / name, "w") as file:
                file.write(f"{step} {total}")
                file.flush()
                os.fsync(file.fileno())
        if way == "right":
            os.rename(root / "checkpoint.tmp", root / "checkpoint")
        say("save.end", step=step, digests={"total": str(total)})
say("done", step=step)
"""

SUITE = """
import os
import pytest
from harness.scenario import Workload

def job(way, program="{python}"):
    environment = {"WAY": way, "COUNT": os.path.abspath("count")}
    return Workload(name=f"{way}-job", command=(program, "-S", "job.py"), steps=4, save_every=2, environment=environment)

@pytest.mark.chaos(job("right"))
def test_right(chaos_kill_point):
    assert chaos_kill_point.verdict.is_valid, chaos_kill_point.explain()

@pytest.mark.chaos(job("wrong"))
def test_wrong(chaos_kill_point):
    assert chaos_kill_point.verdict.is_valid, chaos_kill_point.explain()

@pytest.mark.chaos(job("slow"))
def test_slow(chaos_kill_point):
    pass

@pytest.mark.chaos(job("blind"), job("missing", program="no-such-program"))
def test_unseen(chaos_kill_point):
    assert chaos_kill_point.verdict.is_valid, chaos_kill_point.explain()
"""

TOML = """
[workload]
name = "wrong-job"
command = ["{python}", "-S", "job.py"]
steps = 4
save_every = 2
speaks_protocol = true

[workload.environment]
WAY = "wrong"
COUNT = "count"

"""

TORN = "wrong-job:posix:process:save.begin:2:open:checkpoint:1"
"""The second save has emptied the only checkpoint."""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_inner=SUITE, job=JOB)
    pytester.makeini(
        "[pytest]\njunit_family = xunit1\nfilterwarnings = error\naddopts = --strict-markers -p no:randomly -p no:cacheprovider\n"
    )
    return pytester


def run(suite: pytest.Pytester, function: str, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-m", "chaos", f"test_inner.py::{function}", *arguments)


def ids_of(suite: pytest.Pytester, function: str, *arguments: str) -> list[str]:
    return [line.split("[", 1)[1][:-1] for line in run(suite, function, "--collect-only", "-q", *arguments).outlines if "::" in line]


def exploration_of(suite: pytest.Pytester, job: str) -> Path:
    (directory,) = (suite.path / "runs" / f"explore-{job}").iterdir()
    return directory


def harness(suite: pytest.Pytester, *arguments: str) -> bytes:
    """What the command prints."""
    environment = {**os.environ, "WAY": "wrong", "COUNT": str(suite.path / "other-count")}
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=suite.path, env=environment, stdout=subprocess.PIPE, check=False).stdout


def test_a_wrong_job_fails_at_exactly_the_kill_points_at_which_an_exploration_finds_it_wrong(suite: pytest.Pytester) -> None:
    result = run(suite, "test_wrong", "--kill-points", "each", "-v")

    failed = {line.split("[", 1)[1].split("] FAILED")[0] for line in result.outlines if "] FAILED" in line}
    options = ("--storage", "posix", "--scope", "process", "--budget", "all", "--json", "--runs-dir", "other")
    explored = harness(suite, "explore", *options, "--", sys.executable, "-S", "job.py")
    (surface,) = [each for each in msgspec.json.decode(explored, type=Exploration).surfaces if not each.after]
    wrong = [point for state in surface.states if state.outcome is Outcome.INVALID for point in state.points]
    moments = [Moment(model="posix", scope="process", point=point, phase="save") for point in wrong]
    assert failed == {test.id for test in choose("wrong-job", moments, "each", seed=0)} == {TORN}
    result.assert_outcomes(failed=1, passed=surface.kill_points - 1)


def test_ids_are_the_same_in_the_next_session_and_with_workers(suite: pytest.Pytester) -> None:
    first = ids_of(suite, "test_right", "--kill-points", "each")

    second = run(suite, "test_right", "--kill-points", "each", "-n", "2", "-v")

    second.assert_outcomes(passed=len(first))
    assert {line.split("test_right[", 1)[1].rstrip("] ") for line in second.outlines if "PASSED" in line} == set(first)
    assert "right-job:posix:process:start" in first
    assert "right-job:posix:process:save.begin:2:rename:checkpoint.tmp:1" in first


def test_workers_record_once_and_try_each_state_once(suite: pytest.Pytester) -> None:
    result = run(suite, "test_wrong", "--kill-points", "each", "-n", "2", "--storage", "posix,posix-weak")

    states = list(read_trials(exploration_of(suite, "wrong-job") / "tried.jsonl"))
    assert result.parseoutcomes()["failed"] > 1
    assert len({trial.task.state for trial in states}) == len(states) > 5
    recoveries = sum((trial.tried.first is not None) + (trial.tried.second is not None) for trial in states)
    assert (suite.path / "count").stat().st_size == 1 + recoveries
    told = msgspec.json.decode((exploration_of(suite, "wrong-job") / "exploration.json").read_bytes(), type=Exploration)
    assert told.seconds == pytest.approx(told.recorded.seconds + told.judged_seconds)


def test_a_failure_tells_what_must_hold_and_replays(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess(f"test_inner.py::test_wrong[{TORN}]", "--junitxml=out.xml")

    result.assert_outcomes(failed=1)
    says = "`open checkpoint` to `write checkpoint` must be atomic"
    result.stdout.fnmatch_lines(
        [f"E  *{says}", "E *step 2 had been acknowledged, and it went on from scratch", "E *replay: harness explore*"]
    )
    result.stdout.fnmatch_lines(["chaos: wrong-job: invalid: * (those that were named), report *", f"chaos:   posix × process: {says}"])
    (replay,) = {line.split("harness ", 1)[1] for line in result.outlines if "harness explore --replay" in line}
    assert "invalid: posix × process" in harness(suite, *replay.split()).decode()
    properties = {found.get("name"): found.get("value") for found in ET.parse(suite.path / "out.xml").iter("property")}
    assert properties["workload"] == "wrong-job"
    assert properties["verdict"] == "invalid"
    assert Path(properties["run_directory"] or "").is_dir()


def test_one_right_kill_point_passes_alone_and_proves_nothing_of_the_others(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("test_inner.py::test_wrong[wrong-job:posix:process:save.end:1]")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["chaos: wrong-job: unknown: of * kinds of kill points none was judged*"])


def test_a_named_kill_point_renews_the_page_over_all_runs(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess("test_inner.py::test_wrong[wrong-job:posix:process:save.end:1]")
    before = (suite.path / "runs" / "index.html").read_text()

    result = suite.runpytest_subprocess(f"test_inner.py::test_wrong[{TORN}]", "-n", "1")

    result.stdout.fnmatch_lines(["chaos: reports in *index.html"])
    assert "invalid" in (suite.path / "runs" / "index.html").read_text()
    assert "explore-wrong-job" in before
    assert ">invalid<" not in before


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one-process", "workers"])
def test_a_job_all_of_whose_kill_points_were_deselected_is_not_spoken_of(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    chosen = "test_right and not (save or step)"
    result = suite.runpytest_subprocess("-m", "chaos", "-k", chosen, "test_inner.py::test_right", "test_inner.py::test_wrong", *workers)

    assert result.parseoutcomes()["passed"]
    result.stdout.fnmatch_lines(["chaos: right-job: unknown: of * kinds of kill points none was judged*"])
    result.stdout.no_fnmatch_line("chaos: wrong-job: *")
    assert not list((suite.path / "runs").glob("explore-wrong-job/*"))
    assert "wrong-job" not in (suite.path / "runs" / "index.html").read_text()


def test_a_sample_is_one_of_each_kind_and_its_seed_is_told(suite: pytest.Pytester) -> None:
    each, sample = ids_of(suite, "test_right", "--kill-points", "each"), ids_of(suite, "test_right", "--kill-points", "sample")

    result = run(suite, "test_right", "--kill-points", "sample", "--seed", "7")

    result.assert_outcomes(passed=len(sample))
    assert set(sample) < set(each)
    result.stdout.fnmatch_lines(["chaos: kill points: sample by seed 7, storage posix, scope all"])
    result.stdout.fnmatch_lines(["chaos: right-job: valid: * crash states judged, 0 wrong (sample by seed 7, *"])


def test_a_name_may_be_of_a_surface_that_leaves_what_another_leaves(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess(f"test_inner.py::test_wrong[{TORN.replace('process', 'node')}]").assert_outcomes(failed=1)


def test_a_kill_point_that_is_not_there_is_refused_and_leaves_nothing(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("test_inner.py::test_wrong[wrong-job:posix:process:gone:1]")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: not found: *test_wrong*"])
    result.stdout.fnmatch_lines(["chaos: wrong-job:posix:process:gone:1: the job wrong-job has no such kill point now; --collect-only *"])
    assert not list((suite.path / "runs").glob("explore-*/*"))


def test_a_named_kill_point_of_a_job_that_could_not_be_seen_says_why(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("test_inner.py::test_unseen[missing-job:posix:process:start]")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*missing-job:posix:process:start: unknown: *no-such-program*"])


def test_cells_are_the_phases_of_the_jobs_life_on_each_surface(suite: pytest.Pytester) -> None:
    ids = ids_of(suite, "test_wrong", "--kill-points", "cells", "--storage", "posix,posix-weak", "--scope", "node")

    assert {name.rsplit(":", 1)[1] for name in ids} == {"init", "step", "save"}
    assert {name.split(":")[1] for name in ids} == {"posix", "posix-weak"}
    suite.runpytest_subprocess("test_inner.py::test_wrong[wrong-job:posix-weak:node:save]").assert_outcomes(failed=1)


def test_what_was_not_seen_is_an_error_and_never_a_pass(suite: pytest.Pytester) -> None:
    result = run(suite, "test_unseen")

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*NothingProvedError: blind-job:recording: unknown: *"])
    result.stdout.fnmatch_lines(["*NothingProvedError: missing-job:recording: unknown: *no-such-program*"])
    result.stdout.fnmatch_lines(["chaos: blind-job: unknown: *"])


def test_jobs_can_be_those_of_a_configuration_file(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_inner="import pytest\n\n@pytest.mark.chaos\ndef test_job(chaos_kill_point):\n    assert chaos_kill_point.verdict.is_valid"
    )
    (suite.path / "harness.toml").write_text(TOML)

    run(suite, "test_job", "--kill-points-of", "harness.toml").assert_outcomes(failed=1, passed=6)
    result = run(suite, "test_job", "--kill-points-of", "elsewhere.toml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there is no configuration file *elsewhere.toml*"])


def test_a_test_that_names_no_job_where_nobody_brings_any_is_told_so(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_inner="import pytest\n\n@pytest.mark.chaos\ndef test_job(chaos_kill_point):\n    pass")

    result = run(suite, "test_job")

    result.stdout.fnmatch_lines(["*a chaos test names no job of its own, as @pytest.mark.chaos(JOB) does, and no conftest.py implements *"])
    result.stdout.no_fnmatch_line("*chaos_run,*")


def test_a_plain_run_and_one_on_another_target_record_nothing(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess().assert_outcomes(deselected=4)
    suite.runpytest_subprocess("-m", "not chaos").assert_outcomes(deselected=4)
    run(suite, "test_right", "--target", "docker").assert_outcomes(skipped=1)

    assert not (suite.path / "count").exists()
    assert not (suite.path / "runs").exists()


def test_what_was_only_collected_leaves_nothing(suite: pytest.Pytester) -> None:
    assert ids_of(suite, "test_right")

    assert not list((suite.path / "runs").glob("explore-*/*"))
    assert not (suite.path / "runs" / ".kill-points").exists()


def test_of_a_right_job_nothing_stays_but_what_was_found_unless_it_shall(suite: pytest.Pytester) -> None:
    run(suite, "test_right")
    directory = exploration_of(suite, "right-job")
    assert {path.name for path in directory.iterdir()} >= {"exploration.json", "report.html", "verdict.json", "summary.json"}
    assert not {"log", "blobs", "trials", "tried.jsonl"} & {path.name for path in directory.iterdir()}
    assert not (suite.path / "runs" / ".kill-points").exists()

    run(suite, "test_right", "--runs-dir", "kept", "--keep")
    (directory,) = (suite.path / "kept" / "explore-right-job").iterdir()
    assert (directory / "tried.jsonl").exists()


def test_what_a_killed_session_leaves_is_found_and_removed(suite: pytest.Pytester) -> None:
    with subprocess.Popen([sys.executable, "-m", "pytest", "-m", "chaos", "test_inner.py::test_slow"], cwd=suite.path) as session:
        run_id = await_bench(suite)
        assert "removed the plans" not in harness(suite, "clean").decode(), "it lives"
        session.kill()

    printed = harness(suite, "clean").decode()

    assert "removed the plans of its kill points" in printed, printed
    assert "done" in printed, printed
    assert not list((suite.path / "runs" / ".kill-points").iterdir())
    assert not find_scratch_directories(run_id)


def await_bench(suite: pytest.Pytester) -> str:
    """Wait until something is tried; returns the id that all of it carries."""
    end_s = time.monotonic() + 120
    while time.monotonic() < end_s:
        for path in (suite.path / "runs" / ".golden" / "kill-points").glob("*/owner.json"):
            owner = RunDirectory(path.parent).owner()
            if owner is not None and any((found / "w1" / "checkpoints").exists() for found in find_scratch_directories(owner.run_id)):
                return owner.run_id
        time.sleep(0.05)
    raise AssertionError("no state was tried within two minutes")


def test_loading_it_imports_nothing_that_explores(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_inner="""
        import sys

        def test_light():
            assert "harness.pytest_plugin.kill_points.judging" in sys.modules
            assert not [name for name in sys.modules if name == "msgspec" or name.startswith(("harness.explore", "harness.cli", "harness.scenario"))]
        """
    )

    suite.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)
