"""A job whose checkpoint names itself by an absolute path is judged where it lies: what was recorded there answers for no copy."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.clock import SystemClock
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options
from harness.explore.own_path import NOTE
from harness.explore.recipe import Recipe
from harness.explore.replaying import replay_state
from harness.explore.result import Exploration
from harness.explore.subject import Subject
from harness.store import RunDirectory, RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.test_exploring import Silence

JOB = """
import os, pathlib, zlib
root = pathlib.Path(os.environ['CHECKPOINT_DIR'])
latest = root / 'latest'
def put(path, content):
    path.with_name('tmp').write_bytes(content)
    path.with_name('tmp').replace(path)
step = int((root / read(latest)).read_text()) if os.path.lexists(latest) else 0
print(f'resumed from step {step}', flush=True)
while step < 4:
    step += 1
    print(f'step {step}', flush=True)
    save(root / f'slot_{step % 2 if WRONG else step}', step)
    print(f'saved {step}', flush=True)
put(root / 'final', str(step).encode())
"""

FILE = """
def read(latest):
    return latest.read_text()
def point(path):
    put(latest, str(path).encode())
"""

LINK = """
def read(latest):
    return os.readlink(latest)
def point(path):
    (root / 'link').unlink(missing_ok=True)
    os.symlink(path, root / 'link')
    (root / 'link').rename(latest)
"""

COMPRESSED = """
def read(latest):
    return zlib.decompress(latest.read_bytes()).decode()
def point(path):
    put(latest, zlib.compress(str(path).encode()))
"""

RIGHT = """
WRONG = False
def save(path, step):
    put(path, str(step).encode())
    point(path)
"""

IN_PLACE = """
WRONG = True
def save(path, step):
    if step == 4:
        point(path)
    path.write_text(str(step))
    point(path)
"""
"""The last save writes what the pointer names already."""

LOGS = {"step": r"^step (?P<step>\d+)", "saved": r"saved (?P<step>\d+)", "resumed": r"resumed from step (?P<step>\d+)"}


@pytest.fixture
def run_ids() -> Iterator[list[str]]:
    run_ids: list[str] = []
    yield run_ids
    assert [left for run_id in run_ids for left in left_behind(run_id)] == []


def explore(code: str, runs: Path, run_ids: list[str]) -> tuple[Exploration, RunDirectory]:
    clock = SystemClock()
    directory, run_id = RunStore(runs, clock).create("explore-own-path", 0)
    run_ids.append(run_id)
    recipe = Recipe(command=(sys.executable, "-S", "-c", code + JOB), patterns=LOGS, result="{checkpoint_dir}/final")
    subject = Subject(name="own-path", recipe=recipe, speaks_protocol=False)
    options = Options(surfaces=(("posix", "process"),), budget=Budget(seconds=None), jobs=2)
    explorer = Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=clock, watcher=Silence())
    exploration = explorer.explore().exploration
    directory.write(directory.exploration_path, msgspec.json.encode(exploration))
    return exploration, directory


@pytest.mark.parametrize("pointer", [FILE, LINK])
def test_a_right_job_that_names_its_checkpoint_by_its_absolute_path_is_valid(pointer: str, tmp_path: Path, run_ids: list[str]) -> None:
    exploration, _ = explore(RIGHT + pointer, tmp_path, run_ids)

    assert (exploration.outcome, exploration.reasons) == (Outcome.VALID, ())
    assert NOTE in exploration.recorded.notes
    assert exploration.judge.endswith("1 at a time")


@pytest.mark.parametrize("pointer", [FILE, LINK])
def test_a_torn_checkpoint_is_found_through_a_pointer_by_absolute_path(pointer: str, tmp_path: Path, run_ids: list[str]) -> None:
    exploration, _ = explore(IN_PLACE + pointer, tmp_path, run_ids)

    assert exploration.outcome is Outcome.INVALID
    assert exploration.surfaces[0].count(Outcome.INVALID)


def test_a_pointer_that_cannot_be_read_makes_it_unknown_and_never_valid(tmp_path: Path, run_ids: list[str]) -> None:
    for code in (RIGHT, IN_PLACE):
        exploration, _ = explore(code + COMPRESSED, tmp_path / str(len(code)), run_ids)

        assert exploration.outcome is Outcome.UNKNOWN
        assert any("seems to name its directory by its path" in reason for reason in exploration.reasons)


def test_such_a_state_is_tried_again_at_that_path_once_it_has_gone(tmp_path: Path, run_ids: list[str]) -> None:
    exploration, directory = explore(IN_PLACE + FILE, tmp_path, run_ids)
    wrong = next(state for state in exploration.surfaces[0].states if state.outcome is Outcome.INVALID)

    again = replay_state(directory, wrong.state, run_id="own-path-again", clock=SystemClock())

    assert again.outcome is Outcome.INVALID
    assert all(each.is_the_same for each in again.again)
    run_ids.append("own-path-again")
