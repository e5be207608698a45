"""A recovery that comes through and cannot be seen, or does not come through when it is recorded, leaves nothing valid."""

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
from tests.integration.explore.test_exploring import Silence

JOB = """
import json, mmap, os, pathlib
root = pathlib.Path(os.environ['CHECKPOINT_DIR'])
checkpoint = root / 'checkpoint'
step = 0
if checkpoint.exists():
    step = json.loads(checkpoint.read_text())
    restore()
while step < 2:
    step += 1
    (root / 'tmp').write_text(json.dumps(step))
    (root / 'tmp').replace(checkpoint)
(root / 'final').write_text(str(step))
"""

SEEN = "def restore(): (root / 'lock').touch(); (root / 'lock').unlink()"

MAPS = """
def restore():
    with open(root / 'index', 'w+b') as file:
        file.truncate(4096)
        mmap.mmap(file.fileno(), 4096).write(b'x')
"""

FILTERS = "pathlib.Path('/proc/self/status').read_text().partition('Seccomp_filters:')[2].split()[0]"
"""How many filters of system calls a process is under: one more when it is recorded."""

FAILS_WHEN_RECORDED = """
def restore():
    assert FILTERS == 'USUAL', 'somebody looks'
"""

Explore = Callable[[str], Exploration]


@pytest.fixture
def explore(tmp_path: Path) -> Iterator[Explore]:
    run_ids: list[str] = []

    def explore(code: str) -> Exploration:
        clock = SystemClock()
        directory, run_id = RunStore(tmp_path, clock).create("explore-unseen", 0)
        run_ids.append(run_id)
        recipe = Recipe(command=(sys.executable, "-S", "-c", code + JOB), result="{checkpoint_dir}/final")
        options = Options(surfaces=(("posix", "process"),), budget=Budget(seconds=None), jobs=2)
        subject = Subject(name="unseen", recipe=recipe, speaks_protocol=False)
        explorer = Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=clock, watcher=Silence())
        return explorer.explore().exploration

    yield explore
    assert [left for run_id in run_ids for left in left_behind(run_id)] == []


def test_a_recovery_that_is_seen_is_valid(explore: Explore) -> None:
    exploration = explore(SEEN)

    assert (exploration.outcome, exploration.reasons, exploration.recoveries_cut) == (Outcome.VALID, (), 0)
    assert any(surface.after for surface in exploration.surfaces)


def test_a_recovery_that_writes_through_a_mapping_is_unknown(explore: Explore) -> None:
    exploration = explore(MAPS)

    assert exploration.outcome is Outcome.UNKNOWN
    assert (
        "recovery could not be recorded, so no crash in it was tried: a file is written through a shared mapping" in exploration.reasons[0]
    )


def test_a_recovery_that_fails_only_when_it_is_recorded_is_unknown(explore: Explore) -> None:
    usual = Path("/proc/self/status").read_text().partition("Seccomp_filters:")[2].split()[0]

    exploration = explore(FAILS_WHEN_RECORDED.replace("FILTERS", FILTERS).replace("USUAL", usual))

    assert exploration.outcome is Outcome.UNKNOWN
    assert "somebody looks" in exploration.reasons[0]
    assert "had come through without the recorder" in exploration.reasons[0]
