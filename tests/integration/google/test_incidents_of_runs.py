"""Exports made by real runs: jobs that are right and wrong, hit by what a platform does, and their logs diagnosed.

The local target writes its log in Cloud Logging's shapes, and so does that of containers, which alone have a memory limit; what is read
here is that file alone, out of order and twice.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.history import read_history
from harness.incidents import JobWords, incident_of, read_export, reproduce, timeline_of
from harness.incidents.comparison import compare
from harness.incidents.incident import Incident
from harness.runner import Options, Run, run_scenario
from harness.scenario import Injection, Platform, Scenario, Workload, decode, encode
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution, ExpireTimeout, Kill, Maintenance
from harness.scenario.triggers import AtStep
from harness.store import RunStore
from harness.targets import create
from tests.contract.presence import skip_or_fail_without

ROOT = Path(__file__).resolve().parents[3]
AT_12 = AtStep(step=12)


@dataclass(frozen=True)
class Case:
    """A run, what its log must show, and whether its scenario brings the same about."""

    shows: dict[str, str]
    wrong: str = ""
    injections: tuple[Injection, ...] = ()
    platform: Platform = field(default_factory=lambda: Platform(max_retries=3, grace_s=1.0))
    deadline_s: float = 60.0
    lost_steps: int | None = None
    steps: int = 40
    step_s: float = 0.02
    target: str = "local"


CASES = {
    "an uninterrupted run is healthy": Case({"healthy": "valid"}),
    "maintenance that a right job survives": Case(
        {"healthy": "valid", "preempted": "valid"}, injections=(Injection(fault=Maintenance(), at=AT_12),), lost_steps=0
    ),
    "a kill without notice that it resumes after": Case(
        {"healthy": "valid", "killed-without-notice": "valid"}, injections=(Injection(fault=Kill(), at=AT_12),)
    ),
    "maintenance of a job that does not hear SIGTERM": Case(
        {"no-save-after-sigterm": "invalid", "preempted": "valid"},
        wrong="ignores-sigterm",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        platform=Platform(max_retries=3, grace_s=0.5),
        steps=20,
        step_s=0.2,
    ),
    "a last save that does not fit the grace": Case(
        {"save-did-not-fit-the-grace": "invalid", "preempted": "valid"},
        wrong="saves-too-slowly",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        lost_steps=2,
    ),
    "a job that never looks for its checkpoint": Case(
        {"restarted-from-scratch": "invalid", "preempted": "valid"},
        wrong="starts-from-scratch",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        lost_steps=12,
    ),
    "a job that restores an older checkpoint": Case(
        {"resumed-from-an-older-checkpoint": "invalid", "preempted": "valid"},
        wrong="resumes-from-older",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        lost_steps=5,
    ),
    "a timeout that looks like an interruption": Case(
        {"timed-out": "invalid"}, injections=(Injection(fault=ExpireTimeout(), at=AT_12),), lost_steps=0
    ),
    "an execution that somebody cancels": Case({"cancelled": "invalid"}, injections=(Injection(fault=CancelExecution(), at=AT_12),)),
    "more interruptions than retries": Case(
        {"retries-exhausted": "invalid", "preempted": "valid"},
        injections=(Injection(fault=Maintenance(), at=AtStep(step=4)), Injection(fault=Maintenance(), at=AtStep(step=9), attempts=(1,))),
        platform=Platform(max_retries=1, grace_s=1.0),
    ),
    "a job that meets the same error in every attempt": Case(
        {"failed-by-itself": "invalid", "retries-exhausted": "invalid"}, wrong="crashes", platform=Platform(max_retries=2, grace_s=1.0)
    ),
    "a job that leaves with 0 at SIGTERM": Case(
        {"left-unfinished": "unknown", "preempted": "valid"},
        wrong="exits-zero-at-sigterm",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
    ),
    "a job that hangs when it comes back": Case(
        {"never-resumed": "unknown", "preempted": "valid", "killed-without-notice": "valid"},
        wrong="hangs-in-restore",
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        deadline_s=6.0,
    ),
    "one of two tasks is taken": Case(
        {"healthy": "valid", "preempted": "valid"},
        injections=(Injection(fault=Maintenance(), at=AT_12),),
        platform=Platform(tasks=2, max_retries=3, grace_s=1.0),
        lost_steps=0,
    ),
    "a job that the kernel kills for want of memory": Case(
        {"out-of-memory": "invalid", "retries-exhausted": "invalid"},
        wrong="keeps-too-much",
        platform=Platform(max_retries=1, grace_s=1.0, memory_mib=96),
        target="docker",
    ),
}


def workload(case: Case) -> Workload:
    return Workload(
        name="counter",
        command=("{python}", "tests/integration/google/incident_job.py"),
        steps=case.steps,
        save_every=5,
        environment={"STEPS": str(case.steps), "STEP_SECONDS": str(case.step_s), "SAVE_EVERY": "5", "WRONG": case.wrong},
        layout="text-file",
    )


def run(scenario: Scenario, runs_dir: Path, *, target: str = "local") -> Run:
    clock = SystemClock()
    store = RunStore(runs_dir, clock)
    return run_scenario(scenario, target=lambda: create(target, clock), clock=clock, store=store, options=Options(root=ROOT, keep=True))


def diagnosed(run: Run, *torn: bytes) -> Incident:
    """By an export as it may come: in any order, some entries twice, and with lines that are torn."""
    lines = (run.directory.logs / "entries.jsonl").read_bytes().splitlines()
    random.Random(7).shuffle(lines)
    export = read_export(b"\n".join([*lines, *lines[:5], *torn]))
    assert (export.duplicates, export.malformed_count) == (min(5, len(lines)), len(torn))
    return incident_of(export, timeline_of(export, JobWords()))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs by case, each made once."""
    return {}


