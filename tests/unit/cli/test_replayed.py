"""What is run again is read from whatever was written down."""

import json
from pathlib import Path

import msgspec
import pytest

from harness.cli.replayed import case_of_run, read_asked, said_of
from harness.cli.worker import Finished
from harness.errors import InvalidDocumentError, UsageError
from harness.explore.schedules.cases import Case
from harness.explore.schedules.failures import failure_of, write_failure
from harness.history import RunOpened
from harness.report import Summary
from harness.scenario import Injection, Platform, Scenario, Schedule, Workload, encode
from harness.scenario.expectations import Completes
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.store import RunDirectory
from harness.verdict import Finding, Outcome, Verdict

KILL = Injection(fault=Kill(), at=AtStep(step=3))
SCENARIO = Scenario(
    name="a-job-is-killed",
    why="a test",
    workload=Workload(name="job", command=("job",)),
    platform=Platform(max_retries=1),
    injections=(KILL,),
    expects=(Completes(),),
)


HEADER = RunOpened(t_s=0.0, schema=1, run_id="r", scenario="s", target="docker", seed=7, opened_at="2026-01-31")


def run_in(path: Path, history: bytes) -> RunDirectory:
    run = RunDirectory(path)
    run.scenario_path.write_bytes(encode(SCENARIO))
    run.schedule_path.write_bytes(encode(SCENARIO.schedule))
    run.history_path.write_bytes(history)
    return run


def test_a_scenario_is_itself(tmp_path: Path):
    path = tmp_path / "scenario.json"
    path.write_bytes(encode(SCENARIO))
    assert read_asked(path).case == Case(scenario=SCENARIO)


def test_a_failure_is_run_where_and_with_the_seed_that_it_was_seen(tmp_path: Path):
    case = Case(scenario=SCENARIO, target="docker", seed=7)
    path = write_failure(failure_of(case, ("completes",), (5, 5)), tmp_path)
    assert read_asked(path).case == case
    assert read_asked(path, seed=3).case == msgspec.structs.replace(case, seed=3)


def test_the_faults_of_a_run_are_run_on_the_job_beside_them(tmp_path: Path):
    other = msgspec.structs.replace(KILL, at=AtStep(step=9))
    (tmp_path / "scenario.json").write_bytes(encode(SCENARIO))
    (tmp_path / "schedule.json").write_bytes(encode(Schedule(injections=(other,))))
    assert read_asked(tmp_path / "schedule.json").case.scenario == msgspec.structs.replace(SCENARIO, injections=(other,))


@pytest.mark.parametrize("name", ["schedule.json", "scenario.json"])
def test_what_lies_in_a_run_is_run_where_it_ran_and_by_its_seed(tmp_path: Path, name: str):
    as_it_ran = Case(scenario=SCENARIO, target="docker", seed=7)
    run = run_in(tmp_path, msgspec.json.encode(HEADER) + b"\nwhatever follows\n")

    assert read_asked(run.path / name).case == as_it_ran
    assert case_of_run(run) == as_it_ran
    assert read_asked(run.path / name, seed=3).case == case_of_run(run, seed=3) == msgspec.structs.replace(as_it_ran, seed=3)


def test_where_the_history_says_no_seed_it_is_asked_for(tmp_path: Path):
    run = run_in(tmp_path, b"no header\n")
    for read in (lambda: read_asked(run.schedule_path), lambda: case_of_run(run)):
        with pytest.raises(UsageError, match="give it with --seed"):
            read()
    assert read_asked(run.schedule_path, seed=3).case == case_of_run(run, seed=3) == Case(scenario=SCENARIO, seed=3)


def test_faults_that_are_none_of_the_job_beside_them_are_refused(tmp_path: Path):
    (tmp_path / "scenario.json").write_bytes(encode(SCENARIO))
    (tmp_path / "schedule.json").write_bytes(encode(Schedule(injections=(msgspec.structs.replace(KILL, attempts=(4,)),))))
    with pytest.raises(InvalidDocumentError, match=r"injections: injections\[0\]\.attempts is 4.*scenario\.json"):
        read_asked(tmp_path / "schedule.json")


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps({"injections": []}), json.dumps({"schedule": {}})])
def test_what_is_none_of_these_is_refused(tmp_path: Path, text: str):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InvalidDocumentError, match=r"x\.json"):
        read_asked(tmp_path / "x.json")


def finished(directory: Path, outcome: Outcome, checker: str = "completes") -> Finished:
    findings = (Finding(checker=checker, outcome=outcome, reason="so it is"),)
    (directory / "verdict.json").write_bytes(msgspec.json.encode(Verdict(outcome=outcome, findings=findings)))
    summary = Summary(
        scenario="a-job-is-killed", outcome=str(outcome), reasons=(), faults_landed=1, faults_declared=1, attempts=1, lost_steps=None,
        recovery_s=None, margin_s=None, wall_s=1.0, run=str(directory), opened_at="", target="local", seed=0, tags=(),
    )  # fmt: skip
    return Finished(scenario="a-job-is-killed", summary=summary)


@pytest.mark.parametrize(
    ("reproduced", "outcome", "checker", "lines"),
    [
        ((2, 5), Outcome.VALID, "", ["it failed in 2 of 5 runs as: completes; one valid run proves little"]),
        ((5, 5), Outcome.VALID, "", ["it failed in 5 of 5 runs as: completes"]),
        ((0, 0), Outcome.VALID, "", ["it failed as: completes; nobody has tried how often it comes; one valid run proves little"]),
        ((2, 5), Outcome.INVALID, "completes", ["it failed in 2 of 5 runs as: completes", "it fails as before"]),
        ((2, 5), Outcome.INVALID, "exit-codes", ["it failed in 2 of 5 runs as: completes", "it fails in another way: exit-codes"]),
        ((2, 5), Outcome.UNKNOWN, "completes", ["it failed in 2 of 5 runs as: completes"]),
    ],
)
def test_a_replay_of_a_failure_tells_how_often_it_came_and_whether_it_is_the_same(
    tmp_path: Path, reproduced: tuple[int, int], outcome: Outcome, checker: str, lines: list[str]
):
    failure = failure_of(Case(scenario=SCENARIO), ("completes",), reproduced)
    assert said_of(failure, [finished(tmp_path, outcome, checker or "completes")]) == lines
