"""What a job tells by modes, times, attributes or sockets is in no state: nothing is claimed of it, and why is said."""

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
from tests.integration.explore.recipes import ROOT
from tests.integration.explore.test_unseen_writers import Silence

JOB = Path(__file__).with_name("jobs") / "marks_its_saves.py"

PATTERNS = {
    "step": r"^step (?P<step>\d+)",
    "saved": r"saved checkpoint at step (?P<step>\d+)",
    "resumed": r"resumed from step (?P<step>\d+)",
}


@pytest.fixture
def explore(tmp_path: Path) -> Iterator[Callable[[str], Exploration]]:
    """Explores the job, killed processes on a local disk only."""
    clock = SystemClock()
    run_ids: list[str] = []

    def explore(way: str) -> Exploration:
        command = (sys.executable, "-S", str(JOB), way)
        recipe = Recipe(command=command, directory=str(ROOT), environment={}, result="{checkpoint_dir}/result", patterns=PATTERNS)
        subject = Subject(name="marks-its-saves", recipe=recipe, speaks_protocol=False)
        options = Options(surfaces=(("posix", "process"),), budget=Budget(seconds=None, states=60), jobs=2)
        directory, run_id = RunStore(tmp_path / "runs", clock).create("explore-marks-its-saves", 0)
        run_ids.append(run_id)
        return (
            Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=clock, watcher=Silence()).explore().exploration
        )

    yield explore
    assert [line for run_id in run_ids for line in left_behind(run_id)] == []


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("mode", "chmod changes what its owner may do, and modes are not kept (number.2)"),
        ("attribute", "setxattr changes user.done, and attributes are not kept (number.2)"),
        ("time", "utimensat gives it another place in the order of times, and times are not kept (number.2)"),
        ("socket", "a socket was made (door)"),
    ],
)
def test_what_no_state_keeps_makes_the_result_unknown(explore: Callable[[str], Exploration], way: str, why: str) -> None:
    exploration = explore(way)

    assert exploration.outcome == "unknown"
    assert any(why in reason for reason in exploration.recorded.blind), exploration.recorded.blind


def test_copies_with_their_times_are_judged(explore: Callable[[str], Exploration]) -> None:
    exploration = explore("number")

    assert exploration.recorded.blind == ()
    assert exploration.outcome == "valid"
