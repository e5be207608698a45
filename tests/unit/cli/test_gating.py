"""A gate as it runs: its budget, and what an older result says of what is asked for now."""

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, cast

import msgspec
import pytest
from rich.console import Console

from harness.cli.batch import Batch
from harness.cli.exits import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_USAGE
from harness.cli.gating import Course, Gate, Ways, due_of
from harness.cli.project_plan import AskedOfProject, Project, gpus_of
from harness.cli.running import Ran
from harness.cli.worker import Refused
from harness.clock import ManualClock
from harness.gate.outcome import GateOutcome
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Exposure, Limits, Plan, PlannedScenario
from harness.verdict import Outcome
from tests.unit.gate.results import NAME, config, measured, run, scenario

SCENARIO = Scenario(name=NAME, why="a test", workload=Workload(name="job", command=("no-such-program",)), expects=(Completes(),))


def gate(**tables: object) -> Gate:
    return Gate(config=config(**tables), target="gcp", place="gcp", chosen=[SCENARIO], accepted=None)


def test_a_budget_of_no_gpu_hours_begins_nothing_that_holds_a_gpu(tmp_path: Path):
    ways = Ways(root=tmp_path, runs_dir=tmp_path / "runs", keep=False, jobs=1, as_json=False, gpus={NAME: 1})
    course = Course(gate(budget={"gpu_hours": 0}), ways, ManualClock())
    outcome = course.run()

    assert outcome.judged.ruling == "unknown"
    assert outcome.judged.scenarios[0].reasons == ("1 of 1 run not made: the budget of 0 GPU-hours is used up",)
    assert course.exit_code == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["gate.json"]
    assert msgspec.json.decode((course.directory / "gate.json").read_bytes())["judged"]["ruling"] == "unknown"


def test_what_cannot_be_written_is_judged_and_told_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ways = Ways(root=tmp_path, runs_dir=tmp_path / "runs", keep=False, jobs=1, as_json=False, gpus={NAME: 1})
    course = Course(gate(budget={"gpu_hours": 0}), ways, ManualClock())
    course.directory.rmdir()

    assert course.run().judged.ruling == "unknown"
    assert "gate.json: No such file or directory" in str(course.failure)


def test_the_gpus_of_a_run_are_those_of_all_its_tasks_as_the_plan_says():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    place = Place(project="p", region="r", bucket="b", job="j")
    cost = Exposure(executions=1, tasks=2, attempts=4, timeout_s=60.0, gpus=4)
    planned = PlannedScenario(name=NAME, digest="d", seed=0, exposure=cost, duration_s=60.0)
    plan = Plan(made_at=now, expires_at=now, place=place, limits=Limits(), scenarios=(planned,), resources=())
    asked = AskedOfProject(options={}, limits={}, config=None, plans=False, apply=None, plan_file=Path("plan.json"))

    assert gpus_of(Project(place=place, limits=Limits(), applied=plan, asked=asked)) == {NAME: 8}
    assert gpus_of(None) == {}


# ---- an older result ----


def older(digest: str = due_of(config(), SCENARIO).digest):
    return msgspec.structs.replace(scenario(run()), digest=digest)


def test_an_older_result_of_the_same_scenario_is_taken_as_it_is():
    assert gate().read(measured(older())).scenarios == (older(),)


def test_what_an_older_result_does_not_have_or_had_otherwise_was_not_run():
    for found, why in ((measured(), "does not have it"), (measured(older(digest="e")), "is of another scenario of that name")):
        (read,) = gate().read(found).scenarios
        assert (read.name, read.runs) == (NAME, ())
        assert why in read.undone


def test_an_older_result_with_fewer_runs_than_are_due_is_unknown():
    mine = gate(gate={"all": True, "repeats": 3})
    outcome = mine.judge(mine.read(measured(older())))

    assert outcome.judged.ruling == "unknown"
    assert outcome.judged.scenarios[0].reasons == ("2 of 3 runs not made: the result lacks 2 runs of seed 0",)


