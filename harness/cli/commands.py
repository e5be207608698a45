"""The commands of ``harness``, one function each."""

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from harness.capabilities import TurnTaking
from harness.cli.batch import ENDING_S_MAX, ENDING_SHARED_S_MAX, Batch, Display
from harness.cli.catalogue import DEFAULT_CATALOGUE, by_cost, choose, everywhere, left_out, load, matching_scenarios
from harness.cli.cleaning import Told, What, summary_of
from harness.cli.cleaning import clean as clean_runs
from harness.cli.clusters import down_app, up_app
from harness.cli.display import STYLES, LiveDisplay, PlainDisplay, outcome_of
from harness.cli.doctor import diagnose
from harness.cli.exits import EXIT_BROKEN, EXIT_CODES, EXIT_INTERRUPTED, EXIT_USAGE, in_full
from harness.cli.standing_index import StandingIndex
from harness.cli.worker import Finished, Job, Refused
from harness.clock import Clock, SystemClock
from harness.config import CONFIG_NAME, TEMPLATE
from harness.errors import BrokenHarnessError, TargetUnavailableError, UsageError
from harness.history import read_header
from harness.report import write_index, write_run
from harness.runner import belongs_to, check_run
from harness.scenario import encode, kind_of, name_of, read_scenario
from harness.scenario import schema as scenario_schema
from harness.store import RunDirectory, RunStore, open_run
from harness.targets import availability, create
from harness.verdict import Outcome

app = typer.Typer(
    name="harness",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Proves that long AI training jobs survive their platforms.",
)

app.add_typer(up_app, name="up")
app.add_typer(down_app, name="down")

RunsDir = Annotated[Path, typer.Option("--runs-dir", envvar="HARNESS_RUNS_DIR", help="Where run directories are.")]
Root = Annotated[Path, typer.Option("--root", help="What workloads' directories are relative to; the catalogue is imported from here.")]
Catalogue = Annotated[str, typer.Option("--catalogue", help="module:attribute of a mapping of names to scenarios.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A harness.toml: a job of your own, without Python.")]
NAMES_MAX = 5
"""Of scenarios in one line: enough to see where a batch was."""

Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only scenarios with this tag; may be repeated.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine.")]


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        exit_code = int(app(list(arguments), standalone_mode=False) or 0)
        return _fail("interrupted", exit_code) if exit_code == EXIT_INTERRUPTED else exit_code  # of a KeyboardInterrupt typer makes one
    except (UsageError, TargetUnavailableError) as error:
        return _fail(str(error), EXIT_USAGE)
    except BrokenHarnessError as error:
        return _fail(in_full(error), EXIT_BROKEN)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  the reader is gone; nothing can be flushed to it
        return EXIT_BROKEN
    except Exception as error:  # noqa: BLE001  the edge of the program: a person gets one line
        return _explain(error)


def _explain(error: Exception) -> int:
    """One line for what the command line refuses, and for what nobody foresaw; for that the traceback is one variable away."""
    format_message = getattr(error, "format_message", None)  # what typer raises for wrong usage has no public base class
    if format_message is not None:
        return _fail(str(format_message()), EXIT_USAGE)
    if os.environ.get("HARNESS_TRACEBACK"):
        raise error
    return _fail(f"{type(error).__name__}: {error}; this is a defect of the harness, HARNESS_TRACEBACK=1 shows where", EXIT_BROKEN)


@app.command("list")
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
    return 0


