"""Live kills at operations: what a recording has shown is where a run is hit, one operation after the other, and no moment costs a save."""

import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from harness.clock import SystemClock
from harness.explore.aims.cells import reachable, ways_to_hit
from harness.explore.aims.choice import choice_of
from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.recording import record
from harness.explore.schedules import (
    Coverage,
    ScheduleRun,
    ScheduleRunner,
    markers_of,
    operations_of,
    operations_since,
    read_failure,
)
from harness.explore.schedules.coverage import covered_by
from harness.history import OperationReached, Restored, SignalSent
from harness.scenario import Injection, Schedule
from harness.scenario.cells import PHASES
from harness.scenario.faults import EndGrace, Kill, Terminate
from harness.scenario.triggers import AtMarker, AtOperation, AtStep
from harness.store import RunStore
from harness.strategies import FAULTS, Known, schedules
from harness.verdict import Outcome
from tests.integration.explore.test_schedules import FAST, RIGHT, ROOT

TOLD_AT = 8

IN_PLACE = msgspec.structs.replace(
    RIGHT,
    name="saves-in-place",
    command=("{python}", "-m", "workloads.broken.saves_in_place"),
    layout="files",
    sources=("workloads/broken/saves_in_place.py", "workloads/linear", "workloads/protocol.py"),
)

TELLS_ITSELF = f"""
import os, signal
from workloads.linear.train import Trainer, main
class TellsItself(Trainer):
    def emit(self, event, **fields):
        super().emit(event, **fields)
        if event == "step" and fields["step"] == {TOLD_AT}:
            os.kill(os.getpid(), signal.SIGTERM)
raise SystemExit(main(TellsItself))
"""
"""The linear job, which gets SIGTERM right after a step: without a harness, and without a clock."""


def recorded(base: Path, *command: str, exit_code: int) -> OperationLog:
    root = base / "checkpoints"
    root.mkdir()
    environment = {**os.environ, **FAST, "SEED": "0", "CHECKPOINT_DIR": str(root)}
    whole = (sys.executable, *command)
    recording = record(whole, root=root, log_directory=base / "log", environment=environment, cwd=ROOT, timeout_s=60.0)
    assert recording.exit_code == exit_code, recording.errors()
    return read_operation_log(recording.log_directory)


@pytest.fixture(scope="module")
def last_save(tmp_path_factory: pytest.TempPathFactory) -> OperationLog:
    """A run that is told to go, recorded."""
    return recorded(tmp_path_factory.mktemp("told"), "-c", TELLS_ITSELF, exit_code=143)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> OperationLog:
    """A run that nothing happens to, recorded."""
    return recorded(tmp_path_factory.mktemp("whole"), "-m", "workloads.linear.train", exit_code=0)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> ScheduleRunner:
    clock = SystemClock()
    return ScheduleRunner(store=RunStore(tmp_path_factory.mktemp("runs"), clock), root=ROOT, clock=clock, shrink_runs=0)


def restored(run: ScheduleRun, attempt: int) -> list[int]:
    return [event.step for event in run.history.events if isinstance(event, Restored) and event.attempt == attempt]


def test_the_grace_may_end_at_any_operation_of_the_last_save(runner: ScheduleRunner, last_save: OperationLog) -> None:
    """Nobody waits for the ten seconds. The step is there once it was committed, and not before."""
    points = operations_since(last_save, "sigterm")
    commit = next(at for at, point in enumerate(points) if point.operation == "rename" and point.path.startswith("step_"))
    assert len(points) >= 15

    found = []
    for at in points:
        told = (Injection(fault=Terminate(), at=AtStep(step=TOLD_AT)), Injection(fault=EndGrace(), at=at))
        run = runner.run(RIGHT, Schedule(injections=told))
        assert run.verdict.is_valid, run.explain()
        (reached,) = [event for event in run.history.events if isinstance(event, OperationReached) and event.attempt == 0]
        (killed,) = [event for event in run.history.events if isinstance(event, SignalSent) and event.signal == "SIGKILL"]
        assert (killed.cause, reached.operation, reached.path, reached.nth) == ("grace", at.operation, at.path, at.nth)
        found.append(restored(run, 1))

    assert found == [[5] if index < commit else [TOLD_AT] for index in range(len(points))]


