"""One state of an exploration that is over, made and tried again: what recovery does with it, and whether that is judged as before."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.clock import Clock
from harness.errors import InvalidDocumentError, UnknownNameError, UsageError
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.fixed_place import claimed
from harness.explore.judgement import Judgement
from harness.explore.judging.criteria import judge
from harness.explore.judging.expected import Expected
from harness.explore.kept_state import KeptState, differing_results, keep_state
from harness.explore.own_path import believed
from harness.explore.recipe import Recipe, Tried
from harness.explore.rehearsal import EMPTY, expected_of, read_rehearsed_log
from harness.explore.relapses import expected_in, log_of, read_recovery
from harness.explore.result import STATE_CHARACTERS, Exploration, StateResult, Surface, name_of
from harness.explore.surroundings import differing, digests_of
from harness.explore.trials_file import Trial, read_trials
from harness.history import read_regular
from harness.store import RunDirectory
from harness.verdict import Outcome

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """One state of one surface, judged again.

    Attributes:
        surface: Its surface, as it is shown.
        before: What was said of it.
        now: What is said now.
    """

    surface: str
    before: StateResult
    now: Judgement

    @property
    def outcome(self) -> Outcome:
        """Of now."""
        return self.now.outcome

    @property
    def is_the_same(self) -> bool:
        """Whether the same promises are broken, as surely as before: one of which nothing is known is another thing than a broken one."""
        before, now = ({(each.promise, each.outcome) for each in broken} for broken in (self.before.broken, self.now.broken))
        return before == now


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedState:
    """A state that was tried again.

    Attributes:
        state: Its name.
        tried: What came of it.
        again: Its judgements: for each surface that leaves it, and each promise that had been made by then.
        differing: Variables of the caller that are not as they were.
        kept: Its directories, where they were asked for.
        results: Among them the files that ought to be alike and are not, that of the uninterrupted run last.
    """

    state: str
    tried: Tried
    again: tuple[Again, ...]
    differing: tuple[str, ...] = ()
    kept: KeptState | None = None
    results: tuple[Path, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst of them."""
        said = {each.outcome for each in self.again}
        return next(outcome for outcome in (Outcome.INVALID, Outcome.UNKNOWN, Outcome.VALID) if outcome in said)


def read_exploration(directory: RunDirectory) -> Exploration:
    """The document of an exploration that is over.

    Raises:
        InvalidDocumentError: When there is none.
    """
    return _read(directory.exploration_path, Exploration)


def replay_state(directory: RunDirectory, state: str, *, run_id: str, clock: Clock, keeps: bool = False) -> ReplayedState:
    """Try recovery from a state again.

    Args:
        directory: Of the exploration.
        state: The beginning of its name.
        run_id: Carried by the processes of this replay.
        clock: The machine's.
        keeps: Whether its directories stay, as the crash left them and as recovery does.

    Raises:
        UsageError: When there is no such state, or what it is made of was removed.
    """
    exploration = read_exploration(directory)
    name = _name_of(exploration, state, directory)
    recipe = _read(directory.recipe_path, Recipe)
    trial, golden = _trials(directory, name)
    kept = keep_state(directory, trial.task) if keeps else None
    executing = LocalExecutor(directory.blobs, jobs=1, run_id=run_id, clock=clock)
    with claimed(recipe.checkpoints, makes_parent=True), contextlib.closing(executing) as executor:
        (tried,) = executor.try_all([kept.task(trial.task) if kept else trial.task], recipe, deadline_s=float("inf"))
        results = differing_results(kept, tried, golden.tried, recipe.result) if kept else ()
        if kept and results:
            list(executor.try_all([kept.uninterrupted_task(golden.task)], recipe, deadline_s=float("inf")))
    expectations = _Expectations(exploration, directory, recipe, golden.tried)
    before = _read(directory.surroundings_path, dict[str, str])
    return ReplayedState(
        state=name,
        tried=tried,
        again=tuple(_judged(exploration, trial, tried, expectations)),
        differing=differing(before, digests_of(os.environ)),
        kept=kept,
        results=results,
    )


def _judged(exploration: Exploration, trial: Trial, tried: Tried, expectations: "_Expectations") -> list[Again]:
    found = []
    for surface in exploration.surfaces:
        for before in (state for state in surface.states if state.state == trial.task.state):
            now = judge(believed(tried, expectations.root), expectations.of(surface), at=before.at, pieces=trial.task.pieces)
            found.append(Again(surface=name_of(surface), before=before, now=now))
    return found


class _Expectations:
    """What recovery owes after crashes of the job, and of its recorded recoveries; read again from their logs."""

    def __init__(self, exploration: Exploration, directory: RunDirectory, recipe: Recipe, golden: Tried) -> None:
        self._exploration, self._directory, self._recipe = exploration, directory, recipe
        replayed = read_rehearsed_log(directory.recorded, recipe)
        self.root = replayed.log.header.root
        with DataFile(replayed.log.data_path) as data:
            self._own = expected_of(replayed, golden, recipe, data=data, differs=exploration.recorded.differs)

    def of(self, surface: Surface) -> Expected:
        """After the crashes of a surface."""
        if not surface.after:
            return self._own
        origins = (state for each in self._exploration.surfaces if not each.after for state in each.states)
        at = next(origin.at for origin in origins if origin.state == surface.after)
        replayed = read_recovery(log_of(self._directory.recoveries, surface.after), self._recipe)
        with DataFile(replayed.log.data_path) as data:
            return expected_in(replayed, self._own, at, self._recipe, data)


def _name_of(exploration: Exploration, state: str, directory: RunDirectory) -> str:
    known = list(dict.fromkeys(each.state for surface in exploration.surfaces for each in surface.states))
    found = [name for name in known if state and name.startswith(state)]
    if not found:
        raise UnknownNameError(kind=f"state of {directory.path}", name=state, known=[name[:STATE_CHARACTERS] for name in known])
    if len(found) > 1:
        raise UsageError(f"{len(found)} states of {directory.path} begin with {state!r}; give more characters of the one that is meant")
    return found[0]


def _trials(directory: RunDirectory, name: str) -> tuple[Trial, Trial]:
    """The trial of a state, and that of the uninterrupted run."""
    found: dict[str, Trial] = {}
    for trial in read_trials(directory.tried_path):
        if trial.task.state in {name, EMPTY.state}:
            found[trial.task.state] = trial
    if name not in found:
        raise UsageError(f"the state {name[:STATE_CHARACTERS]} was not judged, since the budget was spent; explore with a larger --budget")
    if EMPTY.state not in found:
        problem, advice = "the uninterrupted run is not in it", "explore again"
        raise InvalidDocumentError(document=str(directory.tried_path), field="", problem=problem, advice=advice)
    return found[name], found[EMPTY.state]


def _read(path: Path, kind: type[Document]) -> Document:
    try:
        return msgspec.json.decode(read_regular(path), type=kind)
    except OSError as error:
        advice = "name the directory of an exploration that is over"
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidDocumentError(document=str(path), field="", problem=str(error), advice="explore again") from error
