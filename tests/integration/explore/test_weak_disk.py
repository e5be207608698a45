"""What is lost with a machine is found, from the most telling states where they show it, and a job that syncs all is not accused."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options
from harness.explore.recipe import Recipe
from harness.explore.result import Exploration
from harness.explore.subject import Subject
from harness.store import RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.recipes import ROOT
from tests.integration.explore.test_unseen_writers import Silence

JOB = Path(__file__).with_name("jobs") / "saves_on_a_weak_disk.py"

ALL, TELLING = Budget(seconds=None), Budget(seconds=0.01, representatives_s=120.0)
"""Every state, and only what must be judged."""

Explore = Callable[[str, Budget], Exploration]


@pytest.fixture
def explore(tmp_path: Path) -> Iterator[Explore]:
    """Explores the job, machines lost with a weak disk only."""
    run_ids: list[str] = []

    def explore(way: str, budget: Budget) -> Exploration:
        command = (sys.executable, "-S", str(JOB), way)
        recipe = Recipe(command=command, directory=str(ROOT), result="{checkpoint_dir}/final")
        options = Options(surfaces=(("posix-weak", "node"),), budget=budget, jobs=2)
        directory, run_id = RunStore(tmp_path / "runs", SystemClock()).create("explore-weak-disk", 0)
        run_ids.append(run_id)
        subject = Subject(name="weak-disk", recipe=recipe)
        explorer = Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=SystemClock(), watcher=Silence())
        return explorer.explore().exploration

    yield explore
    assert [line for run_id in run_ids for line in left_behind(run_id)] == []


@pytest.mark.parametrize(
    ("way", "budget", "must_hold"),
    [
        ("one_temporary_name", ALL, "`rename tmp` must be durable before the next `rename tmp`"),
        ("moving_in", TELLING, "`write model` must be durable before `move-in model`"),
        ("silent", TELLING, "`write tmp` must be durable before `rename tmp`"),
    ],
)
def test_what_a_lost_machine_takes_is_found(explore: Explore, way: str, budget: Budget, must_hold: str) -> None:
    found = explore(way, budget)

    assert found.outcome is Outcome.INVALID
    assert must_hold in " ".join(found.reasons)


def test_the_same_job_is_valid_where_it_syncs_what_it_moves_in(explore: Explore) -> None:
    found = explore("right", ALL)

    assert (found.outcome, found.reasons) == (Outcome.VALID, ())
