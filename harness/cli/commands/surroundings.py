"""``harness emulate``, ``clean``, ``doctor`` and ``init``: what runs need around them, and what they leave."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.cleaning import Told, What, summary_of
from harness.cli.cleaning import clean as clean_runs
from harness.cli.doctor import diagnose
from harness.cli.emulate import Wish, emulate, tell_coverage
from harness.cli.emulate_asked import root_asked_for
from harness.cli.exits import EXIT_BROKEN
from harness.cli.options import ConfigFile, Json, RunsDir
from harness.cli.project_cleaning import clean_project
from harness.cli.project_options import OfBucket, OfCluster, OfLockBucket, OfProject, OfRegion, OfZone
from harness.cli.project_plan import TARGET
from harness.clock import SystemClock
from harness.config import CONFIG_NAME, TEMPLATE
from harness.emulator.address import Ports
from harness.emulator.session import PROJECT as EMULATED_PROJECT
from harness.errors import UsageError

EmulatorRoot = Annotated[
    Path | None,
    typer.Option("--root", parser=root_asked_for, metavar="PATH", help="Where buckets and executions are; else gone with it."),
]


def emulate_services(
    context: typer.Context,
    root: EmulatorRoot = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of REST, on loopback; 0: any that is free.")] = 0,
    grpc_port: Annotated[int, typer.Option(min=0, max=65535, help="Of gRPC, on loopback; 0: any that is free.")] = 0,
    projects: Annotated[list[str] | None, typer.Option("--project", help="A project that there is; may be repeated.")] = None,
    buckets: Annotated[list[str] | None, typer.Option("--bucket", help="A bucket of the first project; may be repeated.")] = None,
    bucket_labels: Annotated[list[str] | None, typer.Option("--bucket-label", metavar="KEY=VALUE", help="Of those, each.")] = None,
    inject: Annotated[Path | None, typer.Option(help="A JSON file with a list of faults of the services.")] = None,
    coverage: Annotated[bool, typer.Option("--coverage", help="Print what of Google's clients is spoken, and end.")] = False,
    as_json: Json = False,
) -> int:
    """Have Google Cloud's services on loopback: until Ctrl-C, or for the command that follows --."""
    if coverage:
        others = (root, projects, buckets, bucket_labels, inject, context.obj, port or None, grpc_port or None)
        return tell_coverage(as_json=as_json, is_alone=all(other is None for other in others))
    ports = Ports(grpc=grpc_port, http=port)
    wish = Wish(root=root, ports=ports, projects=projects or [EMULATED_PROJECT], buckets=buckets or [], inject=inject, command=context.obj)
    return emulate(replace(wish, bucket_labels=bucket_labels or [], as_json=as_json), SystemClock())


def clean(
    runs_dir: RunsDir = Path("runs"),
    target: Annotated[str, typer.Option(help="gcp: also what runs have left on a project, by their label.")] = "",
    config: ConfigFile = None,
    project: OfProject = "",
    region: OfRegion = "",
    bucket: OfBucket = "",
    cluster: OfCluster = "",
    zone: OfZone = "",
    lock_bucket: OfLockBucket = "",
    run_ids: Annotated[list[str] | None, typer.Option("--run", help="gcp: a run that is over and not written down here; exact id.")] = None,
) -> int:
    """End processes and finish undos that dead runs have left behind; living runs are left alone, histories stay."""
    told: list[Told] = []
    options = {"project": project, "region": region, "bucket": bucket, "cluster": cluster, "zone": zone, "lock_bucket": lock_bucket}
    if target not in ("", TARGET) or (not target and (run_ids or any(options.values()))):
        raise UsageError(f"what is left on a project is cleaned with --target {TARGET}; all else is cleaned without a target")
    lines = clean_runs(runs_dir.resolve(), SystemClock())
    if target == TARGET:
        lines = chain(lines, clean_project(options, config, runs_dir=runs_dir.resolve(), clock=SystemClock(), run_ids=run_ids or ()))
    for line in lines:
        typer.echo(f"{line.run}: {line.text}")
        told.append(line)
    typer.echo(summary_of(told))
    return EXIT_BROKEN if any(line.what is What.FAILED for line in told) else 0


def doctor(as_json: Json = False) -> int:
    """Say which targets and capabilities are available here, and what to install for the others."""
    found = diagnose()
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return 0
    for line in found:
        typer.echo(f"{'yes' if line.is_available else 'no ':4} {line.name:28} {line.detail}")
    return 0


def init(path: Annotated[Path, typer.Argument(help="Where to write it.")] = Path(CONFIG_NAME)) -> int:
    """Write a commented harness.toml for a job of your own."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError as error:
        raise UsageError(f"{path} exists; name another file, or remove it") from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name a writable place") from error
    typer.echo(f"wrote {path}; edit it, then: harness run --config {path}")
    return 0
