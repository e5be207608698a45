"""What was typed is said again as it works: every option by its name, values quoted, what is left out left out."""

import shlex
from pathlib import Path
from typing import Annotated

import pytest
import typer

from harness.cli.plan_display import next_command
from harness.cli.said_again import said_again


def said(*words: str, without: tuple[str, ...] = (), adding: tuple[str, ...] = ()) -> list[str]:
    """How a command like ``harness run`` says itself again."""
    app = typer.Typer(name="harness")
    found: list[str] = []

    @app.callback()
    def nothing() -> None: ...

    @app.command()
    def run(
        context: typer.Context,
        names: Annotated[list[str] | None, typer.Argument()] = None,
        tags: Annotated[list[str] | None, typer.Option("--tag")] = None,
        seed: Annotated[int, typer.Option()] = 0,
        config: Annotated[Path | None, typer.Option("--config")] = None,
        emulator: Annotated[bool, typer.Option("--emulator")] = False,
        plan: Annotated[bool, typer.Option("--plan")] = False,
        plan_file: Annotated[Path, typer.Option("--plan-file")] = Path("plan.json"),
        gpu_hours: Annotated[float | None, typer.Option()] = None,
        runs_dir: Annotated[Path, typer.Option("--runs-dir", envvar="OF_A_TEST")] = Path("runs"),
    ) -> None:
        found.append(said_again(context, without=without, adding=adding))
        found.append(next_command(context, plan_file=plan_file, emulated=emulator))

    app(["run", *words], standalone_mode=False, prog_name="harness")
    return found


def test_all_that_was_typed_is_there_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "elsewhere")
    line, _ = said("--seed=3", "one", "--config", "my file.toml", "--tag", "a", "--tag", "b", "two")

    assert line == "harness run --tag a --tag b --seed 3 --config 'my file.toml' one two"


def test_what_is_left_out_is_and_what_is_added_comes_before_the_names() -> None:
    line, _ = said("--plan", "--emulator", "one", without=("plan",), adding=("--apply", "plan.json"))

    assert line == "harness run --emulator --apply plan.json one"


def test_a_name_that_looks_like_an_option_stays_a_name() -> None:
    line, _ = said("--seed", "1", "--", "--one")

    assert line == "harness run --seed 1 -- --one"
    assert said(*shlex.split(line)[2:])[0] == line


def test_a_plan_is_applied_with_all_that_it_was_made_with_and_one_of_an_emulator_that_ends_is_not() -> None:
    _, applies = said("--plan", "--plan-file", "my plan.json", "--gpu-hours", "5", "--config", "c.toml", "one")
    _, runs = said("--plan", "--emulator", "--gpu-hours", "5", "--config", "c.toml", "one")

    assert applies == "harness run --config c.toml --gpu-hours 5.0 --apply 'my plan.json' one"
    assert runs == "harness run --config c.toml --emulator one"