@app.command()
def run(
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
    base = (root or (config.parent if config else Path())).resolve()
    known = load(catalogue=catalogue, config=config, root=base)
    _require_target(target)
    belongs = everywhere if config is not None else partial(belongs_to, target=create(target, SystemClock()))
    everything = everything or config is not None
    chosen = choose(known, names or [], everything=everything, slow=slow, tags=tags or [], belongs=belongs)
    _require_writable(runs_dir)
    work = [
        Job(scenario=scenario, target=target, seed=seed, keep=keep, root=str(base), runs_dir=str(runs_dir.resolve()), argv=tuple(sys.argv))
        for scenario in by_cost(chosen)
    ]
    others = "" if names else left_out(known, chosen, tags=tags or [], belongs=belongs)
    return _run_batch(work, jobs=jobs, runs_dir=runs_dir.resolve(), as_json=as_json, others=others)


@app.command()
def check(run_directory: Annotated[Path, typer.Argument(help="A directory under the runs directory.")], as_json: Json = False) -> int:
    """Judge a run again from its history, without running anything; writes nothing."""
    found = _run_at(run_directory)
    judged = check_run(found)
    if as_json:
        typer.echo(msgspec.json.encode(judged.verdict).decode())
    else:
        typer.echo(f"{judged.scenario.name}: {judged.verdict.outcome}{_unjudged(found)}")
        for finding in judged.verdict.findings:
            typer.echo(f"  {finding.outcome:8} {finding.checker}: {finding.reason}")
            for line in finding.evidence if finding in judged.verdict.worst() and not judged.verdict.is_valid else ():
                typer.echo(f"           {line}")
    return EXIT_CODES[judged.verdict.outcome]


@app.command()
def report(
    run_directory: Annotated[Path | None, typer.Argument(help="A run; without it, every run and the index.")] = None,
    runs_dir: RunsDir = Path("runs"),
) -> int:
    """Write the HTML report of a run again, or of every run with the index."""
    if run_directory is not None:
        typer.echo(str(write_run(_run_at(run_directory))))
        return 0
    store = RunStore(runs_dir.resolve(), SystemClock())
    for directory in store.runs():
        if directory.is_over() and directory.scenario_path.exists():
            write_run(directory)
    typer.echo(str(write_index(store)))
    return 0


@app.command()
def replay(
    run_directory: Annotated[Path, typer.Argument(help="The run to make again, or a scenario.json.")],
    target: Annotated[str, typer.Option(help="Where to run.")] = "local",
    seed: Annotated[int | None, typer.Option(help="Another seed than the run's own.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep checkpoint directories of valid runs too.")] = False,
    runs_dir: RunsDir = Path("runs"),
    root: Root = Path(),
    as_json: Json = False,
) -> int:
    """Run the scenario of a run again: the same faults, workload, seed."""
    if run_directory.is_file():
        scenario, seed = read_scenario(run_directory), seed or 0
    else:
        run = _run_at(run_directory)
        scenario, seed = read_scenario(run.scenario_path), _seed_of(run) if seed is None else seed
    _require_target(target)
    _require_writable(runs_dir)
    job = Job(
        scenario=scenario,
        target=target,
        seed=seed,
        keep=keep,
        root=str(root.resolve()),
        runs_dir=str(runs_dir.resolve()),
        argv=tuple(sys.argv),
    )
    return _run_batch([job], jobs=1, runs_dir=runs_dir.resolve(), as_json=as_json)


@app.command()
def clean(runs_dir: RunsDir = Path("runs")) -> int:
    """End processes and finish undos that dead runs have left behind; living runs are left alone, histories stay."""
    told: list[Told] = []
    for line in clean_runs(runs_dir.resolve(), SystemClock()):
        typer.echo(f"{line.run}: {line.text}")
        told.append(line)
    typer.echo(summary_of(told))
    return EXIT_BROKEN if any(line.what is What.FAILED for line in told) else 0


@app.command()
def doctor(as_json: Json = False) -> int:
    """Say which targets and capabilities are available here, and what to install for the others."""
    found = diagnose()
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return 0
    for line in found:
        typer.echo(f"{'yes' if line.is_available else 'no ':4} {line.name:28} {line.detail}")
    return 0


@app.command()
def schema() -> int:
    """Print the JSON Schema of a scenario."""
    typer.echo(msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2).decode())
    return 0


@app.command()
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


@app.command()
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


def _run_at(path: Path) -> RunDirectory:
    """The run at a path.

    Raises:
        UsageError: When it never began: nothing is there to judge or to make again.
        UnknownNameError: When there is none.
    """
    run = RunDirectory(path)
    owner = run.owner()
    if owner is None or run.scenario_path.exists():
        return open_run(path)
    if run.is_running():
        raise UsageError(f"the run {path} is not judged yet: process {owner.process.pid} has it, and waits for its turn; look again later")
    raise UsageError(f"the run {path} was never judged: it ended before it began; run its scenario again")


