"""What a target is told of a scenario, and what it is refused for."""

import sys
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import CapabilityMissingError
from harness.runner.binding import armed_events, belongs_to, fill, inherited, launch_of, refuse_missing_capabilities
from harness.scenario import Injection, LogPatterns, Outside, Platform, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution, FailWrites, Kill, SlowWrites, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnEffect, OnLog
from harness.store import RunDirectory
from tests.unit.runner.fake_target import FakeTarget, StoppingTarget

JOB = Workload(name="job", command=("{python}", "train.py", "--out={checkpoint_dir}", "--seed", "{seed}"), steps=10, directory="jobs")


def scenario(*injections: Injection, workload: Workload = JOB, **fields: object) -> Scenario:
    return Scenario(name="a-job-is-bound", why="a test", workload=workload, injections=injections, expects=(Completes(),), **fields)


def launch(bound: Scenario, root: Path):
    return launch_of(bound, RunDirectory(root / "run"), target=FakeTarget(clock=ManualClock()), run_id="r1", root=root, seed=7, epoch_s=5.0)


def test_a_scenario_that_the_target_can_play_is_accepted():
    refuse_missing_capabilities(scenario(Injection(fault=Kill(), at=AtStep(step=1))), FakeTarget(clock=ManualClock()))


def test_a_fault_that_the_target_cannot_cause_is_refused_by_name():
    cancel = Injection(fault=CancelExecution(), at=AtStep(step=1))
    with pytest.raises(CapabilityMissingError) as caught:
        refuse_missing_capabilities(scenario(Injection(fault=Kill(), at=AtStep(step=1)), cancel), FakeTarget(clock=ManualClock()))
    assert caught.value.target == "fake"
    assert "for 2-cancel-execution" in caught.value.needs
    assert "Cancellable" in str(caught.value)


def test_a_moment_that_the_target_cannot_hold_the_job_at_is_refused():
    at_rename = scenario(Injection(fault=Kill(), at=AtOperation(operation="rename", path="step_*")))
    target = FakeTarget(clock=ManualClock())

    with pytest.raises(
        CapabilityMissingError, match=r"operations that can be stopped at \(OperationStops\) for 1-kill.*the nearest moment is a marker"
    ):
        refuse_missing_capabilities(at_rename, target)
    assert not belongs_to(at_rename, target)

    stopping = StoppingTarget(clock=ManualClock())
    refuse_missing_capabilities(at_rename, stopping)
    assert belongs_to(at_rename, stopping)
    stopping.problem = "no seccomp here"
    with pytest.raises(CapabilityMissingError, match="no seccomp here"):
        refuse_missing_capabilities(at_rename, stopping)


def test_the_operations_that_triggers_name_are_stopped_at_once(tmp_path: Path):
    rename, sync = AtOperation(operation="rename", path="step_*"), AtOperation(operation="sync", path=".")
    twice = scenario(*(Injection(fault=Kill(), at=at, attempts=(number,)) for number, at in enumerate((rename, sync, rename))))
    assert launch(twice, tmp_path).stops == (rename, sync)


def test_placeholders_are_filled(tmp_path: Path):
    text = fill("{python} {checkpoint_dir}/x {seed} {other}", checkpoint_dir=tmp_path, seed=7)
    assert text == f"{sys.executable} {tmp_path}/x 7 {{other}}"


def test_a_launch_holds_what_the_scenario_says(tmp_path: Path):
    platform = Platform(tasks=2, parallelism=1, max_retries=5, timeout_s=30.0, grace_s=4.0)
    bound = launch(scenario(platform=platform), tmp_path)
    checkpoints = tmp_path / "run" / "checkpoints"
    assert bound.command == (sys.executable, "train.py", f"--out={checkpoints}", "--seed", "7")
    assert bound.directory == tmp_path / "jobs"
    assert (bound.run_id, bound.job, bound.epoch_s, bound.steps) == ("r1", "job", 5.0, 10)
    assert (bound.checkpoint_dir, bound.logs_dir) == (checkpoints, tmp_path / "run" / "logs")
    assert bound.journal == tmp_path / "run" / "undo.jsonl"
    assert (bound.tasks, bound.parallelism, bound.max_retries, bound.timeout_s, bound.grace_s) == (2, 1, 5, 30.0, 4.0)
    assert (bound.armed, bound.log_patterns, bound.interpose_storage) == ((), {}, False)


def test_checkpoints_may_lie_below_the_mounted_directory(tmp_path: Path):
    below = Workload(name="job", command=("job",), checkpoints="run/7")
    assert launch(scenario(workload=below), tmp_path).checkpoint_path == tmp_path / "run" / "checkpoints" / "run" / "7"


