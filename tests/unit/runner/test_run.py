"""A scenario from binding to verdict, and the same run judged again from what it left."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.capabilities import Launch
from harness.clock import ManualClock
from harness.errors import CapabilityMissingError, HistoryCorruptError, InvalidDocumentError, StoreError
from harness.history import Event, FaultFailed, GoldenKnown
from harness.runner import Options, Run, check_run, run_scenario
from harness.runner.replay import replay_script
from harness.scenario import Expectation, Injection, Scenario, Workload
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import CancelExecution, Kill
from harness.scenario.triggers import AtStep
from harness.store import RunDirectory, RunStore
from harness.verdict import Outcome, Verdict
from tests.unit.runner.fake_target import FakeTarget

JOB = Workload(name="job", command=("job",), steps=10, save_every=5, layout="text-file", sources=("train.py",))
KILL = Injection(fault=Kill(), at=AtStep(step=7))
PROMISES: tuple[Expectation, ...] = (
    Completes(),
    ResumesFromNewestDurable(lost_steps_max=5),
    BitExactResume(),
    ExactlyOnceData(),
    WithinRetries(attempts_max=2),
    SavesAtCadence(every=5),
)


class Bench:
    """Runs scenarios on fake targets, each a fresh one."""

    def __init__(self, root: Path) -> None:
        (root / "train.py").write_text("print('training')\n")
        self.root = root
        self.clock = ManualClock()
        self.store = RunStore(root / "runs", self.clock)
        self.targets: list[FakeTarget] = []
        self.make: Callable[[], FakeTarget] = lambda: FakeTarget(clock=self.clock)

    def target(self) -> FakeTarget:
        self.targets.append(self.make())
        return self.targets[-1]

    def run(self, *injections: Injection, expects: tuple[Expectation, ...] = PROMISES, **options: object) -> Run:
        scenario = Scenario(name="a-job-is-run", why="a test", workload=JOB, injections=injections, expects=expects)
        chosen = Options(root=self.root, seed=3, **options)
        return run_scenario(scenario, target=self.target, clock=self.clock, store=self.store, options=chosen)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_right_job_is_valid_and_everything_lies_in_its_directory(bench: Bench):
    run = bench.run(KILL)
    assert run.verdict.outcome is Outcome.VALID, run.explain()
    assert run.seed == 3
    names = {path.name for path in run.directory.path.iterdir()}
    assert names == {
        "owner.json", "scenario.json", "schedule.json", "history.jsonl", "golden.jsonl", "undo.jsonl", "verdict.json", "fidelity.json",
        "checkpoints.manifest", "logs", "replay.sh",
    }  # fmt: skip
    assert f"--seed 3 --root {bench.root.resolve()}" in run.directory.replay_path.read_text()
    assert msgspec.json.decode(run.directory.verdict_path.read_bytes(), type=Verdict) == run.verdict


class ToldTarget(FakeTarget):
    """Begins nothing but a scenario that it was told of, as a project with a plan does."""

    scenario: str = ""

    def check_scenario(self, scenario: Scenario, launch: Launch) -> None:
        self.scenario = scenario.name

    def start(self, launch: Launch) -> None:
        assert self.scenario, "nobody has said which scenario begins"
        super().start(launch)


def test_every_target_is_told_which_scenario_it_plays_also_that_of_an_uninterrupted_run(bench: Bench):
    bench.make = lambda: ToldTarget(clock=bench.clock)
    assert bench.run(KILL).verdict.outcome is Outcome.VALID
    assert [target.scenario for target in bench.targets] == ["a-job-is-run", *["uninterrupted-run-of-job"] * 2]


def test_a_run_on_an_emulator_of_its_own_is_made_again_on_such_a_one(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    scenario = bench.run().scenario
    assert "--emulator" not in replay_script(scenario, target="gcp", seed=0, root=bench.root)
    monkeypatch.setenv("HARNESS_EMULATED_SESSION", "1")
    assert '--emulator "$here" "$@"' in replay_script(scenario, target="gcp", seed=0, root=bench.root)
    assert "--emulator" not in replay_script(scenario, target="local", seed=0, root=bench.root)


def test_checkpoints_are_kept_where_they_are_wanted_or_tell_what_went_wrong(bench: Bench):
    assert bench.run(KILL, keep=True).directory.checkpoints.is_dir()
    assert bench.run(KILL, expects=(WithinRetries(attempts_max=1),)).directory.checkpoints.is_dir()
    assert not bench.run(KILL, expects=(Completes(),)).directory.checkpoints.exists()


def test_a_broken_promise_is_explained_with_its_evidence(bench: Bench):
    run = bench.run(KILL, expects=(Completes(), WithinRetries(attempts_max=1)))
    assert run.verdict.outcome is Outcome.INVALID
    assert run.explain().splitlines()[:2] == [
        "a-job-is-run: invalid",
        "  within-retries: task 0 took 2 attempts, 1 are promised",
    ]
    assert run.explain().endswith(f"run: {run.directory.path}")


def test_a_run_is_judged_again_from_what_it_left(bench: Bench):
    run = bench.run(KILL)
    again = check_run(run.directory)
    assert (again.scenario, again.verdict) == (run.scenario, run.verdict)


def test_what_cannot_be_read_is_an_error_that_says_so(bench: Bench):
    directory = bench.run(KILL).directory
    directory.history_path.write_bytes(directory.history_path.read_bytes() + b"garbage\n")
    with pytest.raises(HistoryCorruptError, match="not an event"):
        check_run(directory)
    directory.history_path.unlink()
    with pytest.raises(StoreError, match="read the history"):
        check_run(directory)
    directory.scenario_path.write_bytes(b"{}")
    with pytest.raises(InvalidDocumentError):
        check_run(directory)


def test_a_fault_that_could_not_act_makes_the_run_unknown(bench: Bench):
    bench.make = lambda: FakeTarget(clock=bench.clock, absent="nobody is there")
    run = bench.run(KILL, expects=(Completes(),))
    assert [event for event in run.history.events if isinstance(event, FaultFailed)]
    assert run.verdict.outcome is Outcome.UNKNOWN
    assert "nobody is there" in run.explain()


def test_a_fault_that_the_target_cannot_cause_is_refused_before_anything_starts(bench: Bench):
    with pytest.raises(CapabilityMissingError):
        bench.run(Injection(fault=CancelExecution(), at=AtStep(step=3)))
    assert [target.asked for target in bench.targets] == [[]]
    assert not bench.store.root.exists()


def test_what_the_target_can_tell_to_be_wrong_is_refused_before_any_run_and_any_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    asked: list[Launch] = []

    def refuse(_self: FakeTarget, launch: Launch) -> None:
        asked.append(launch)
        raise InvalidDocumentError(document="job", field="cluster.manifest", problem="is wrong")

    monkeypatch.setattr(FakeTarget, "check_launch", refuse, raising=False)
    monkeypatch.setattr(FakeTarget, "take_turn", lambda *_: pytest.fail("it has waited"), raising=False)

    with pytest.raises(InvalidDocumentError, match=r"cluster\.manifest: is wrong"):
        bench.run(KILL)

    assert [(launch.job, launch.command, launch.root) for launch in asked] == [("job", ("job",), bench.root.resolve())]
    assert [target.asked for target in bench.targets] == [[]]
    assert not bench.store.root.exists()


def test_what_a_scenario_names_and_the_target_does_not_have_is_refused_before_any_run_too(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def refuse(_self: FakeTarget, scenario: Scenario, launch: Launch) -> None:
        raise InvalidDocumentError(document=scenario.name, field="injections[0].fault.pool", problem=f"is not there for {launch.job}")

    monkeypatch.setattr(FakeTarget, "check_scenario", refuse, raising=False)

    with pytest.raises(InvalidDocumentError, match=r"fault\.pool: is not there for job"):
        bench.run(KILL)

    assert [target.asked for target in bench.targets] == [[]]
    assert not bench.store.root.exists()


def test_the_uninterrupted_run_is_made_twice_and_then_kept(bench: Bench):
    bench.run(KILL)
    assert len(bench.targets) == 3
    bench.run(KILL)
    bench.run(KILL, expects=(Completes(), ExactlyOnceData()))
    assert len(bench.targets) == 5
    assert bench.run(KILL, expects=(Completes(),)).verdict.is_valid
    assert len(bench.targets) == 6


def test_a_change_of_the_job_is_another_job(bench: Bench):
    bench.run(KILL)
    (bench.root / "train.py").write_text("print('training differently')\n")
    bench.run(KILL)
    assert len(bench.targets) == 6


def test_a_job_that_does_not_repeat_itself_is_unknown(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    add = FakeTarget._add

    def add_of_its_own(self: FakeTarget, kind: type[Event], **fields: object) -> None:
        if "digests" in fields:
            fields["digests"] = {"step": f"{fields['step']}-{bench.targets.index(self)}"}
        add(self, kind, **fields)

    monkeypatch.setattr(FakeTarget, "_add", add_of_its_own)
    run = bench.run(KILL, expects=(Completes(), BitExactResume()))
    known = next(event for event in run.history.events if isinstance(event, GoldenKnown))
    assert not known.equal
    assert "two uninterrupted runs differ" in known.detail
    assert run.verdict.outcome is Outcome.UNKNOWN


def test_a_job_that_does_not_end_when_left_alone_is_not_run_again_and_says_why(bench: Bench):
    bench.make = lambda: FakeTarget(clock=bench.clock, silent_from=3)
    seen: list[str] = []

    class Listener:
        def saw(self, scenario: Scenario, _events: list[Event]) -> None:
            seen.append(scenario.name)

    run = bench.run(KILL, expects=(Completes(), BitExactResume()), progress=Listener())

    assert [target.asked[:1] for target in bench.targets] == [[], ["start"]]
    assert run.verdict.outcome is Outcome.UNKNOWN
    first = run.verdict.worst()[0].reason
    assert first.startswith(
        "0 of 1 faults landed: no execution began: the uninterrupted run first itself is invalid: the run had to be ended"
    )
    assert "deadline" in first
    assert "so the scenario itself was not run; see .golden/job-" in first
    assert seen[-1] == "a-job-is-run"
    assert run.directory.golden_path.exists()
    assert check_run(run.directory).verdict == run.verdict


def test_the_caller_is_told_of_the_directory_before_the_run_and_of_golden_runs_by_name(bench: Bench):
    opened: list[RunDirectory] = []
    scenarios: list[str] = []

    class Listener:
        def saw(self, scenario: Scenario, _events: list[Event]) -> None:
            if not scenarios or scenarios[-1] != scenario.name:
                scenarios.append(scenario.name)
            assert bool(opened) == (scenario.name == "a-job-is-run")

    run = bench.run(KILL, opened=opened.append, progress=Listener())
    assert [directory.path for directory in opened] == [run.directory.path]
    assert scenarios == ["uninterrupted-run-of-job", "a-job-is-run"]


def test_an_interrupted_run_has_no_verdict_and_can_be_judged(bench: Bench):
    def interrupt(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    opened: list[RunDirectory] = []
    bench.make = lambda: FakeTarget(clock=bench.clock, before_poll=interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.run(KILL, expects=(Completes(),), opened=opened.append)
    assert not opened[0].is_over()
    assert check_run(opened[0]).verdict.outcome is Outcome.UNKNOWN
