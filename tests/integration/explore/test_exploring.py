"""An exploration in a process of its own making: places, machines that cannot record, jobs with patterns."""

import contextlib
import fcntl
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.errors import HarnessError, UsageError
from harness.explore import exploring
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options, forget
from harness.explore.fixed_place import claimed
from harness.explore.judgement import Broken
from harness.explore.recipe import Recipe
from harness.explore.replaying import read_exploration, replay_state
from harness.explore.result import Exploration, Recorded
from harness.explore.subject import Subject
from harness.store import RunDirectory, RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.recipes import LINEAR, WARM

Explore = Callable[..., Exploration]


class Silence:
    """A watcher that tells nobody."""

    def recorded(self, recorded: Recorded) -> None: ...

    def planned(self, states: int) -> None: ...

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None: ...


class Explorations:
    """Makes explorations, and looks that nothing of them is left."""

    def __init__(self, runs: Path) -> None:
        self._store = RunStore(runs, SystemClock())
        self._run_ids: list[str] = []
        self.last = RunDirectory(runs)

    def explore(self, recipe: Recipe, **options: Any) -> Exploration:
        self.last, run_id = self._store.create("explore-job", 0)
        self._run_ids.append(run_id)
        explorer = Explorer(
            Subject(name="job", recipe=recipe),
            Options(**{"surfaces": (("posix", "process"),), "budget": Budget(seconds=10.0, representatives_s=60.0), "jobs": 2, **options}),
            directory=self.last,
            name=str(self.last.path),
            run_id=run_id,
            clock=SystemClock(),
            watcher=Silence(),
        )
        found = explorer.explore().exploration
        self.last.write(self.last.exploration_path, exploring.msgspec.json.encode(found))
        return found

    def close(self) -> None:
        assert [left for run_id in self._run_ids for left in left_behind(run_id)] == []


@pytest.fixture
def explorations(tmp_path: Path) -> Iterator[Explorations]:
    made = Explorations(tmp_path / "runs")
    yield made
    made.close()


def linear(**fields: Any) -> Recipe:
    return Recipe(**{**LINEAR, "recover": WARM, **fields})


def test_where_system_calls_cannot_be_recorded_nothing_is_claimed_and_why_is_said(
    explorations: Explorations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring, "recorder_available", lambda: "this sandbox forbids it")

    found = explorations.explore(linear())

    assert (found.outcome, found.surfaces) == (Outcome.UNKNOWN, ())
    assert (found.recorded.is_exact, found.recorded.saves) == (False, 3)
    assert "this sandbox forbids it" in found.reasons[0]


def test_a_replayed_state_is_judged_as_before(explorations: Explorations) -> None:
    found = explorations.explore(linear(), budget=Budget(seconds=None))
    assert found.outcome is Outcome.VALID, found.reasons
    recovered = next(state for surface in found.surfaces if surface.after for state in surface.states)

    for state in (found.surfaces[0].states[-1], recovered):
        replayed = replay_state(explorations.last, state.state[:12], run_id="replay", clock=SystemClock())

        assert replayed.differing == ()
        assert replayed.again
        assert all(again.is_the_same and again.outcome is Outcome.VALID for again in replayed.again)
    assert left_behind("replay") == []


def test_what_a_replay_needs_is_there_until_it_is_forgotten(explorations: Explorations) -> None:
    explorations.explore(linear())
    state = read_exploration(explorations.last).surfaces[0].states[0].state

    forget(explorations.last)

    with pytest.raises(UsageError, match="with --keep"):
        replay_state(explorations.last, state, run_id="replay", clock=SystemClock())


def test_a_place_is_left_as_it_was_found_whatever_happens(tmp_path: Path) -> None:
    for path, was_there in ((tmp_path / "there", True), (tmp_path / "new", False)):
        if was_there:
            path.mkdir()
        with contextlib.suppress(ZeroDivisionError), claimed(str(path)):
            (path / "deep").mkdir(parents=True)
            raise ZeroDivisionError
        assert path.exists() is was_there
        assert not was_there or list(path.iterdir()) == []


def test_a_place_is_of_one_exploration_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "place")

    with claimed(path), pytest.raises(UsageError, match="is being explored by another harness"), claimed(path):
        pass
    with claimed(path):
        pass


def test_a_directory_above_that_has_gone_is_made_and_removed_again(tmp_path: Path) -> None:
    place = tmp_path / "gone" / "place"
    with pytest.raises(UsageError, match="is not there, or not writable"), claimed(str(place)):
        pass

    with claimed(str(place), makes_parent=True):
        place.mkdir()
    assert list(tmp_path.iterdir()) == []

    place.parent.mkdir()
    with claimed(str(place), makes_parent=True):
        pass
    assert list(tmp_path.iterdir()) == [place.parent]


