"""``chaos_schedule`` in tests whose schedules Hypothesis draws."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.history import FaultObserved, FaultRequested
from harness.pytest_plugin.coverage import COVERAGE, cover
from harness.scenario import Injection, Schedule, Workload
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.verdict import Outcome

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

SUITE = f"""
import pytest
from hypothesis import given, settings

from harness.scenario import Injection, Scenario, Schedule, Workload
from harness.scenario.expectations import Completes, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.strategies import kill_schedules

JOB = Workload(
    name="job", command=("{{python}}", "-m", "workloads.counter.train"), steps=10, save_every=5, layout="text-file", directory={str(ROOT)!r},
    sources=("workloads/counter",), environment={{"STEPS": "10", "STEP_SECONDS": "0", "SAVE_EVERY": "5"}},
)

def promise(attempts_max):
    return Scenario(name="a-job-is-hit", why="a test", workload=JOB, expects=(Completes(), WithinRetries(attempts_max=attempts_max)))

def at(step):
    return Schedule(injections=(Injection(fault=Kill(), at=AtStep(step=step)),))

@pytest.mark.chaos
@settings(max_examples=3, deadline=None)
@given(schedule=kill_schedules(JOB, max_faults=2))
def test_drawn(chaos_schedule, schedule):
    run = chaos_schedule(promise(3), schedule)
    assert run.verdict.is_valid, run.explain()

@pytest.mark.chaos
def test_wrong(chaos_schedule):
    run = chaos_schedule(promise(1), at(7))
    assert run.verdict.is_valid, run.explain()

@pytest.mark.chaos
def test_never(chaos_schedule):
    chaos_schedule(promise(2), at(99))

@pytest.mark.chaos
def test_same(chaos_schedule):
    assert chaos_schedule(promise(2), at(3)).is_remembered
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_inner=SUITE)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-m", "chaos", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


def test_what_is_drawn_runs_in_a_fixture_that_hypothesis_does_not_mind(suite: pytest.Pytester) -> None:
    run(suite, "-k", "drawn").assert_outcomes(passed=1)


def test_what_was_hit_and_what_is_left_is_told_at_the_end(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "wrong or same", "--runs-dir", "out")
    result.stdout.fnmatch_lines(["chaos: job: 1 of 13 cells hit; left: init x process x all x first attempt; *"])


def test_workers_tell_together_what_was_hit(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "wrong or drawn", "--runs-dir", "out", "-n", "2")
    result.stdout.fnmatch_lines(["chaos: job: * cells hit; left: *"])


def test_where_no_schedule_ran_nothing_is_told_of_cells(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "nothing", "--runs-dir", "out")
    result.stdout.no_fnmatch_line("*cells hit*")


@pytest.mark.parametrize(("outcome", "cells"), [(Outcome.VALID, 1), (Outcome.INVALID, 1), (Outcome.UNKNOWN, 0)], ids=str)
def test_what_proved_nothing_has_hit_nothing(outcome: Outcome, cells: int) -> None:
    config = SimpleNamespace(stash=pytest.Stash())
    config.stash[COVERAGE] = {}
    job = Workload(name="job", command=("job",), steps=20)
    hit = (FaultRequested(t_s=1.0, injection="1-kill", fault="kill"), FaultObserved(t_s=1.1, injection="1-kill", evidence="gone"))
    judged = SimpleNamespace(
        scenario=SimpleNamespace(workload=job), verdict=SimpleNamespace(outcome=outcome), history=SimpleNamespace(events=hit)
    )

    cover(config, job, Schedule(injections=(Injection(fault=Kill(), at=AtStep(step=1)),)), judged)

    assert len(config.stash[COVERAGE]["job"].covered) == cells


def test_a_failure_tells_its_smallest_schedule_and_how_to_replay_it(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "wrong", "--runs-dir", "out")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*smallest: 1 of 1 faults*reproduces 5 of 5*", "*replay: harness replay */out/.failures/a-job-is-hit-*/schedule.json*"]
    )
    assert len(list((suite.path / "out" / ".failures").glob("*/test_*.py"))) == 1


def test_what_proved_nothing_is_no_pass(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "never")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NothingProvedError*"])


def test_verdicts_are_remembered_from_one_session_to_the_next(suite: pytest.Pytester) -> None:
    run(suite, "-k", "same").assert_outcomes(failed=1)
    run(suite, "-k", "same").assert_outcomes(passed=1)


def test_a_target_that_is_not_here_is_a_skip(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    run(suite, "-k", "same", "--target", "docker").assert_outcomes(skipped=1)


def test_a_plain_run_kills_nothing(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(deselected=4)


def test_settings_for_functions_are_refused_in_words_before_a_job_runs(suite: pytest.Pytester) -> None:
    by_id = suite.runpytest_subprocess("test_inner.py::test_drawn", "-p", "no:cacheprovider")
    by_id.assert_outcomes(failed=1)
    by_id.stdout.fnmatch_lines(["*NothingProvedError: Hypothesis's own profile '*' is in force, *--chaos-profile ci*"])
    assert not list((suite.path / "runs").glob("a-job-is-hit/*"))


def test_what_proved_nothing_is_told_as_that_whoever_drew_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_inner=SUITE
        + """
from hypothesis import strategies as st

@pytest.mark.chaos
@given(schedule=st.just(at(99)))
def test_drawn_never(chaos_schedule, schedule):
    chaos_schedule(promise(2), schedule)
"""
    )
    result = run(suite, "-k", "drawn_never")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NothingProvedError: a-job-is-hit: unknown*"])
    result.stdout.no_fnmatch_line("*FlakyFailure*")
    result.stdout.no_fnmatch_line("*Unreliable*")
