"""``harness explore``: a job is explored, and what came of it is kept and told."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from harness.cli.exits import EXIT_CODES, EXIT_INTERRUPTED
from harness.cli.exploring import JudgingDisplay, print_recorded, print_result
from harness.cli.interruptions import Interruptions
from harness.cli.replayed_state import print_replayed
from harness.clock import Clock
from harness.errors import UsageError
from harness.explore.documents import CHECKER, write_documents
from harness.explore.executors.wire import encode
from harness.explore.exploring import Explorer, forget
from harness.explore.judgement import Broken
from harness.explore.options import Explored, Options
from harness.explore.replaying import replay_state
from harness.explore.result import Exploration, Recorded
from harness.explore.subject import Subject
from harness.report import Summary, write_index
from harness.store import RunDirectory, RunStore
from harness.targets import remove_left_behind
from harness.verdict import Outcome


class Telling:
    """Tells on a console how an exploration goes (``exploring.Watcher``)."""

    def __init__(self, console: Console, clock: Clock, *, budget_s: float | None) -> None:
        self._console, self._clock, self._budget_s = console, clock, budget_s
        self._display: JudgingDisplay | None = None

    def recorded(self, recorded: Recorded) -> None:
        """See ``Watcher``."""
        print_recorded(self._console, recorded)

    def planned(self, states: int) -> None:
        """See ``Watcher``."""
        if self._display is None:
            self._display = JudgingDisplay(self._console, self._clock, states, budget_s=self._budget_s)
            self._display.__enter__()
        self._display.total = states
        self._display.ticked()

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None:
        """See ``Watcher``."""
        if self._display is not None:
            self._display.judged(surface, outcome, worst.promise if worst else "", worst.says if worst else "")

    def close(self) -> None:
        """Take the line away that changes."""
        if self._display is not None:
            self._display.__exit__()
            self._display = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an exploration is kept, and how it is told."""

    runs_dir: Path
    seed: int
    as_json: bool


def explore(subject: Subject, options: Options, place: Place, clock: Clock) -> int:
    """Explore, keep and print everything; returns the exit code."""
    store = RunStore(place.runs_dir.resolve(), clock)
    opened_at = clock.utc().isoformat()
    directory, run_id = store.create(f"explore-{subject.name}", place.seed)
    console = Console(stderr=place.as_json)
    telling = Telling(console, clock, budget_s=options.budget.seconds)
    name = shown(directory.path)
    try:
        explorer = Explorer(subject, options, directory=directory, run_id=run_id, clock=clock, watcher=telling, name=name)
        explored = explorer.explore()
    except UsageError:
        shutil.rmtree(directory.path, ignore_errors=True)  # nothing was explored
        with contextlib.suppress(OSError):
            directory.path.parent.rmdir()  # which only others of the same name keep
        raise
    finally:
        telling.close()
    with Interruptions():
        _keep(explored.exploration, directory, opened_at=opened_at, seed=place.seed)
        directory.remove_checkpoints()
        if explored.exploration.outcome is Outcome.VALID and not options.keeps:
            forget(directory)
        write_index(store)
        return _answer(explored, directory, console, as_json=place.as_json)


def _keep(exploration: Exploration, directory: RunDirectory, *, opened_at: str, seed: int) -> None:
    """Write the documents, and the row of the index."""
    write_documents(exploration, directory)
    summary = summary_of(exploration, directory, opened_at=opened_at, seed=seed)
    directory.write(directory.summary_path, msgspec.json.encode(summary))


def summary_of(exploration: Exploration, directory: RunDirectory, *, opened_at: str, seed: int) -> Summary:
    """An exploration as a row of the index: its states are the faults, those that were judged landed."""
    states = [state for surface in exploration.surfaces for state in surface.states]
    return Summary(
        scenario=directory.path.parent.name,
        outcome=exploration.outcome,
        reasons=tuple(f"{CHECKER}: {reason}" for reason in exploration.reasons),
        faults_landed=sum(state.outcome is not None for state in states),
        faults_declared=len(states),
        attempts=sum(state.outcome is not None for state in states),
        lost_steps=None,
        recovery_s=None,
        margin_s=None,
        wall_s=exploration.seconds,
        run=str(directory.path),
        opened_at=opened_at,
        target="explore",
        seed=seed,
        tags=("kill-points",),
    )


def _answer(explored: Explored, directory: RunDirectory, console: Console, *, as_json: bool) -> int:
    exploration = explored.exploration
    if as_json:
        typer.echo(msgspec.json.encode(exploration).decode())
    else:
        print_result(console, exploration, report=shown(directory.report_path))
    if explored.is_interrupted:
        console.print(Text("interrupted: what was judged until then is told above"), highlight=False, soft_wrap=True)
        return EXIT_INTERRUPTED
    return EXIT_CODES[exploration.outcome]


def replay_asked_for(run_directory: Path, state: str, *, as_json: bool, clock: Clock, keeps: bool = False) -> int:
    """Try a state of an exploration again, and say what came of it; returns the exit code."""
    run_id = secrets.token_hex(6)
    try:
        replayed = replay_state(RunDirectory(run_directory), state, run_id=run_id, clock=clock, keeps=keeps)
    finally:
        remove_left_behind(run_id, clock)
    if as_json:
        typer.echo(encode(replayed.tried).decode(), nl=False)
    else:
        print_replayed(Console(), replayed)
    return EXIT_CODES[replayed.outcome]


def shown(path: Path, here: Callable[[], Path] = Path.cwd) -> str:
    """A path as a person types it."""
    try:
        return str(path.relative_to(here()))
    except ValueError:
        return os.fspath(path)