@pytest.fixture
def first(request: pytest.FixtureRequest, made: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Run:
    name = request.node.callspec.params["name"]
    case = CASES[name]
    skip_or_fail_without(case.target)
    if name not in made:
        scenario = Scenario(
            name="an-incident-is-made",
            why="a test",
            workload=workload(case),
            platform=case.platform,
            injections=case.injections,
            expects=(Completes(),),
            deadline_s=case.deadline_s,
        )
        made[name] = run(scenario, tmp_path_factory.mktemp("runs"), target=case.target)
    return made[name]


@pytest.mark.parametrize("name", CASES)
def test_the_log_of_a_run_shows_what_was_done_to_it_and_what_it_did_wrong(name, first):
    incident = diagnosed(first)

    found = {diagnosis.kind: str(diagnosis.outcome) for diagnosis in incident.diagnoses}
    assert found == CASES[name].shows, "\n".join(diagnosis.says for diagnosis in incident.diagnoses)
    assert all(diagnosis.evidence and diagnosis.advice for diagnosis in incident.diagnoses)
    assert incident.counts.unknown == 0


@pytest.mark.parametrize(
    ("name", "outcome"), [("an uninterrupted run is healthy", "valid"), ("maintenance that a right job survives", "unknown")]
)
def test_a_torn_line_of_an_interrupted_run_may_tell_what_that_has_cost(name, outcome, first):
    assert str(diagnosed(first, b'{"insertId": "torn').outcome) == outcome


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.lost_steps is not None])
def test_the_steps_that_were_lost_are_those_of_the_run(name, first):
    incident = diagnosed(first)

    assert sum(losses.lost_steps or 0 for losses in incident.losses) == CASES[name].lost_steps


@pytest.mark.parametrize("name", CASES)
def test_attempts_and_ends_are_those_of_the_history(name, first):
    lines = (first.directory.logs / "entries.jsonl").read_bytes()
    timeline = timeline_of(read_export(lines), JobWords())

    history = read_history(first.directory.history_path)
    seen = {
        (event.task, event.attempt, event.exit_code, event.signal) for event in history.events if type(event).__name__ == "AttemptExited"
    }
    read = {
        (story.task, story.number, story.exit[0].exit_code, story.exit[0].signal) for story in timeline.attempts if story.exit is not None
    }
    assert read == {each for each in seen if each[:2] in {place[:2] for place in read}}
    assert timeline.granted.tasks in (None, CASES[name].platform.tasks)


@pytest.mark.parametrize("name", [name for name in CASES if "hangs" not in name])
def test_a_scenario_of_the_same_timing_goes_the_same_way(name, first, tmp_path):
    case = CASES[name]
    lines = (first.directory.logs / "entries.jsonl").read_bytes()
    export = read_export(lines)
    timeline = timeline_of(export, JobWords())
    incident = incident_of(export, timeline)

    made = reproduce(timeline, incident.diagnoses, workload(case))
    again = run(decode(encode(made.scenario), Scenario, document="made"), tmp_path / "runs")
    found = compare(incident, again.directory, JobWords())

    assert found.is_same, found
    assert len(made.scenario.injections) >= len(case.injections)
