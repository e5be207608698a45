"""What is known to be wrong with real checkpointers is found from one plain recording of each, and what is right is not accused."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.clock import SystemClock
from harness.explore.blobs import BlobStore
from harness.explore.budget import Budget
from harness.explore.campaign import Campaign
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.exploring import Explorer, Options
from harness.explore.frontier import Frontier, SurfaceName, surfaces_of
from harness.explore.judgement import Broken
from harness.explore.models import MODELS
from harness.explore.moments import timeline
from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.operations import Created, Synced, Wrote
from harness.explore.ranks import RANKS
from harness.explore.recipe import Recipe
from harness.explore.rehearsal import EMPTY, RECORD_S_MAX, Recorder, rehearse
from harness.explore.result import Recorded, StateResult, Surface, Vulnerability
from harness.explore.subject import Subject
from harness.explore.trials_file import Trial, TrialsFile, read_trials
from harness.store import RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.recipes import ROOT

JOBS = Path(__file__).with_name("jobs")

NEVER_SYNCED = {"_CHECKPOINT_METADATA", "_METADATA", "commit_success.txt", "process_0"}
"""Files of an Orbax checkpoint, by name, that nobody waits for (facts on kill points, F10)."""


class Silence:
    """A watcher that tells nobody."""

    def recorded(self, recorded: Recorded) -> None: ...

    def planned(self, states: int) -> None: ...

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None: ...


class Explored(NamedTuple):
    """What came of it, what was recorded, and what was tried, by state."""

    surfaces: tuple[Surface, ...]
    log: OperationLog
    trials: Mapping[str, Trial]

    def surface(self, model: str, scope: str) -> Surface:
        """Of the job itself, not of a recovery."""
        found = [each for each in self.surfaces if (each.model, each.scope, each.after) == (model, scope, "")]
        assert len(found) == 1
        return found[0]


@contextmanager
def explored(recipe: Recipe, surfaces: tuple[SurfaceName, ...], budget: Budget, directory: Path) -> Iterator[Explored]:
    clock = SystemClock()
    run, run_id = RunStore(directory / "runs", clock).create("explore-findings", 0)
    options = Options(surfaces=surfaces, budget=budget, jobs=2)
    subject = Subject(name="findings", recipe=recipe)
    explorer = Explorer(subject, options, directory=run, name=str(run.path), run_id=run_id, clock=clock, watcher=Silence())
    exploration = explorer.explore().exploration
    trials = {trial.task.state: trial for trial in read_trials(run.tried_path)}
    yield Explored(exploration.surfaces, read_operation_log(run.recorded), trials)
    assert list(left_behind(run_id)) == []


def told(vulnerabilities: tuple[Vulnerability, ...]) -> set[tuple[str, str, str]]:
    return {(each.rule, each.first, each.second) for each in vulnerabilities}


# ---- the counter of the Cloud Run guide ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    """Every model in every scope."""
    command = (sys.executable, "-m", "workloads.counter.train")
    environment = {"STEPS": "6", "STEP_SECONDS": "0", "SAVE_EVERY": "2"}
    recipe = Recipe(command=command, directory=str(ROOT), environment=environment)
    with explored(recipe, surfaces_of(MODELS, ()), Budget(seconds=None), tmp_path_factory.mktemp("counter")) as found:
        yield found


def test_the_counter_is_judged_under_every_model_and_scope(counter: Explored) -> None:
    own = [surface for surface in counter.surfaces if not surface.after]
    assert {(surface.model, surface.scope) for surface in own} == {(name, scope) for name in MODELS for scope in MODELS[name].scopes}
    for surface in own:
        assert surface.same_as or (surface.is_complete and surface.cut == 0 and surface.count(Outcome.UNKNOWN) == 0), surface


def test_the_counter_survives_every_kill_of_its_process(counter: Explored) -> None:
    for model in MODELS:
        surface = counter.surface(model, "process")
        assert (surface.count(Outcome.VALID), surface.count(Outcome.INVALID)) == (len(surface.states), 0), model
        assert len(surface.states) > 10


def test_the_counter_is_wrong_on_no_storage_but_one_that_loses_what_is_not_synced(counter: Explored) -> None:
    wrong = {(surface.model, surface.scope) for surface in counter.surfaces if surface.count(Outcome.INVALID)}
    assert wrong == {("posix-weak", "node")}


def test_the_missing_fsync_of_the_counter_is_named(counter: Explored) -> None:
    file = "local-job-task-*-checkpoint.txt.tmp"

    assert ("durable-before", f"write {file}", f"rename {file}") in told(counter.surface("posix-weak", "node").vulnerabilities)


# ---- Orbax -----------------------------------------------------------------------------------------------------------------------------

WHOLLY: tuple[SurfaceName, ...] = (("posix", "process"), ("gcsfuse-flat", "node"), ("gcsfuse-hns", "node"))
"""Judged to the last state."""

BY_REPRESENTATIVES: tuple[SurfaceName, ...] = (("posix-weak", "node"),)
"""Thousands of states: the most telling ones of it."""


@pytest.fixture(scope="module")
def orbax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    """Three saves, two are kept, recorded once; recovery from each state in warm processes, without crashes of recoveries."""
    directory, clock = tmp_path_factory.mktemp("orbax"), SystemClock()
    command = (sys.executable, str(JOBS / "saves_with_orbax.py"))
    recipe = Recipe(command=command, recover="saves_with_orbax:main", directory=str(JOBS), environment={"JAX_PLATFORMS": "cpu"})
    run, run_id = RunStore(directory / "runs", clock).create("explore-orbax", 0)
    surfaces: list[Surface] = []
    with LocalExecutor(run.blobs, jobs=2, run_id=run_id, clock=clock) as executor:
        recorder = Recorder(directory / "recorded", run.recorded, run_id)
        rehearsal = rehearse(
            Subject(name="orbax", recipe=recipe),
            recorder,
            lambda recipe: next(iter(executor.try_all([EMPTY], recipe, deadline_s=clock.monotonic_s() + RECORD_S_MAX))),
        )
        strip = timeline(rehearsal.replayed).strip
        with DataFile(rehearsal.replayed.log.data_path) as data, TrialsFile(run.tried_path) as trials:
            budget = Budget(seconds=None)
            campaign = Campaign(executor, rehearsal.recipe, trials, BlobStore(run.blobs), budget=budget, clock=clock, watcher=Silence())
            for names, ranks in ((WHOLLY, RANKS), (BY_REPRESENTATIVES, 1)):
                frontier = Frontier(rehearsal.replayed, data, rehearsal.expected(data), names)
                for rank in range(ranks):
                    campaign.judge(frontier, data, rank=rank, deadline_s=campaign.deadline_s(rank))
                surfaces += frontier.surfaces(strip, run_directory=str(run.path))
    tried = {trial.task.state: trial for trial in read_trials(run.tried_path)}
    yield Explored(tuple(surfaces), read_operation_log(run.recorded), tried)
    assert list(left_behind(run_id)) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
class TestOrbax:
    """From one recording, under four storages."""

    def test_on_a_local_directory_it_survives_every_kill_of_its_process(self, orbax: Explored) -> None:
        surface = orbax.surface("posix", "process")

        assert surface.is_complete
        assert {state.outcome for state in surface.states} == {Outcome.VALID}, surface.vulnerabilities
        assert len(surface.states) >= 150

    def test_on_flat_gcsfuse_a_lost_node_leaves_a_torn_step_that_is_taken_for_the_newest(self, orbax: Explored) -> None:
        torn = list(torn_second_steps(orbax))

        assert len(torn) >= 10
        for state in torn:
            assert state.outcome is Outcome.INVALID
            assert "keeps-what-was-acknowledged" in {broken.promise for broken in state.broken}
        assert any(
            rule == "atomic" and first.startswith("rename")
            for rule, first, _ in told(orbax.surface("gcsfuse-flat", "node").vulnerabilities)
        )

    def test_on_flat_gcsfuse_the_next_save_then_deletes_the_good_step(self, orbax: Explored) -> None:
        deleted = [state for state in torn_second_steps(orbax) if deletes_the_first_step(orbax.trials[state.state])]

        assert len(deleted) >= 5

    def test_the_files_that_nobody_syncs_are_named_by_the_weak_disk(self, orbax: Explored) -> None:
        named = " ".join(each.first for each in orbax.surface("posix-weak", "node").vulnerabilities)

        assert never_synced(orbax.log) >= NEVER_SYNCED
        assert "/_METADATA" in named
        assert "array_metadatas/process_" in named

    def test_hierarchical_gcsfuse_is_measured_and_reported(self, orbax: Explored) -> None:
        surface = orbax.surface("gcsfuse-hns", "node")
        judged = [state for state in surface.states if state.outcome is not None]

        assert len(judged) > 20
        assert not [state for state in judged if state.cause.kind == "renaming"], "a folder of a hierarchical bucket moves in one step"
        assert surface.count(Outcome.UNKNOWN) == 0
        for vulnerability in surface.vulnerabilities:
            assert vulnerability.assumed, "what rests on a row that nobody confirmed says so"


def torn_second_steps(orbax: Explored) -> Iterator[StateResult]:
    """States where the second step is half renamed, is chosen, and is not restored."""
    for state in orbax.surface("gcsfuse-flat", "node").states:
        if state.outcome is None or state.cause.kind != "renaming" or state.promised_step != 1:
            continue
        first = orbax.trials[state.state].tried.first
        if first is not None and first.chosen_step == 2 and first.restored_step <= 0:
            yield state


def deletes_the_first_step(trial: Trial) -> bool:
    first = trial.tried.first
    assert first is not None
    was_there = any(piece.path == "1/_CHECKPOINT_METADATA" for piece in trial.task.pieces)
    return was_there and bool(first.saves) and not any(path.startswith("1/") for path in first.left)


def never_synced(log: OperationLog) -> set[str]:
    """Names of files that were written and that no sync covers."""
    names = {entry.node: entry.path.rpartition("/")[2] for entry in log.entries if isinstance(entry, Created)}
    written: dict[int, int] = {}
    for entry in log.entries:
        if isinstance(entry, Wrote):
            written[entry.node] = entry.index
        elif isinstance(entry, Synced):
            written.pop(entry.node, None)
    return {names[node] for node in written}
