"""The commands that a project's messages advise, from what was typed: a plan of a gate is made by ``harness gate``, and none is cleaned."""

import os
import shlex
from pathlib import Path

import typer

from harness.cli.project_plan import AskedOfProject, Project
from harness.cli.said_again import said_again
from harness.config import GcpTable, read_gcp

CLEANED = ("project", "region", "bucket", "cluster", "zone", "lock_bucket")
"""Options of ``harness clean``, by the names of ``[gcp]``."""

PLAN_FILE = Path("plan.json")


def planning_command(context: typer.Context, asked: AskedOfProject) -> str:
    """What plans the same again, into the file that was to be applied."""
    adding = ["--plan"]
    if asked.apply is not None and asked.apply != PLAN_FILE:
        adding += ["--plan-file", str(asked.apply)]
    return _masked(said_again(context, without=("plan", "apply", "as_json", *(["plan_file"] if len(adding) > 1 else [])), adding=adding))


def cleaning_command(context: typer.Context, project: Project) -> str:
    """What cleans the place of a project: by its ``harness.toml``, and by options for what neither that nor a variable says."""
    words = ["harness", "clean", "--target", "gcp"]
    config = project.asked.config
    table = read_gcp(config) if config is not None else GcpTable()
    if config is not None:
        words += ["--config", str(config)]
    for name, value in project.place.named().items():
        said = os.environ.get(f"HARNESS_GCP_{name.upper()}") or str(getattr(table, name, "") or "")
        if name in CLEANED and value and value != said:
            words += [f"--{name.replace('_', '-')}", value]
    runs_dir = Path(context.params.get("runs_dir", "runs"))
    return _masked(shlex.join([*words, *(["--runs-dir", str(runs_dir)] if runs_dir != Path("runs") else [])]))


def _masked(command: str) -> str:
    """Somebody may have typed a credential, and messages are kept in logs."""
    from harness.targets.gcp.secrets import Secrets

    return Secrets.of(os.environ).redact(command)
