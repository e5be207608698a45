"""A schedule is run once; what fails is made small, counted and written once for each way to fail."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from harness.clock import ManualClock
from harness.errors import StoreError
from harness.explore.schedules import ScheduleRunner, read_failure
from harness.runner import Run
from harness.scenario import Injection, Scenario, Schedule, Workload
from harness.scenario.expectations import Completes, WithinRetries
from harness.scenario.faults import Kill, Terminate
from harness.scenario.rules import RefusedValueError
from harness.scenario.triggers import AtMarker, AtStep
from harness.store import RunStore
from harness.verdict import Outcome
from tests.unit.runner.fake_target import FakeTarget

JOB = Workload(name="job", command=("job",), steps=10, save_every=5, layout="text-file")
BOOT = AtMarker(event="boot")
KILL = Injection(fault=Kill(), at=AtStep(step=7))


def promise(attempts_max: int) -> Scenario:
    return Scenario(
        name="a-job-is-hit", why="a test", workload=JOB, expects=(Completes(), WithinRetries(attempts_max=attempts_max)), deadline_s=20.0
    )


RIGHT, WRONG = promise(4), promise(1)


@dataclass
class Stand:
    """A runner whose jobs run in memory.

    Attributes:
        made: The runs that were made.
        change: Changes the target of the nth run, from 1.
    """

    root: Path
    made: list[Run] = field(default_factory=list)
    change: Callable[[int, FakeTarget], None] = lambda _number, _target: None
    targets: int = 0

    def runner(self, **options: int) -> ScheduleRunner:
        clock = ManualClock()
        return ScheduleRunner(store=RunStore(self.root / "runs", clock), root=self.root, clock=clock, ran=self.made.append, **options)

    def target(self, _name: str, clock: ManualClock) -> FakeTarget:
        self.targets += 1
        target = FakeTarget(clock=clock)
        self.change(self.targets, target)
        return target


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    found = Stand(tmp_path)
    monkeypatch.setattr(import_module("harness.explore.schedules.running"), "create", found.target)
    monkeypatch.setattr(import_module("harness.runner.play"), "commit_of", lambda _root: "")
    return found


def schedule(*injections: Injection) -> Schedule:
    return Schedule(injections=injections)


# ---- once ------------------------------------------------------------------------------------------------------------


def test_a_schedule_is_run_once_and_its_run_is_found_again(stand: Stand):
    runner = stand.runner()
    first, second = (runner.run(RIGHT, schedule(KILL)) for _ in range(2))

    assert first.verdict.is_valid, first.explain()
    assert (first.is_remembered, second.is_remembered) == (False, True)
    assert second.run.directory.path == first.run.directory.path
    assert f"remembered, not run again: {first.run.directory.path}" in second.explain()
    assert "remembered" not in first.explain()
    assert second.verdict == first.verdict
    assert second.history.events == first.history.events
    assert len(stand.made) == 1


def test_the_next_process_remembers_too(stand: Stand):
    stand.runner().run(RIGHT, schedule(KILL))
    assert stand.runner().run(RIGHT, schedule(msgspec.structs.replace(KILL, name="named"))).is_remembered
    assert len(stand.made) == 1


def test_what_is_gone_is_run_again(stand: Stand):
    first = stand.runner().run(RIGHT, schedule(KILL))
    first.run.directory.history_path.unlink()
    again = stand.runner().run(RIGHT, schedule(KILL))
    assert not again.is_remembered
    assert again.verdict.is_valid


def test_another_job_another_promise_and_another_schedule_are_run(stand: Stand, tmp_path: Path):
    runner = stand.runner(shrink_runs=0)
    runner.run(RIGHT, schedule(KILL))
    assert not runner.run(RIGHT, schedule(msgspec.structs.replace(KILL, at=AtStep(step=6)))).is_remembered
    assert not runner.run(promise(3), schedule(KILL)).is_remembered
    (tmp_path / "train.py").write_text("changed = True")
    assert not runner.run(RIGHT, schedule(KILL)).is_remembered, "the job's code is not what it was"


def test_what_proved_nothing_is_run_again_by_the_next_session_only(stand: Stand):
    never = schedule(msgspec.structs.replace(KILL, at=AtStep(step=99)))
    for number in (1, 2):
        runner = stand.runner()
        for is_remembered in (False, True):
            found = runner.run(RIGHT, never)
            assert (found.verdict.outcome, found.is_remembered, found.shrunk) == (Outcome.UNKNOWN, is_remembered, None)
        assert len(stand.made) == number


def test_a_schedule_that_is_none_of_the_job_is_refused_before_anything_is_made(stand: Stand):
    with pytest.raises(RefusedValueError, match="attempts"):
        stand.runner().run(RIGHT, schedule(msgspec.structs.replace(KILL, attempts=(7,))))
    assert stand.made == []


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_is_made_small_counted_and_written(stand: Stand):
    found = stand.runner().run(
        WRONG, schedule(Injection(fault=Terminate(), at=AtStep(step=3)), msgspec.structs.replace(KILL, attempts=(1,)))
    )

    assert found.verdict.outcome is Outcome.INVALID
    assert found.shrunk is not None
    assert [(type(one.fault), one.attempts) for one in found.shrunk.case.injections] == [(Kill, (0,))]
    assert found.shrunk.case.injections[0].at == AtStep(step=1)
    assert found.artefact is not None
    failure = read_failure(found.artefact)
    assert failure.case.key() == found.shrunk.case.key()
    assert failure.signature == ("within-retries",)
    assert failure.reproduced == (5, 5)
    told = found.explain()
    assert "smallest: 1 of 2 faults" in told
    assert "reproduces 5 of 5" in told
    assert f"replay: harness replay --root {stand.root} {found.artefact}" in told


def test_what_fails_alike_is_investigated_once(stand: Stand):
    runner = stand.runner()
    first = runner.run(WRONG, schedule(KILL))
    made = len(stand.made)
    other = runner.run(WRONG, schedule(msgspec.structs.replace(KILL, at=AtStep(step=4))))

    assert len(stand.made) <= made + 1
    assert other.artefact == first.artefact
    assert len(list((stand.root / "runs" / ".failures").iterdir())) == 1


@pytest.mark.parametrize("is_next_session", [False, True])
def test_another_job_of_that_name_that_fails_alike_is_investigated_by_itself(stand: Stand, is_next_session: bool):
    other = msgspec.structs.replace(WRONG, workload=msgspec.structs.replace(JOB, environment={"MODE": "other"}))
    runner = stand.runner()
    first = runner.run(WRONG, schedule(KILL))
    second = (stand.runner() if is_next_session else runner).run(other, schedule(KILL))

    assert first.artefact is not None
    assert second.artefact is not None
    assert (read_failure(first.artefact).scenario.workload, read_failure(second.artefact).scenario.workload) == (JOB, other.workload)


def test_a_failure_whose_run_was_made_smaller_is_found_by_the_next_session(stand: Stand):
    sized = msgspec.structs.replace(WRONG, workload=msgspec.structs.replace(JOB, environment={"STEPS": "10"}))
    first = stand.runner().run(sized, schedule(KILL))
    made = len(stand.made)
    again = stand.runner().run(sized, schedule(KILL))

    assert first.artefact is not None
    assert read_failure(first.artefact).scenario.workload.steps < 10
    assert (again.artefact, len(stand.made)) == (first.artefact, made)


def test_the_next_session_finds_what_was_written_and_runs_nothing(stand: Stand):
    first = stand.runner().run(WRONG, schedule(KILL))
    made = len(stand.made)
    again = stand.runner().run(WRONG, schedule(KILL))

    assert len(stand.made) == made
    assert again.artefact == first.artefact
    assert again.reproduction == "reproduces 5 of 5"
    assert again.shrunk is not None
    assert first.shrunk is not None
    assert again.shrunk.case.key() == first.shrunk.case.key()


def test_what_was_written_of_another_version_of_the_job_is_looked_for_anew(stand: Stand, tmp_path: Path):
    stand.runner().run(WRONG, schedule(KILL))
    made = len(stand.made)
    (tmp_path / "train.py").write_text("changed = True")
    again = stand.runner().run(WRONG, schedule(KILL))

    assert len(stand.made) > made + 5
    assert again.artefact is not None


def test_a_failure_that_comes_seldom_says_so(stand: Stand):
    def hang(number: int, target: FakeTarget) -> None:
        if number % 3 == 1:  # of each three runs the first falls silent and is ended at its deadline
            target.silent_from = 8

    stand.change = hang
    found = stand.runner().run(RIGHT, schedule(KILL))

    assert found.verdict.outcome is Outcome.INVALID
    assert found.reproduction in ("reproduces 1 of 5", "reproduces 2 of 5")
    again = stand.runner().run(RIGHT, schedule(KILL))
    assert (again.is_remembered, again.verdict.outcome) == (True, Outcome.INVALID), "that it went well meanwhile takes nothing back"


def test_a_failure_is_written_as_it_is_where_no_run_is_granted(stand: Stand):
    found = stand.runner(shrink_runs=0).run(WRONG, schedule(KILL))

    assert (found.shrunk, len(stand.made)) == (None, 1)
    assert found.artefact is not None
    failure = read_failure(found.artefact)
    assert (failure.schedule.injections, failure.reproduced) == ((KILL,), (0, 0))
    assert str(failure) == "within-retries; nobody has tried how often it comes"


def test_what_was_written_as_it_is_is_made_small_once_runs_are_granted(stand: Stand):
    stand.runner(shrink_runs=0).run(WRONG, schedule(KILL))
    found = stand.runner().run(WRONG, schedule(KILL))

    assert found.shrunk is not None
    assert found.shrunk.case.injections[0].at == AtStep(step=1)
    assert found.reproduction == "reproduces 5 of 5"


def test_a_harness_that_breaks_while_it_shrinks_hides_no_failure(stand: Stand):
    def break_later(number: int, _target: FakeTarget) -> None:
        if number > 1:
            raise StoreError(path=stand.root, attempted="write", reason="full")

    stand.change = break_later
    found = stand.runner().run(WRONG, schedule(KILL))
    assert found.verdict.outcome is Outcome.INVALID
    assert "could not be made smaller: cannot write" in found.explain()
    assert found.artefact is not None, "it is written as it is"
    assert read_failure(found.artefact).schedule.injections == (KILL,)


def test_a_failure_that_cannot_be_written_is_told(stand: Stand):
    (stand.root / "runs").mkdir()
    (stand.root / "runs" / ".failures").write_text("")
    found = stand.runner(shrink_runs=0).run(WRONG, schedule(KILL))
    assert "could not be written: cannot create" in found.explain()
    assert "replay:" not in found.explain()


def test_a_replay_says_where_the_job_lies_unless_that_is_here(stand: Stand, monkeypatch: pytest.MonkeyPatch):
    found = stand.runner(shrink_runs=0).run(WRONG, schedule(KILL))
    assert f"replay: harness replay --root {stand.root} {found.artefact}" in found.explain()
    monkeypatch.chdir(stand.root)
    assert f"replay: harness replay {found.artefact}" in found.explain()