@pytest.mark.parametrize(("when", "step"), [("before", 5), ("after", 10)])
def test_a_kill_before_or_after_the_commit_decides_what_is_resumed_from(runner: ScheduleRunner, when: str, step: int) -> None:
    at = AtOperation(
        operation="rename", path="step_*.tmp-*", after="save.begin", after_nth=2, when="before" if when == "before" else "after"
    )
    run = runner.run(RIGHT, Schedule(injections=(Injection(fault=Kill(), at=at),)))

    assert run.verdict.is_valid, run.explain()
    assert restored(run, 1) == [step]


def test_whatever_is_drawn_from_recordings_acts_and_a_right_job_survives_it(
    runner: ScheduleRunner, whole_run: OperationLog, last_save: OperationLog
) -> None:
    """A verdict is valid only where every fault has landed."""
    known = Known(
        markers=("save.write", "gc.begin"),
        operations=operations_of(whole_run, whens=("before", "after")),
        last_save=operations_since(last_save, "sigterm"),
    )
    drawn: list[Injection] = []

    @settings(
        max_examples=12, deadline=None, database=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(schedules(RIGHT, max_faults=4, known=known))
    def survives(schedule: Schedule) -> None:
        run = runner.run(RIGHT, schedule)
        assert run.verdict.is_valid, run.explain()
        drawn.extend(schedule.injections)

    survives()
    assert any(isinstance(one.at, AtOperation) for one in drawn)


def test_each_cell_that_is_drawn_for_is_hit(runner: ScheduleRunner, whole_run: OperationLog, last_save: OperationLog) -> None:
    """By the first way to do it: what was seen to land lies in that cell."""
    words = tuple(word for word in markers_of(whole_run) if word.startswith(("save.", "gc.")) and word not in ("save.begin", "save.end"))
    choice = choice_of(RIGHT, FAULTS, Known(markers=words, last_save=operations_since(last_save, "sigterm")))
    wanted = [cell for cell in Coverage(reachable=set(reachable(RIGHT, FAULTS, words=words))).left if cell.attempt != "later"]
    assert {cell.phase for cell in wanted} == set(PHASES)

    for cell in wanted:
        injections, _ = next(ways_to_hit(choice, cell, task=0))
        run = runner.run(RIGHT, Schedule(injections=tuple(injections)))
        assert run.verdict.is_valid, run.explain()
        assert cell in covered_by(run.history.events, RIGHT), f"{cell}: {injections}"


def test_what_a_recording_shows_of_a_wrong_job_is_confirmed_live_and_written_down(tmp_path: Path) -> None:
    """Between the two writes of its only file: the moment stays an operation, for no word of the job is there."""
    log = recorded(tmp_path, "-m", "workloads.broken.saves_in_place", exit_code=0)
    (between,) = [at for at in operations_of(log) if at_of(at) == ("write", "save.begin", 2, 1)]
    clock = SystemClock()
    runner = ScheduleRunner(store=RunStore(tmp_path / "runs", clock), root=ROOT, clock=clock)

    found = runner.run(IN_PLACE, Schedule(injections=(Injection(fault=Kill(), at=between),)))

    assert found.verdict.outcome is Outcome.INVALID, found.explain()
    assert found.shrunk is not None, found.explain()
    assert found.reproduction == "reproduces 5 of 5"
    assert found.artefact is not None
    (kill,) = read_failure(found.artefact).case.injections
    assert isinstance(kill.at, AtOperation)
    assert kill.at.operation == "write"


def at_of(at: AtOperation | AtMarker) -> tuple[str, str, int, int]:
    return (at.operation, at.after, at.after_nth, at.nth) if isinstance(at, AtOperation) else ("", at.event, at.nth, 0)
