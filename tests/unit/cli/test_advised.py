"""Messages of a project advise commands that work as they stand: those that were typed, with what is to be done in its place."""

import shlex
from pathlib import Path
from typing import Annotated

import pytest
import typer

from harness.cli.commands.surroundings import clean
from harness.cli.options import RunsDir
from harness.cli.project_options import ProjectOptions, entered, with_project_options
from harness.config import read_gcp
from harness.errors import HarnessError
from harness.targets.gcp.advice import CLEANING_VARIABLE, PLANNING_VARIABLE, cleaning, planning
from harness.targets.gcp.place import FORMS, PREFIX, resolve_place
from harness.targets.gcp.plan import read_plan

TABLE = '[workload]\nname = "train"\ncommand = ["true"]\n[gcp]\nproject = "our-project"\nregion = "europe-west4"\nbucket = "our-bucket"\njob = "train"\n'


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*(PREFIX + name.upper() for name in FORMS), PLANNING_VARIABLE, CLEANING_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my harness.toml").write_text(TABLE)
    return Path("my harness.toml")


def advised(job_file: Path | None, *words: str) -> tuple[str, str]:
    """What is advised while a command like ``harness gate`` lasts: the plan, and the clean."""
    app = typer.Typer(name="harness")
    found: list[tuple[str, str]] = []

    @app.callback()
    def nothing() -> None: ...

    @with_project_options
    def gate(
        context: typer.Context,
        options: ProjectOptions,
        config: Annotated[Path, typer.Option("--config")] = Path("gate.toml"),
        runs_dir: RunsDir = Path("runs"),
    ) -> int:
        try:
            entered(context, "gcp", options.asked(context, config=job_file))
        except HarnessError as error:
            found.append((str(error), ""))
        else:
            found.append((planning(), cleaning()))
        return 0

    app.command()(gate)
    app(["gate", *words], standalone_mode=False, prog_name="harness")
    return found[0]


def place_of(command: str) -> object:
    """The place that ``harness clean`` goes to by a command."""
    app = typer.Typer(name="harness")
    app.command()(clean)
    words = shlex.split(command.strip("`"))
    assert words[:2] == ["harness", "clean"]
    said = typer.main.get_command(app).make_context("clean", words[2:]).params
    table = read_gcp(said["config"]) if said["config"] else None
    options = {name: said[name] for name in ("project", "region", "bucket", "cluster", "zone", "lock_bucket")}
    return resolve_place(options, {}, table, required=()).named() | {"job": ""}


def test_a_gate_plans_by_itself_and_cleans_by_its_harness_toml(job_file: Path):
    plans, cleans = advised(job_file, "--config", "my gate.toml", "--plan")

    assert plans == "`harness gate --config 'my gate.toml' --plan`"
    assert cleans == "`harness clean --target gcp --config 'my harness.toml'`"


def test_what_was_typed_otherwise_than_the_file_says_it_is_cleaned_there(job_file: Path):
    _, cleans = advised(job_file, "--bucket", "another-bucket", "--runs-dir", "my runs")

    assert cleans == "`harness clean --target gcp --config 'my harness.toml' --bucket another-bucket --runs-dir 'my runs'`"


@pytest.mark.parametrize("more", [(), ("--lock-bucket", "locks-of-all", "--cluster", "tpu", "--zone", "us-east5-b")])
def test_what_is_advised_goes_to_the_same_place(job_file: Path, more: tuple[str, ...]):
    typed = ("--project", "our-project", "--region", "us-east5", "--bucket", "our-bucket", "--job", "train", *more)
    wanted = dict(zip((word[2:].replace("-", "_") for word in typed[::2]), typed[1::2], strict=True))

    for file in (None, job_file):
        _, cleans = advised(file, *typed)
        assert place_of(cleans) == resolve_place(wanted, {}, required=()).named() | {"job": ""}


def test_a_plan_that_cannot_be_read_is_made_anew_where_it_was_looked_for(job_file: Path):
    refused, _ = advised(job_file, "--apply", "mine.json", "--gpu-hours", "2")

    assert refused.endswith("make one with `harness gate --gpu-hours 2.0 --plan --plan-file mine.json`")


def test_where_nobody_has_said_which_the_usual_commands_are_advised(job_file: Path, tmp_path: Path):
    advised(job_file)

    with pytest.raises(HarnessError, match="make one with `harness run --target gcp --plan`"):
        read_plan(tmp_path / "none.json")
    assert cleaning().startswith("`harness clean --target gcp` with the same --config")