def _unjudged(run: RunDirectory) -> str:
    """What must be known of a judgement that is the first: it is of what there is until now."""
    if run.is_over():
        return ""
    return ", so far: it is still running" if run.is_running() else ", by what there is: it ended before it was judged"


def _seed_of(run: RunDirectory) -> int:
    """The seed that a run had, from the header of its history: what comes after it may be damaged."""
    header = read_header(run.history_path)
    if header is None:
        raise UsageError(f"{run.history_path} does not begin with a header, so the seed is not known; give it with --seed")
    return header.seed


def _run_batch(work: Sequence[Job], *, jobs: int, runs_dir: Path, as_json: bool, others: str = "") -> int:
    clock = SystemClock()
    began_s = clock.monotonic_s()
    console = Console(stderr=as_json)
    index = StandingIndex(RunStore(runs_dir, clock), clock)
    index.write()
    ending_s_max = _ending_s_max(work[0].target, clock)

    def batch_for(display: Display) -> Batch:
        return Batch(work, workers=jobs, display=display, clock=clock, index=index, ending_s_max=ending_s_max)

    try:
        if console.is_terminal and not as_json:
            with LiveDisplay(console, clock, len(work)) as display:
                batch = batch_for(display)
                results = list(batch.run().values())
        else:
            batch = batch_for(PlainDisplay(console, clock))
            results = list(batch.run().values())
    finally:
        path = index.write()  # what has ended can be looked at, whatever broke
    if as_json:
        typer.echo(msgspec.json.encode(results).decode())
    lasted = f"{clock.monotonic_s() - began_s:.0f} s"
    if batch.waited_s >= 1.0:
        lasted += f", {batch.waited_s:.0f} s of them waiting for others"
    lines = [f"{_counted(results)} in {lasted}", *_left(batch), *([f"left out: {others}"] if others else []), f"report: {path}"]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)
    return EXIT_INTERRUPTED if batch.is_interrupted else _exit_code(results)


def _ending_s_max(target: str, clock: Clock) -> float:
    """How long ending what runs may take."""
    return ENDING_SHARED_S_MAX if isinstance(create(target, clock), TurnTaking) else ENDING_S_MAX


def _counted(results: Sequence[Finished | Refused]) -> str:
    outcomes = [outcome_of(message) for message in results]
    counted = [f"{outcomes.count(outcome)} {outcome}" for outcome in STYLES if outcome in outcomes]
    return ", ".join(counted) or "nothing done"


def _left(batch: Batch) -> list[str]:
    """What an interrupt has left: scenarios that were not run, and those that end without us."""
    not_run, unended = batch.not_run, batch.unended
    more = f" and {len(not_run) - NAMES_MAX} more" if len(not_run) > NAMES_MAX else ""
    lines = [f"not run: {len(not_run)}: {', '.join(not_run[:NAMES_MAX])}{more}"] if batch.is_interrupted and not_run else []
    if unended:
        lines.append(f"still being ended: {', '.join(unended)}; `harness clean` says when nothing of it is left")
    return lines


def _exit_code(results: Sequence[Finished | Refused]) -> int:
    """The worst outranks: a broken harness, then wrong usage, then invalid, unknown, valid."""
    refused = [message.exit_code for message in results if isinstance(message, Refused)]
    if refused:
        return max(refused)
    outcomes = {outcome_of(message) for message in results}
    return next((EXIT_CODES[outcome] for outcome in (Outcome.INVALID, Outcome.UNKNOWN) if outcome in outcomes), 0)


def _require_target(name: str) -> None:
    found = availability(name)
    if not found.is_available:
        raise TargetUnavailableError(target=name, reason=found.reason, advice=found.advice)


def _require_writable(runs_dir: Path) -> None:
    """Refuse a runs directory that cannot be written, before anything starts."""
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        probe = runs_dir / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"the runs directory {runs_dir} cannot be written: {error.strerror or error}; choose another with --runs-dir"
        ) from error


def _fail(message: str, exit_code: int) -> int:
    typer.echo(f"harness: {message}", err=True)
    return exit_code


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
