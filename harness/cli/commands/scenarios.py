"""``harness list``, ``show`` and ``schema``: what scenarios there are, and how they are written."""

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from harness.cli.catalogue import DEFAULT_CATALOGUE, choose, everywhere, load, matching_scenarios, misplaced
from harness.cli.options import Catalogue, ConfigFile, Json, Root, Tags
from harness.clock import SystemClock
from harness.runner import belongs_to
from harness.scenario import encode, kind_of, name_of
from harness.scenario import schema as scenario_schema
from harness.targets import create


def list_scenarios(
    tags: Tags = None,
    target: Annotated[str | None, typer.Option(help="Only scenarios that run there without being named.")] = None,
    catalogue: Catalogue = DEFAULT_CATALOGUE,
    config: ConfigFile = None,
    root: Root = Path(),
    as_json: Json = False,
) -> int:
    """Show the scenarios: what they do and what they promise."""
    known = load(catalogue=catalogue, config=config, root=root.resolve())
    belongs = partial(belongs_to, target=create(target, SystemClock())) if target is not None else everywhere
    found = matching_scenarios(known, tags=tags or [], belongs=belongs)
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return 0
    console = Console()
    for scenario in found:
        faults = ", ".join(kind_of(injection.fault) for injection in scenario.injections) or "no fault"
        tagged = f" ({', '.join(scenario.tags)})" if scenario.tags else ""
        console.print(Text.assemble((scenario.name, "bold"), tagged), soft_wrap=True)
        console.print(
            Text(
                f"    {scenario.workload.name}: {faults}; {', '.join(name_of(expectation) for expectation in scenario.expects)}",
                style="dim",
            ),
            soft_wrap=True,
        )
    of = f" of {len(known)}" if len(found) < len(known) else ""
    console.print(f"{len(found)}{of} scenarios" if of or len(found) != 1 else "1 scenario", highlight=False)
    elsewhere = misplaced(found, catalogue=catalogue, root=root.resolve()) if config is None else ""
    if elsewhere:
        typer.echo(f"to run them: {elsewhere}", err=True)
    return 0


def show(
    name: Annotated[str, typer.Argument(help="A scenario.")],
    catalogue: Catalogue = DEFAULT_CATALOGUE,
    config: ConfigFile = None,
    root: Root = Path(),
) -> int:
    """Print a scenario as JSON: to read it, to change it, to run the changed file."""
    known = load(catalogue=catalogue, config=config, root=root.resolve())
    typer.echo(encode(choose(known, [name], everything=False, slow=True, tags=[])[0]).decode(), nl=False)
    return 0


def schema() -> int:
    """Print the JSON Schema of a scenario."""
    typer.echo(msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2).decode())
    return 0
