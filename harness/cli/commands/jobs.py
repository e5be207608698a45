"""``harness explore`` and ``reproduce``: what is asked of a job without a scenario, or with an incident's."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.asked import (
    Asked,
    checkpoints_asked_for,
    executor_asked_for,
    subject_asked_for,
    surfaces_asked_for,
    timeout_asked_for,
    words_asked_for,
)
from harness.cli.catalogue import DEFAULT_CATALOGUE
from harness.cli.explore import Place, replay_asked_for
from harness.cli.explore import explore as explore_job
from harness.cli.options import Catalogue, ConfigFile, Json, Root, RunsDir
from harness.cli.reproduce import Ways, entries_asked_for, job_asked_for, reproduce_incident
from harness.cli.running import require_writable
from harness.clock import SystemClock
from harness.errors import UsageError
from harness.explore.budget import DEFAULT as DEFAULT_BUDGET
from harness.explore.budget import read_budget
from harness.explore.options import Options
from harness.explore.subject import with_options


def explore(
    context: typer.Context,
    workload: Annotated[
        str, typer.Argument(metavar="[WORKLOAD] [-- COMMAND...]", help="A workload of the catalogue, or a command after --.")
    ] = "",
    config: ConfigFile = None,
    checkpoint_dir: Annotated[
        str | None, typer.Option(help="Where a job saves that knows one place only; not there, or empty. It is emptied again.")
    ] = None,
    result: Annotated[str, typer.Option(help="A file of the checkpoint directory that must equal the uninterrupted run's.")] = "",
    inspect: Annotated[str, typer.Option(help='A command that prints {"step": N} of the checkpoints in {checkpoint_dir}.')] = "",
    recover: Annotated[str, typer.Option(help="module:function that recovers and goes on, called in a process that stays warm.")] = "",
    recovery_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="What a recovery may take (default: 30, or ten times as long as the job takes)."),
    ] = None,
    storage: Annotated[
        list[str] | None, typer.Option(help="A storage model, or several with commas; may be repeated (default: all).")
    ] = None,
    scope: Annotated[list[str] | None, typer.Option(help="How much dies: process, sidecar, node, likewise.")] = None,
    budget: Annotated[str, typer.Option(help="Seconds (60s, 5m), states (200), or all (default: 60s, and the most telling).")] = "",
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Recoveries at once.")] = 2,
    executor: Annotated[str, typer.Option(help="Where recovery is tried: local, or ray.")] = "local",
    ray_address: Annotated[str, typer.Option(help="An existing Ray cluster.")] = "auto",
    seed: Annotated[int, typer.Option(help="For {seed} in the command and the environment.")] = 0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the recording of a valid job too; with --replay, the state's files.")] = False,
    replay: Annotated[
        tuple[Path, str] | None,
        typer.Option(metavar="RUN STATE", help="Try a state of an exploration again, by how its name begins."),
    ] = None,
    runs_dir: RunsDir = Path("runs"),
    catalogue: Catalogue = DEFAULT_CATALOGUE,
    root: Root = Path(),
    as_json: Json = False,
) -> int:
    """Record one run of a job, and judge recovery from every state that a crash can leave."""
    asked = Asked(name=workload, config=config, command=context.obj)
    if replay is not None:
        if not asked.is_nothing:
            raise UsageError("--replay tries one state of one exploration that is over; leave the job away, and of several runs name one")
        return replay_asked_for(*replay, as_json=as_json, clock=SystemClock(), keeps=keep)
    subject = subject_asked_for(asked, catalogue=catalogue, root=root.resolve(), seed=seed)
    checkpoints = checkpoints_asked_for(checkpoint_dir)
    subject = with_options(
        subject,
        result=result,
        inspect=words_asked_for(inspect),
        recover=recover,
        checkpoints=checkpoints,
        recovery_timeout_s=timeout_asked_for(recovery_timeout),
    )
    options = Options(
        surfaces=surfaces_asked_for(storage or [], scope or []),
        budget=read_budget(budget) if budget else DEFAULT_BUDGET,
        jobs=jobs,
        executor=executor_asked_for(executor, checkpoints=checkpoints),
        ray_address=ray_address,
        keeps=keep,
    )
    require_writable(runs_dir)
    return explore_job(subject, options, Place(runs_dir=runs_dir, seed=seed, as_json=as_json), SystemClock())


def reproduce_export(
    export: Annotated[str, typer.Argument(help="A log export of Cloud Logging as JSON, also gzipped; - for standard input.")] = "",
    project: Annotated[str, typer.Option(help="Read the log of this project instead of an export; with --execution.")] = "",
    execution: Annotated[str, typer.Option(help="Which execution, or job of a cluster, where the log holds several.")] = "",
    config: ConfigFile = None,
    workload: Annotated[str, typer.Option(help="A workload of the catalogue that plays the job (default: the Cloud Run guide's).")] = "",
    speed: Annotated[float, typer.Option(min=0.001, max=100_000, help="How many times faster than the incident the scenario goes.")] = 1.0,
    runs: Annotated[bool, typer.Option("--run", help="Run the scenario here, and say whether the same went wrong.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the scenario there too.")] = None,
    runs_dir: RunsDir = Path("runs"),
    catalogue: Catalogue = DEFAULT_CATALOGUE,
    root: Root = Path(),
    as_json: Json = False,
) -> int:
    """Diagnose an incident from its log, and make a scenario of the same timing."""
    job = job_asked_for(config=config, workload=workload, catalogue=catalogue, root=root.resolve())
    entries = entries_asked_for(export, project=project, execution=execution)
    require_writable(runs_dir)
    ways = Ways(execution=execution, speed=speed, runs=runs, output=output, as_json=as_json)
    return reproduce_incident(entries, job, ways, runs_dir=runs_dir, clock=SystemClock())
