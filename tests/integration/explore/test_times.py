"""A job that goes on from the newest file finds in each state the file that was the newest: a right one is valid, a wrong one is found."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options
from harness.explore.recipe import Recipe
from harness.explore.result import Exploration, StateResult
from harness.explore.subject import Subject
from harness.store import RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.test_exploring import Silence

JOB = """
import json, os, pathlib
root = pathlib.Path(os.environ['CHECKPOINT_DIR'])
found = sorted(root.glob('slot_*'), key=lambda path: path.stat().st_mtime)
step = json.loads(found[-1].read_text()) if found else 0
print(f'resumed from step {step}', flush=True)
while step < 4:
    step += 1
    print(f'step {step}', flush=True)
    save(root / f'slot_{"dbca"[step % SLOTS]}', json.dumps(step))
    print(f'saved {step}', flush=True)
(root / 'final').write_text(str(step))
"""
"""Names tell nothing of the order."""

BY_RENAME = """
SLOTS = 4
def save(path, content):
    path.with_name('tmp').write_text(content)
    path.with_name('tmp').replace(path)
"""

IN_PLACE = """
SLOTS = 2
def save(path, content):
    path.write_text(content)
"""

MARKS = """
import json, os, pathlib
root = pathlib.Path(os.environ['CHECKPOINT_DIR'])
marks = sorted(root.glob('*.mark'), key=lambda path: path.stat().st_mtime_ns)
step = int(marks[-1].with_suffix('.json').read_text()) if marks else 0
print(f'resumed from step {step}', flush=True)
while step < 4:
    step += 1
    print(f'step {step}', flush=True)
    slot = root / 'ba'[step % 2]
    mark(slot, lambda: save(slot.with_suffix('.json'), str(step)))
    print(f'saved {step}', flush=True)
save(root / 'final', str(step))
"""
"""The same bytes in a mark again and again: only its time tells."""

AFTER_DATA = """
def mark(slot, save_data):
    save_data()
    save(slot.with_suffix('.mark'), 'done')
"""

BEFORE_DATA = """
def mark(slot, save_data):
    save(slot.with_suffix('.mark'), 'done')
    save_data()
"""

EMPTIED = """
def mark(slot, save_data):
    save_data()
    open(slot.with_suffix('.mark'), 'w').close()
"""

LOGS = {"step": r"^step (?P<step>\d+)", "saved": r"saved (?P<step>\d+)", "resumed": r"resumed from step (?P<step>\d+)"}


@pytest.fixture
def run_ids() -> Iterator[list[str]]:
    run_ids: list[str] = []
    yield run_ids
    assert [left for run_id in run_ids for left in left_behind(run_id)] == []


def explore(code: str, runs: Path, run_ids: list[str], *, job: str = JOB) -> Exploration:
    clock = SystemClock()
    directory, run_id = RunStore(runs, clock).create("explore-times", 0)
    run_ids.append(run_id)
    recipe = Recipe(command=(sys.executable, "-S", "-c", code + job), patterns=LOGS, result="{checkpoint_dir}/final")
    subject = Subject(name="times", recipe=recipe, speaks_protocol=False)
    options = Options(surfaces=(("posix", "process"),), budget=Budget(seconds=None), jobs=2)
    explorer = Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=clock, watcher=Silence())
    return explorer.explore().exploration


def invalid(exploration: Exploration) -> list[StateResult]:
    return [state for state in exploration.surfaces[0].states if state.outcome is Outcome.INVALID]


def test_a_right_job_that_takes_the_newest_file_is_valid(tmp_path: Path, run_ids: list[str]) -> None:
    exploration = explore(BY_RENAME, tmp_path, run_ids)

    assert (exploration.outcome, exploration.reasons) == (Outcome.VALID, ())


def test_a_newest_file_that_is_torn_is_found_whatever_its_name(tmp_path: Path, run_ids: list[str]) -> None:
    exploration = explore(IN_PLACE, tmp_path, run_ids)

    assert exploration.outcome is Outcome.INVALID
    assert {state.moments[0].point.path_class for state in invalid(exploration)} == {"slot_b", "slot_d"}


@pytest.mark.parametrize("mark", [AFTER_DATA, EMPTIED])
def test_a_right_job_whose_marks_differ_by_their_times_only_is_valid(mark: str, tmp_path: Path, run_ids: list[str]) -> None:
    exploration = explore(BY_RENAME + mark, tmp_path, run_ids, job=MARKS)

    assert (exploration.outcome, exploration.reasons) == (Outcome.VALID, ())


def test_a_mark_that_is_the_newest_too_early_is_found(tmp_path: Path, run_ids: list[str]) -> None:
    exploration = explore(BY_RENAME + BEFORE_DATA, tmp_path, run_ids, job=MARKS)

    assert exploration.outcome is Outcome.INVALID
    assert {state.broken[0].promise for state in invalid(exploration)} >= {"keeps-what-was-acknowledged"}
