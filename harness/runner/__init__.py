"""Runs scenarios: ``run_scenario`` binds, plays, judges and stores one."""

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.capabilities import Target
from harness.checkers import judge
from harness.clock import Clock
from harness.history import GoldenKnown, History, Repeated, RunOpened, read_history
from harness.runner import golden
from harness.runner.binding import belongs_to, refuse_missing_capabilities, refuse_unlaunchable
from harness.runner.play import Stage, leave_unplayed, play
from harness.runner.progress import Progress
from harness.runner.replay import replay_script
from harness.scenario import Scenario, read_scenario
from harness.store import RunDirectory, RunStore
from harness.verdict import Verdict

__all__ = ["Options", "Run", "belongs_to", "check_run", "run_scenario"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How runs are made.

    Attributes:
        root: What workloads' directories are relative to.
        seed: Replaces ``{seed}``; stored in the history.
        keep: Keep checkpoint directories of valid runs too.
        progress: Told of every event.
        opened: Told of the run directory as soon as it exists.
        argv: What the user typed, for the header; empty: the command line of this process.
    """

    root: Path
    seed: int = 0
    keep: bool = False
    progress: Progress | None = None
    opened: Callable[[RunDirectory], None] | None = None
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """A run that is over."""

    scenario: Scenario
    directory: RunDirectory
    history: History
    verdict: Verdict

    def __repr__(self) -> str:
        """Short: an assertion that fails prints it."""
        return f"Run({self.directory.name}: {self.verdict.outcome})"

    @property
    def seed(self) -> int:
        """The seed it ran with; 0 when the history has no header."""
        return next((event.seed for event in self.history.events if isinstance(event, RunOpened)), 0)

    def explain(self) -> str:
        """The verdict in words: what was decided by what, and where to look."""
        lines = [f"{self.scenario.name}: {self.verdict.outcome}"]
        for finding in self.verdict.worst():
            lines.append(f"  {finding.checker}: {finding.reason}")
            lines.extend(f"    {line}" for line in finding.evidence[:5])
        return "\n".join([*lines, f"  run: {self.directory.path}"])


def run_scenario(scenario: Scenario, *, target: Callable[[], Target], clock: Clock, store: RunStore, options: Options) -> Run:
    """Run a scenario on a target and judge it.

    ``target`` makes a target for one run; it is called again for each golden run.

    Raises:
        UsageError: Before anything was started.
        TargetUnavailableError: The target is not here.
        BrokenHarnessError: The harness broke; its history says so.
    """
    mine = target()
    refuse_missing_capabilities(scenario, mine)
    refuse_unlaunchable(scenario, mine, root=options.root, seed=options.seed)
    established: golden.Established | None = None
    if golden.is_needed(scenario.expects):

        def play_golden(scenario: Scenario, directory: RunDirectory, run_id: str) -> None:
            alone = target()
            refuse_unlaunchable(scenario, alone, root=options.root, seed=options.seed)  # it too is told what it plays
            play(scenario, _stage(directory, run_id, target=alone, clock=clock, options=options))

        established = golden.establish(
            scenario,
            store=store,
            root=options.root,
            seed=options.seed,
            target=mine.name,
            play=play_golden,
            progress=options.progress,
        )
    directory, run_id = store.create(scenario.name, options.seed)
    if options.opened is not None:
        options.opened(directory)
    if established is not None:
        directory.write(directory.golden_path, established.history)
    directory.write_script(directory.replay_path, replay_script(scenario, target=mine.name, seed=options.seed, root=options.root))
    known = established.known if established is not None else None
    stage = _stage(directory, run_id, target=mine, clock=clock, options=options, known=known)
    if established is not None and established.unplayable:
        leave_unplayed(scenario, stage, established.unplayable)
    else:
        play(scenario, stage)
    run = check_run(directory)
    directory.write(directory.verdict_path, msgspec.json.format(msgspec.json.encode(run.verdict), indent=2) + b"\n")
    if run.verdict.is_valid and not options.keep:
        directory.remove_checkpoints()
    return run


def check_run(directory: RunDirectory) -> Run:
    """Judge a run from what it left behind, without running anything.

    Raises:
        InvalidDocumentError: When its scenario cannot be read.
        StoreError: When its history cannot be read.
        HistoryCorruptError: When its history is damaged.
    """
    scenario = read_scenario(directory.scenario_path)
    repeated = Repeated()
    with _nothing_collected():
        history = read_history(directory.history_path, repeated=repeated)
        uninterrupted = read_history(directory.golden_path, repeated=repeated) if directory.golden_path.exists() else None
        return Run(scenario=scenario, directory=directory, history=history, verdict=judge(scenario, history, uninterrupted))


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """A long history is very many objects that all live until it is judged: to search them for garbage takes a while and finds none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _stage(
    directory: RunDirectory, run_id: str, *, target: Target, clock: Clock, options: Options, known: GoldenKnown | None = None
) -> Stage:
    return Stage(
        directory=directory,
        run_id=run_id,
        target=target,
        clock=clock,
        root=options.root,
        seed=options.seed,
        golden=known,
        progress=options.progress,
        argv=options.argv or tuple(sys.argv),
    )
