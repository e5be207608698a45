"""What a person sees of an incident: the worst first, no more than can be read, and a word where it takes long."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.incidents import DIAGNOSES_SHOWN, MOMENTS_SHOWN, TOLD_EVERY_S, Progress, print_incident
from harness.clock import ManualClock
from harness.incidents import JobWords, incident_of, read_export, reproduce, timeline_of
from harness.incidents.directory import Kept
from harness.scenario import Workload
from harness.store import RunDirectory
from tests.unit.incidents.logs import Log, as_lines

JOB = Workload(name="job", command=("job",))


def printed(log: Log, path: Path) -> list[str]:
    export = read_export(as_lines(log.entries))
    timeline = timeline_of(export, JobWords())
    incident = incident_of(export, timeline)
    made = reproduce(timeline, incident.diagnoses, JOB, speed=1.0)
    console = Console(file=io.StringIO(), width=80)
    print_incident(console, Kept(directory=RunDirectory(path), incident=incident, reproduction=made), attempts=1, why_not="")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def failing(attempts: int, tasks: int = 1) -> Log:
    log = Log()
    for task in range(tasks):
        for attempt in range(attempts):
            log.line(attempt * 10, f"Step {attempt + 1}", attempt=attempt, task=task)
            log.platform(attempt * 10 + 5, "Container called exit(1).", attempt=attempt, task=task)
    return log


def test_of_many_attempts_the_first_are_shown_and_the_others_counted(tmp_path: Path):
    lines = printed(failing(100), tmp_path)

    assert len([line for line in lines if line.startswith("invalid")]) == DIAGNOSES_SHOWN
    assert any(
        line.endswith(f" more diagnoses ({100 - DIAGNOSES_SHOWN} invalid, 1 unknown): {tmp_path / 'incident.json'}") for line in lines
    )
    assert len(lines) < MOMENTS_SHOWN + 8 * DIAGNOSES_SHOWN


def test_what_to_do_is_said_once_for_each_kind(tmp_path: Path):
    lines = printed(failing(3), tmp_path)

    advice = [line for line in lines if line.startswith("        what to do: read its last lines")]
    assert (len(advice), len([line for line in lines if "failed-by-itself" in line])) == (1, 3)


def test_of_many_tasks_the_losses_of_the_first_are_shown(tmp_path: Path):
    lines = printed(failing(1, tasks=100), tmp_path)

    assert len([line for line in lines if line.startswith("task ") and " in all" in line]) == DIAGNOSES_SHOWN
    assert f"80 more tasks: {tmp_path / 'incident.json'}" in lines
    assert "80 more not in the scenario: --json lists them" in lines


def test_who_waits_for_long_is_told_now_and_then(capsys: pytest.CaptureFixture[str]):
    clock = ManualClock()
    progress = Progress(clock)

    progress(10_000)
    clock.advance(TOLD_EVERY_S)
    progress(20_000)
    progress(30_000)
    clock.advance(TOLD_EVERY_S)
    progress(40_000)

    assert capsys.readouterr().err.splitlines() == ["20000 parts of the export were read", "40000 parts of the export were read"]