def of_seeds(*seeds: int, **fields):
    runs = [run(seed=seed, **fields) for seed in seeds]
    return msgspec.structs.replace(older(), seeds=seeds, runs=tuple(runs))


def test_an_older_result_of_other_seeds_proves_nothing_of_these():
    mine = gate(gate={"all": True, "seeds": [7, 0]})
    outcome = mine.judge(mine.read(measured(of_seeds(0, 1))))

    assert outcome.judged.ruling == "unknown"
    assert outcome.judged.scenarios[0].reasons == ("1 of 2 runs not made: the result lacks 1 run of seed 7",)
    assert [each.seed for each in outcome.measured.scenarios[0].runs] == [0]


def test_of_an_older_result_only_the_runs_with_seeds_that_are_due_count():
    more = of_seeds(0, 7, 7)
    bad = msgspec.structs.replace(more, runs=(run(Outcome.INVALID, seed=0), *more.runs[1:]))
    mine = gate(gate={"all": True, "seeds": [7]})
    outcome = mine.judge(mine.read(measured(bad)))

    assert outcome.judged.ruling == "pass"
    assert outcome.measured.scenarios[0].seeds == (7, 7)


def test_an_older_result_that_lacks_a_run_of_its_own_is_unknown():
    cut = msgspec.structs.replace(of_seeds(0, 7), runs=(run(seed=0),), undone="interrupted")
    mine = gate(gate={"all": True, "seeds": [0, 7]})

    assert mine.judge(mine.read(measured(cut))).judged.scenarios[0].reasons == ("1 of 2 runs not made: interrupted",)


# ---- what could not be run ----


class OverBatch:
    """A batch that is over, as far as a gate asks."""

    lasted_s: ClassVar[dict[str, float]] = {}
    waited_s = 0.0
    not_run: ClassVar[list[str]] = []
    unended: ClassVar[list[str]] = []

    def __init__(self, *, is_interrupted: bool) -> None:
        self.is_interrupted = is_interrupted
        self.ended_because = ""


def course_of(monkeypatch: pytest.MonkeyPatch, root: Path, refused: Refused, *, is_interrupted: bool) -> tuple[Course, GateOutcome]:
    """A gate whose one round ended with a refusal."""
    batch = OverBatch(is_interrupted=is_interrupted)
    ran = Ran(batch=cast("Batch", batch), results=[refused], console=Console(quiet=True), seconds=0.0, index=root)
    monkeypatch.setattr("harness.cli.gating.run_work", lambda *_arguments, **_named: ran)
    ways = Ways(root=root, runs_dir=root / "runs", keep=False, jobs=1, as_json=False)
    course = Course(gate(), ways, ManualClock())
    return course, course.run()


@pytest.mark.parametrize("code", [EXIT_USAGE, EXIT_BROKEN])
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_run_that_is_refused_is_unknown_and_its_exit_code_is_the_gates(monkeypatch, tmp_path: Path, code: int, is_interrupted: bool):
    refused = Refused(scenario=NAME, exit_code=code, message="it broke")
    course, outcome = course_of(monkeypatch, tmp_path, refused, is_interrupted=is_interrupted)
    (found,) = outcome.measured.scenarios[0].runs

    assert (found.verdict, found.reasons) == (Outcome.UNKNOWN, ("it broke",))
    assert all(figure.missing for figure in found.figures.values())
    assert outcome.judged.ruling == "unknown"
    assert course.exit_code == (EXIT_INTERRUPTED if is_interrupted else code)


def test_a_run_that_an_interrupt_has_ended_was_not_made(monkeypatch, tmp_path: Path):
    refused = Refused(scenario=NAME, exit_code=EXIT_INTERRUPTED, message="interrupted")
    course, outcome = course_of(monkeypatch, tmp_path, refused, is_interrupted=True)

    assert outcome.judged.scenarios[0].reasons == ("1 of 1 run not made: interrupted",)
    assert course.exit_code == EXIT_INTERRUPTED
