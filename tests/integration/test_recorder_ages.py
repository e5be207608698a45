"""What comes from outside, or was there, keeps its place in the order of times."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.explore.models import MODELS
from harness.explore.replay import replay
from harness.explore.trees import BranchTree
from tests.integration.recorded import Recorded, Stage

TICK = "tick = lambda: time.sleep(0.02)  # the kernel counts by milliseconds\n"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def by_change(recorded: Recorded) -> list[str]:
    """Paths in the order in which a state has its times."""
    *_, last = MODELS["posix"].whole(replay(recorded.log), "process")
    return BranchTree(last.system.tree()).by_change()


def real_order(root: Path) -> list[str]:
    found = sorted(root.rglob("*"), key=lambda path: path.lstat().st_mtime_ns)
    return [str(path.relative_to(root)) for path in found]


@pytest.mark.parametrize(
    "act",
    [
        "make(outside + '/old'); tick(); make('new'); os.rename(outside + '/old', 'old')",
        "make(outside + '/old'); tick(); make('new'); os.link(outside + '/old', 'old')",
        """make('first'); tick(); make(outside + '/b'); tick(); make(outside + '/a'); tick(); make('last')
for name in 'ab': os.rename(outside + '/' + name, name)""",
        """os.mkdir(outside + '/d'); make(outside + '/d/z'); tick(); make('m'); tick(); make(outside + '/d/a'); tick(); make('n')
os.rename(outside + '/d', 'd')""",
        "make(outside + '/old'); os.utime(outside + '/old', (2e8, 2e8)); make('new'); os.rename(outside + '/old', 'old')",
    ],
)
def test_what_is_moved_in_is_as_old_as_it_is(stage: Stage, act: str) -> None:
    recorded = stage.run(TICK + act)

    assert by_change(recorded) == real_order(stage.root)


def test_an_empty_file_that_is_emptied_again_is_the_newest(stage: Stage) -> None:
    recorded = stage.run(TICK + "make('a', b''); tick(); make('b'); tick(); make('a', b'')")

    assert by_change(recorded) == real_order(stage.root) == ["b", "a"]


def test_what_was_there_is_as_old_as_it_is(stage: Stage) -> None:
    for number, name in enumerate("bdca"):
        path = stage.root / name
        path.write_text("x")
        os.utime(path, (1e9 + number, 1e9 + number))

    assert by_change(stage.run("make('e')")) == ["b", "d", "c", "a", "e"]
