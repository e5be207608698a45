"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

RunsDir = Annotated[Path, typer.Option("--runs-dir", envvar="HARNESS_RUNS_DIR", help="Where run directories are.")]
Root = Annotated[Path, typer.Option("--root", help="What workloads' directories are relative to; the catalogue is imported from here.")]
Catalogue = Annotated[str, typer.Option("--catalogue", help="module:attribute of a mapping of names to scenarios.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A harness.toml: a job of your own, without Python.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only scenarios with this tag; may be repeated.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine.")]