def test_a_job_inherits_the_caller_s_variables_but_no_other_run_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HARNESS_RUN_ID", "CLOUD_RUN_TASK_INDEX", "MINE", "STEPS"):
        monkeypatch.setenv(name, "caller")
    own = Workload(name="job", command=("job",), environment={"STEPS": "{seed}0", "OUT": "{checkpoint_dir}"})
    environment = launch(scenario(workload=own), tmp_path).environment
    assert environment["MINE"] == "caller"
    assert environment["STEPS"] == "70"
    assert environment["OUT"] == str(tmp_path / "run" / "checkpoints")
    assert not [name for name in environment if name.startswith(("HARNESS_", "CLOUD_RUN_"))]
    assert inherited({"HARNESS_X": "1", "A": "2"}) == {"A": "2"}


def test_the_events_that_triggers_name_are_armed_once(tmp_path: Path):
    triggers = (
        AtStep(step=3),
        AtStep(step=9),
        AtMarker(event="save.begin", when="before"),
        AtMarker(event="step"),
        OnLog(pattern="x"),
        AfterSeconds(seconds=1.0),
        OnEffect(of="1-kill"),
    )
    bound = scenario(*(Injection(fault=Kill(), at=at) for at in triggers))
    assert armed_events(bound) == ("save.begin:before", "step:after")
    silent = Workload(name="job", command=("job",), speaks_protocol=False)
    assert launch(scenario(Injection(fault=Kill(), at=AtStep(step=3)), workload=silent), tmp_path).armed == ()


@pytest.mark.parametrize(("fault", "is_interposed"), [(FailWrites(), True), (SlowWrites(), True), (Terminate(), False)])
def test_storage_is_interposed_where_it_shall_fail(tmp_path: Path, fault: object, *, is_interposed: bool):
    bound = scenario(Injection(fault=fault, at=AtStep(step=1)))
    assert launch(bound, tmp_path).interpose_storage is is_interposed


def test_patterns_that_are_there_are_passed_on(tmp_path: Path):
    patterns = LogPatterns(step=r"step (?P<step>\d+)", sigterm="SIGTERM")
    silent = Workload(name="job", command=("job",), speaks_protocol=False, outside=Outside(logs=patterns))
    assert launch(scenario(workload=silent), tmp_path).log_patterns == {"step": r"step (?P<step>\d+)", "sigterm": "SIGTERM"}


class ContainerTarget(FakeTarget):
    """A target whose jobs run in containers."""

    def interpreter(self) -> str:
        return "python3"

    def mounted_at(self, checkpoint_dir: Path) -> str:
        return "/mounted"


def test_in_a_container_the_placeholders_stand_for_what_is_there_and_nothing_of_the_caller_is_inherited(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_CALLER", "1")
    job = Workload(name="job", command=("{python}", "--out={checkpoint_dir}"), environment={"AT": "{checkpoint_dir}/x"}, image="mine:1")

    bound = launch_of(
        scenario(workload=job, platform=Platform(memory_mib=64)),
        RunDirectory(tmp_path / "run"),
        target=ContainerTarget(clock=ManualClock()),
        run_id="r1",
        root=tmp_path,
        seed=7,
        epoch_s=0.0,
    )

    assert bound.command == ("python3", "--out=/mounted")
    assert bound.environment == {"AT": "/mounted/x"}
    assert (bound.image, bound.memory_mib) == ("mine:1", 64)


@pytest.mark.parametrize(("problem", "is_refused"), [(None, True), ("no such controller", True), ("", False)])
def test_a_memory_limit_needs_a_target_that_can_limit_memory(problem, is_refused):
    class Limiting(FakeTarget):
        def memory_problem(self) -> str:
            return problem

    target = (FakeTarget if problem is None else Limiting)(clock=ManualClock())
    limited = scenario(platform=Platform(memory_mib=64))
    assert belongs_to(limited, target) is not is_refused
    if not is_refused:
        refuse_missing_capabilities(limited, target)
        return
    with pytest.raises(CapabilityMissingError, match="MemoryLimiter"):
        refuse_missing_capabilities(limited, target)


def test_how_many_tasks_run_at_once_is_refused_where_a_queue_decides_it(monkeypatch):
    monkeypatch.setattr("harness.runner.binding.QueueHost", FakeTarget)  # it has a queue then
    target = FakeTarget(clock=ManualClock())
    two_of_three = scenario(platform=Platform(tasks=3, parallelism=2), tags=("cluster",))

    assert not belongs_to(two_of_three, target)
    with pytest.raises(CapabilityMissingError, match=r"platform\.parallelism = 2.*queue"):
        refuse_missing_capabilities(two_of_three, target)
    refuse_missing_capabilities(scenario(platform=Platform(tasks=3), tags=("cluster",)), target)
