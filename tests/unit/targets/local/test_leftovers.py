"""What a dead run left is looked for until nothing is found, and only what is gone is told as removed."""

import shutil
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.targets.local import leftovers
from harness.targets.local.leftovers import left_behind, remove_left_behind
from harness.targets.local.scratch import find_scratch_directories, make_scratch_directory


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "find_processes", lambda _run: [])
    monkeypatch.setattr(leftovers, "end_processes", lambda _run, _clock: [])


def test_what_is_made_again_while_it_is_removed_is_removed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, made = make_scratch_directory("a-dead-run"), list[Path]()
    remove = leftovers.remove_scratch_directories

    def remove_while_somebody_makes_one_more(run_id: str) -> None:
        remove(run_id)
        if not made:
            made.append(make_scratch_directory(run_id))

    monkeypatch.setattr(leftovers, "remove_scratch_directories", remove_while_somebody_makes_one_more)

    removed = remove_left_behind("a-dead-run", ManualClock())

    assert removed == [f"removed scratch directory {path}" for path in (first, *made)]
    assert left_behind("a-dead-run") == []


def test_what_cannot_be_removed_is_not_told_as_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "remove_scratch_directories", lambda _run: None)
    make_scratch_directory("a-dead-run")
    try:
        assert remove_left_behind("a-dead-run", ManualClock()) == []
    finally:
        for path in find_scratch_directories("a-dead-run"):
            shutil.rmtree(path)
