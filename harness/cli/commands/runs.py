"""``harness run`` and ``replay``, which run scenarios; ``check`` and ``report``, which look at runs again."""

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.catalogue import DEFAULT_CATALOGUE, by_cost, choose, everywhere, left_out, load
from harness.cli.emulation import emulated_where_asked
from harness.cli.exits import EXIT_CODES
from harness.cli.options import Catalogue, ConfigFile, Json, Root, RunsDir, Tags
from harness.cli.project_options import Emulated, ProjectOptions, entered, with_project_options
from harness.cli.project_plan import held, plan_or_apply, planned_names
from harness.cli.replayed import ToRun, case_of_run, read_asked, said_of
from harness.cli.running import nothing_more, require_target, require_workloads, require_writable, run_batch, work_of
from harness.cli.runs import exploration_error, run_at, unjudged
from harness.clock import SystemClock
from harness.report import write_index, write_run
from harness.runner import belongs_to, check_run
from harness.store import RunDirectory, RunStore
from harness.targets import create


@with_project_options
def run(
    context: typer.Context,
    options: ProjectOptions,
    names: Annotated[list[str] | None, typer.Argument(help="Scenarios by name, or paths of scenario.json.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="The whole catalogue, but for slow scenarios and those of other targets.")
    ] = False,
    slow: Annotated[bool, typer.Option("--slow", help="Slow scenarios too.")] = False,
    tags: Tags = None,
    target: Annotated[str, typer.Option(help="Where to run.")] = "local",
    seed: Annotated[int, typer.Option(help="Seed of workloads; stored in every history.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Scenarios at once.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Keep checkpoint directories of valid runs too.")] = False,
    runs_dir: RunsDir = Path("runs"),
    catalogue: Catalogue = DEFAULT_CATALOGUE,
    config: ConfigFile = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="What workloads' directories are relative to (default: here, or where the TOML file is).")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run scenarios and judge them."""
    on_project = entered(context, target, options.asked(context, config=config))
    base = (root or (config.parent if config else Path())).resolve()
    known = load(catalogue=catalogue, config=config, root=base)
    require_target(target)
    belongs = everywhere if config is not None else partial(belongs_to, target=create(target, SystemClock()))
    everything = everything or config is not None
    names = planned_names(on_project, names or [])
    chosen = choose(known, names, everything=everything, slow=slow, tags=tags or [], belongs=belongs)
    require_workloads(chosen, catalogue="" if config is not None else catalogue, root=base)
    if on_project is not None:
        code = plan_or_apply(on_project, by_cost(chosen), seed=seed, clock=SystemClock(), as_json=as_json, jobs=jobs, root=base)
        if code is not None:
            return code
    require_writable(runs_dir)
    work = work_of(by_cost(chosen), target=target, seed=seed, keep=keep, root=base, runs_dir=runs_dir)
    others = "" if names else left_out(known, chosen, tags=tags or [], belongs=belongs)
    with held(on_project, SystemClock(), runs_dir.resolve()):
        return run_batch(work, jobs=jobs, runs_dir=runs_dir.resolve(), as_json=as_json, others=others)


def check(run_directory: Annotated[Path, typer.Argument(help="A directory under the runs directory.")], as_json: Json = False) -> int:
    """Judge a run again from its history, without running anything; writes nothing."""
    found = run_at(run_directory)
    judged = check_run(found)
    if as_json:
        typer.echo(msgspec.json.encode(judged.verdict).decode())
    else:
        typer.echo(f"{judged.scenario.name}: {judged.verdict.outcome}{unjudged(found)}")
        for finding in judged.verdict.findings:
            typer.echo(f"  {finding.outcome:8} {finding.checker}: {finding.reason}")
            for line in finding.evidence if finding in judged.verdict.worst() and not judged.verdict.is_valid else ():
                typer.echo(f"           {line}")
    return EXIT_CODES[judged.verdict.outcome]


def report(
    run_directory: Annotated[Path | None, typer.Argument(help="A run; without it, every run and the index.")] = None,
    runs_dir: RunsDir = Path("runs"),
) -> int:
    """Write the HTML report of a run again, or of every run with the index."""
    if run_directory is not None:
        typer.echo(str(write_run(run_at(run_directory))))
        return 0
    store = RunStore(runs_dir.resolve(), SystemClock())
    for directory in store.runs():
        if directory.is_over() and directory.scenario_path.exists():
            write_run(directory)
    typer.echo(str(write_index(store)))
    return 0


def replay(
    context: typer.Context,
    run_directory: Annotated[Path, typer.Argument(help="The run to make again, a scenario.json, or the schedule.json of a failure.")],
    target: Annotated[str | None, typer.Option(help="Where to run (default: where it ran, else local).")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed than the run's own.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep checkpoint directories of valid runs too.")] = False,
    runs_dir: RunsDir = Path("runs"),
    root: Root = Path(),
    as_json: Json = False,
    emulator: Emulated = False,
) -> int:
    """Run the scenario of a run, or of a failure, again: the same faults, workload, seed."""
    is_file = run_directory.is_file()
    beside = RunDirectory(run_directory.parent)
    if is_file and beside.exploration_path.exists():
        raise exploration_error(beside)
    asked = read_asked(run_directory, seed=seed) if is_file else ToRun(case_of_run(run_at(run_directory), seed=seed))
    target = target or asked.case.target
    context.with_resource(emulated_where_asked(target, is_asked=emulator))
    require_target(target)
    require_writable(runs_dir)
    work = work_of([asked.case.scenario], target=target, seed=asked.case.seed, keep=keep, root=root.resolve(), runs_dir=runs_dir)
    tell = partial(said_of, asked.failure) if asked.failure is not None else nothing_more
    return run_batch(work, jobs=1, runs_dir=runs_dir.resolve(), as_json=as_json, tell=tell)