def test_who_waits_for_a_place_gets_it_when_the_other_is_done(tmp_path: Path) -> None:
    path, order = str(tmp_path / "place"), list[str]()

    def wait() -> None:
        with claimed(path, waits=True):
            order.append("second")

    with claimed(path):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join(60.0)

    assert order == ["first", "second"]


def test_nothing_but_the_place_is_there_while_it_is_ours_and_nothing_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(locks))
    path = str(tmp_path / "place")

    with claimed(path):
        assert len(list(locks.iterdir())) == 1
        with pytest.raises(UsageError), claimed(path):
            pass
        assert len(list(locks.iterdir())) == 1

    assert list(locks.iterdir()) == []


def test_a_place_that_was_given_up_while_we_asked_for_it_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path, lock = str(tmp_path / "place"), fcntl.flock

    def lock_late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        next(tmp_path.glob("*.lock")).unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", lock_late)

    with claimed(path), pytest.raises(UsageError, match="is being explored by another harness"), claimed(path):
        pass


def test_a_full_place_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")

    with pytest.raises(UsageError, match="is not empty"), claimed(str(tmp_path)):
        pass

    assert (tmp_path / "precious").read_text() == "x"


SAVES_BY_RENAME = """
import json, os, pathlib
root = pathlib.Path(os.environ['CHECKPOINT_DIR'])
checkpoint = root / 'checkpoint'
step = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
for step in range(step + 1, 4):
    (root / 'tmp').write_text(json.dumps(step))
    (root / 'tmp').replace(checkpoint)
(root / 'final').write_text(str(step))
"""


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"result": "{checkpoint_dir}/finl"}, r"the uninterrupted run left no \{checkpoint_dir\}/finl; correct the name"),
        ({"inspect": ("sh", "-c", "exit 1")}, "of what the uninterrupted run left `sh -c exit 1` does not say the step"),
        ({"inspect": ("echo", "10")}, "of what the uninterrupted run left `echo 10` does not say the step"),
    ],
)
def test_a_check_that_would_look_at_nothing_is_refused(explorations: Explorations, asked: dict[str, Any], why: str) -> None:
    recipe = Recipe(**{"command": (sys.executable, "-S", "-c", SAVES_BY_RENAME), "result": "{checkpoint_dir}/final", **asked})

    with pytest.raises(UsageError, match=why):
        explorations.explore(recipe)


@pytest.mark.parametrize(("size", "said"), [("1 << 40", "the job leaves"), ("9", "for a while the job keeps a file of")])
def test_a_state_that_is_too_large_is_refused_before_it_is_read(explorations: Explorations, size: str, said: str) -> None:
    sparse = "import os; file = os.open(os.environ['CHECKPOINT_DIR'] + '/final', os.O_CREAT | os.O_WRONLY)"
    resized = f"{sparse}; os.truncate(file, 1 << 40); os.truncate(file, {size})"

    with pytest.raises(UsageError, match=rf"{said} 1,099,511,627,776 bytes.*; explore a smaller run"):
        explorations.explore(Recipe(command=(sys.executable, "-S", "-c", resized)))


def test_a_directory_that_is_too_deep_is_refused_and_nothing_of_it_stays(explorations: Explorations) -> None:
    deep = "import os; os.chdir(os.environ['CHECKPOINT_DIR']); [(os.mkdir('d'), os.chdir('d')) for _ in range(1100)]"

    with pytest.raises(HarnessError, match="explore a directory that is less deep"):
        explorations.explore(Recipe(command=(sys.executable, "-S", "-c", deep)))


def test_a_silent_job_that_never_saves_is_unknown_and_one_that_saves_is_valid(explorations: Explorations) -> None:
    never = "import os; open(os.environ['CHECKPOINT_DIR'] + '/final', 'w').write('9')"
    saves, saves_nothing = (
        Recipe(command=(sys.executable, "-S", "-c", code), result="{checkpoint_dir}/final") for code in (SAVES_BY_RENAME, never)
    )

    assert explorations.explore(saves).outcome is Outcome.VALID
    found = explorations.explore(saves_nothing)

    assert found.outcome is Outcome.UNKNOWN
    assert "nothing but its result, `final`, was written" in found.reasons[0]


def test_a_process_that_outlives_the_job_is_ended_and_nothing_is_claimed(explorations: Explorations) -> None:
    code = (
        "import os, subprocess, sys, pathlib; root = pathlib.Path(os.environ['CHECKPOINT_DIR']);"
        "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'], stdin=-3, stdout=-3, stderr=-3, start_new_session=True);"
        "(root / 'final').write_text('x')"
    )

    found = explorations.explore(Recipe(command=(sys.executable, "-S", "-c", code), result="{checkpoint_dir}/final"))

    assert found.outcome is Outcome.UNKNOWN
    assert "processes outlived the job" in found.reasons[0]
