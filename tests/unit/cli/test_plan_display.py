"""A plan on a terminal and in a file."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from rich.console import Console

from harness.cli.plan_display import show
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Exposure, Limits, Plan, PlannedFault, PlannedScenario

MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "a-job-of-a-long-name-that-is-killed-again-while-it-recovers-resumes"
HIT = "task 0 of the run's execution of projects/our-project/locations/europe-west4/jobs/train"
THEN = f"harness run --target gcp --config harness.toml --gpu-hours 200.0 --apply plan.json {NAME}"


def plan(**fields: object) -> Plan:
    fault = PlannedFault(injection="first-kill", fault="kill", hits=(HIT,), unit="tasks", blast_radius=1, times=2)
    cost = Exposure(executions=3, tasks=1, attempts=4, timeout_s=600.0, gpus=1)
    scenario = PlannedScenario(name=NAME, digest="d", seed=0, exposure=cost, duration_s=60.0, faults=(fault,))
    place = Place(project="our-project", region="europe-west4", bucket="our-bucket", job="train")
    made = Plan(made_at=MADE_AT, expires_at=MADE_AT + timedelta(hours=1), place=place, limits=Limits(), scenarios=(scenario,), resources=())
    return Plan(**{name: getattr(made, name) for name in made.__struct_fields__} | fields)


def shown(width: int, *, is_terminal: bool, emulated: bool = False, **fields: object) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    show(plan(**fields), console, path=Path("plan.json"), then=THEN, emulated=emulated)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_on_a_narrow_terminal_scenarios_stand_one_by_one_with_their_faults():
    lines = shown(80, is_terminal=True)

    at = lines.index(NAME)
    assert lines[at + 1] == "    3 executions, 1 task, 4 attempts, 1 GPU, timeout 10 min: 2.00 GPU-hours"
    assert " ".join(map(str.strip, lines[at + 2 : at + 5])).startswith(f"first-kill, 2 times, at most 1 task: {HIT}; nothing is left")
    assert max(len(line) for line in lines if line.strip() != THEN) <= 80


def test_in_a_file_and_on_a_wide_terminal_they_are_tables_with_whole_names():
    for lines in (shown(80, is_terminal=False), shown(250, is_terminal=True)):
        assert any(line.startswith(f"{NAME}  3") for line in lines)
        assert any(HIT in line for line in lines)


def test_hours_of_tpu_chips_are_not_called_gpu_hours():
    cost = Exposure(executions=1, tasks=1, attempts=1, timeout_s=3600.0, gpus=33, chips=32)
    scenarios = (msgspec.structs.replace(plan().scenarios[0], exposure=cost),)
    for width in (80, 250):
        text = "\n".join(shown(width, is_terminal=True, scenarios=scenarios))
        assert "accelerator-hours at worst 33.00 of 1" in text
        assert "GPU" not in text.replace("--gpu-hours", "")


def test_the_command_that_follows_is_one_line_to_be_copied():
    assert shown(80, is_terminal=True)[-2:] == ["then:", f"    {THEN}"]
    assert shown(80, is_terminal=True, emulated=True)[-1] == f"    {THEN}"
    assert "then:" not in shown(80, is_terminal=True, emulated=True)


def test_a_plan_with_problems_names_no_command():
    assert shown(80, is_terminal=True, problems=("the bucket is not there",))[-1] == "mend the problems, and plan again"
