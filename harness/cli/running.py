"""Scenarios run as a batch from the command line: shown while they run, counted when they are over, told by an exit code."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from harness.cli.batch import Batch, Display, endlessly
from harness.cli.catalogue import misplaced
from harness.cli.display import STYLES, LiveDisplay, PlainDisplay, outcome_of
from harness.cli.exits import EXIT_BROKEN, EXIT_CODES, EXIT_INTERRUPTED
from harness.cli.standing_index import StandingIndex
from harness.cli.worker import Finished, Job, Refused
from harness.clock import SystemClock
from harness.errors import TargetUnavailableError, UsageError
from harness.scenario import Scenario
from harness.store import RunStore, writing_problem
from harness.targets import availability, ending_s_max
from harness.verdict import Outcome

NAMES_MAX = 5
"""Of scenarios in one line: enough to see where a batch was."""


def require_target(name: str) -> None:
    """Refuse a target that is not here, before anything starts.

    Raises:
        TargetUnavailableError: When it is not.
    """
    found = availability(name)
    if not found.is_available:
        raise TargetUnavailableError(target=name, reason=found.reason, advice=found.advice)


def require_workloads(scenarios: Sequence[Scenario], *, catalogue: str, root: Path) -> None:
    """Refuse scenarios of a catalogue that lies elsewhere, whose workloads are there and not here, before anything starts.

    Raises:
        UsageError: When there is one.
    """
    elsewhere = misplaced(scenarios, catalogue=catalogue, root=root) if catalogue else ""
    if elsewhere:
        raise UsageError(elsewhere)


def require_writable(runs_dir: Path) -> None:
    """Refuse a runs directory that cannot be written, before anything starts.

    Raises:
        UsageError: When it cannot.
    """
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        problem = writing_problem(runs_dir / "writable")
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise UsageError(f"the runs directory {runs_dir} cannot be written: {problem}; choose another with --runs-dir")


def nothing_more(_results: Sequence[Finished | Refused]) -> list[str]:
    """What is told of results beside what they tell themselves."""
    return []


def work_of(scenarios: Iterable[Scenario], *, target: str, seed: int, keep: bool, root: Path, runs_dir: Path) -> list[Job]:
    """What workers are given: each scenario, with where and how it is run."""
    return [
        Job(scenario=scenario, target=target, seed=seed, keep=keep, root=str(root), runs_dir=str(runs_dir.resolve()), argv=tuple(sys.argv))
        for scenario in scenarios
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A batch that is over.

    Attributes:
        batch: The batch.
        results: What came of it.
        console: Where a person reads.
        seconds: How long it took.
        index: The page over all runs.
    """

    batch: Batch
    results: Sequence[Finished | Refused]
    console: Console
    seconds: float
    index: Path

    def lines(self) -> list[str]:
        """What is told when it is over."""
        lasted = f"{self.seconds:.0f} s"
        if self.batch.waited_s >= 1.0:
            lasted += f", {self.batch.waited_s:.0f} s of them waiting for others"
        return [f"{_counted(self.results)} in {lasted}", *_left(self.batch)]


def run_work(
    work: Sequence[Job], *, jobs: int, runs_dir: Path, as_json: bool, enough: Callable[[Mapping[str, float]], str] = endlessly
) -> Ran:
    """Run scenarios, shown while they run.

    Args:
        work: The scenarios; all on one target.
        jobs: How many at once.
        runs_dir: Where run directories are.
        as_json: Whether results are printed for a machine; what a person reads goes to standard error then.
        enough: See ``harness.cli.batch.Batch``.
    """
    clock = SystemClock()
    began_s = clock.monotonic_s()
    console = Console(stderr=as_json)
    index = StandingIndex(RunStore(runs_dir, clock), clock)
    index.write()
    ending_s = ending_s_max(work[0].target, clock)

    def batch_for(display: Display) -> Batch:
        return Batch(work, workers=jobs, display=display, clock=clock, index=index, ending_s_max=ending_s, enough=enough)

    try:
        if console.is_terminal and not as_json:
            with LiveDisplay(console, clock, len(work)) as display:
                batch = batch_for(display)
                results = list(batch.run().values())
        else:
            batch = batch_for(PlainDisplay(console, clock))
            results = list(batch.run().values())
    except BaseException:
        index.finish(is_trouble_told=True)  # what has ended can be looked at, whatever broke
        raise
    path = index.finish(is_trouble_told=refused_code(results) == EXIT_BROKEN)
    return Ran(batch=batch, results=results, console=console, seconds=clock.monotonic_s() - began_s, index=path)


def run_batch(
    work: Sequence[Job],
    *,
    jobs: int,
    runs_dir: Path,
    as_json: bool,
    others: str = "",
    tell: Callable[[Sequence[Finished | Refused]], list[str]] = nothing_more,
) -> int:
    """Run scenarios, tell what came of them, and return the exit code.

    Args:
        work: The scenarios; all on one target.
        jobs: How many at once.
        runs_dir: Where run directories are.
        as_json: Whether results are printed for a machine; what a person reads goes to standard error then.
        others: What of the catalogue is not among them, and why.
        tell: What else is told of the results, a line each.
    """
    ran = run_work(work, jobs=jobs, runs_dir=runs_dir, as_json=as_json)
    if as_json:
        typer.echo(msgspec.json.encode(ran.results).decode())
    left_out_lines = [f"left out: {others}"] if others else []
    lines = [*ran.lines(), *tell(ran.results), *left_out_lines, f"report: {ran.index}"]
    ran.console.print("\n".join(lines), highlight=False, soft_wrap=True)
    return EXIT_INTERRUPTED if ran.batch.is_interrupted else _exit_code(ran.results)


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


def refused_code(results: Sequence[Finished | Refused]) -> int:
    """Of what was not run, or not to its end, the worst exit code; 0 where there is none."""
    return max((message.exit_code for message in results if isinstance(message, Refused)), default=0)


def _exit_code(results: Sequence[Finished | Refused]) -> int:
    """The worst outranks: a broken harness, then wrong usage, then invalid, unknown, valid."""
    refused = refused_code(results)
    if refused:
        return refused
    outcomes = {outcome_of(message) for message in results}
    return next((EXIT_CODES[outcome] for outcome in (Outcome.INVALID, Outcome.UNKNOWN) if outcome in outcomes), 0)
