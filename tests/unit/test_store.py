"""The run directory: made once for each run, written whole or not at all, and known to be running or not."""

import contextlib
import os
import select
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import store as store_module
from harness.clock import ManualClock
from harness.errors import StoreError, UnknownNameError
from harness.store import Owner, RunDirectory, RunStore, open_run, stamp
from harness.undo import NothingToUndo, identify


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs", ManualClock())


@pytest.fixture
def run(store: RunStore) -> RunDirectory:
    return store.create("a-b", 7)[0]


# ---- names -----------------------------------------------------------------------------------------------------------


def test_a_run_lies_under_its_scenario_its_time_and_its_seed(store: RunStore):
    directory, run_id = store.create("a-b", 7)
    assert directory.path == store.root / "a-b" / "20260101T000000.000Z-7"
    assert directory.name == "a-b/20260101T000000.000Z-7"
    assert all(folder.is_dir() for folder in (directory.checkpoints, directory.kept, directory.logs))
    owner = directory.owner()
    assert owner == Owner(run_id=run_id, process=identify([os.getpid()])[0], host=os.uname().nodename)


def test_runs_that_begin_in_the_same_millisecond_are_told_apart(store: RunStore):
    made = [store.create("a-b", 7) for _ in range(3)]
    assert [directory.path.name.removeprefix("20260101T000000.000Z-7") for directory, _ in made] == ["", "-2", "-3"]
    assert len({run_id for _, run_id in made}) == 3


def test_more_of_them_than_anybody_means_is_an_error(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store_module, "NAME_ATTEMPTS_MAX", 2)
    store.create("a-b", 7)
    store.create("a-b", 7)
    with pytest.raises(StoreError, match="2 runs named"):
        store.create("a-b", 7)


CREATE_MANY = """
store = RunStore(Path(sys.argv[1]), ManualClock())
input()
for _ in range(20):
    print(store.create("a-b", 7)[0].path.name)
"""


def start(script: str, root: Path) -> subprocess.Popen[str]:
    """Another process of the harness; it begins when it is told to go."""
    imports = "import sys\nfrom pathlib import Path\nfrom harness.clock import ManualClock\nfrom harness.store import RunStore\n"
    command = [sys.executable, "-c", imports + script, str(root)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_never_get_one_directory(tmp_path: Path):
    processes = [start(CREATE_MANY, tmp_path) for _ in range(2)]
    for process in processes:
        tell(process)
    names = [name for process in processes for name in process.communicate()[0].split()]
    assert len(names) == len(set(names)) == 40


@given(st.lists(st.floats(0, 4e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)), min_size=2, max_size=2))
def test_stamps_sort_as_the_moments_do(moments: list[datetime]):
    early, late = sorted(moments)
    assert stamp(early) <= stamp(late)
    assert len(stamp(early)) == len("20260101T000000.000Z")


# ---- documents -------------------------------------------------------------------------------------------------------


def test_a_document_is_replaced_whole(run: RunDirectory):
    run.write(run.verdict_path, b"old")
    run.write(run.verdict_path, b"new")
    assert run.verdict_path.read_bytes() == b"new"
    assert not list(run.path.glob("*.tmp"))


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_document_and_nothing_else(run: RunDirectory, failing: str, monkeypatch: pytest.MonkeyPatch):
    run.write(run.verdict_path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync", fail) if failing == "fsync" else (Path, "replace", fail)))
    with pytest.raises(StoreError, match=r"cannot write .*verdict\.json: No space left on device"):
        run.write(run.verdict_path, b"new")
    assert run.verdict_path.read_bytes() == b"old"
    assert not list(run.path.glob("*.tmp"))


def test_what_is_written_is_durable_before_it_has_its_name(run: RunDirectory, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    real_fsync, real_replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (told.append("fsync"), real_fsync(descriptor))[1])
    monkeypatch.setattr(Path, "replace", lambda self, target: (told.append("replace"), real_replace(self, target))[1])
    run.write(run.verdict_path, b"x")
    assert told == ["fsync", "replace"]


def test_a_script_can_be_run(run: RunDirectory):
    run.write_script(run.replay_path, "#!/bin/sh\n")
    assert stat.S_IMODE(run.replay_path.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_named(tmp_path: Path):
    (tmp_path / "runs").write_text("not a directory")
    blocked = RunStore(tmp_path / "runs", ManualClock())
    with pytest.raises(StoreError, match=r"make a run directory in .*/runs/a-b: Not a directory"):
        blocked.create("a-b", 0)
    with pytest.raises(StoreError, match="lock"), blocked.golden_lock("key"):
        raise AssertionError("it was never held")
    run = RunDirectory(tmp_path / "runs")
    with pytest.raises(StoreError, match=r"write .*verdict\.json"):
        run.write(run.verdict_path, b"x")
    assert blocked.runs() == []


# ---- whose run it is -------------------------------------------------------------------------------------------------


def test_a_run_is_running_until_it_is_judged(run: RunDirectory):
    assert run.is_running()
    assert not run.is_over()
    run.write(run.verdict_path, b"{}")
    assert run.is_over()
    assert not run.is_running()


def test_a_run_whose_owner_is_gone_is_not_running(run: RunDirectory):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (process,) = identify([child.pid])
        run.write(run.owner_path, msgspec.json.encode(Owner(run_id="x", process=process)))
        assert run.is_running()
    finally:
        child.communicate(b"\n")
    assert not run.is_running()


@pytest.mark.parametrize("data", [None, b"", b'{"run_id":"x"', b"\xff", b"[]"])
def test_a_directory_that_was_torn_at_its_beginning_is_nobody_s(run: RunDirectory, data: bytes | None):
    run.owner_path.unlink()
    if data is not None:
        run.owner_path.write_bytes(data)
    assert run.owner() is None
    assert not run.is_running()


def test_checkpoints_are_removed_and_what_is_gone_is_no_error(run: RunDirectory):
    (run.checkpoints / "x").write_text("x")
    run.remove_checkpoints()
    run.remove_checkpoints()
    assert not run.checkpoints.exists()
    assert not run.kept.exists()
    assert run.owner() is not None


def test_the_journal_of_undos_lies_in_the_run(run: RunDirectory):
    run.undo.owe("x", NothingToUndo(why="y"))
    assert run.undo_path.exists()
    assert [entry.injection for entry in run.undo.owed()] == ["x"]


# ---- many runs -------------------------------------------------------------------------------------------------------


def test_all_runs_are_found_uninterrupted_ones_too(store: RunStore):
    paths = {store.create("a-b", 0)[0].path, store.create("c-d", 0)[0].path, store.create_golden("key", "first")[0].path}
    (store.root / "a-b" / "no-run").mkdir()
    assert {found.path for found in store.runs()} == paths
    assert RunStore(store.root / "none", ManualClock()).runs() == []


def test_an_uninterrupted_run_is_made_anew_in_its_place(store: RunStore):
    first, one = store.create_golden("key", "first")
    (first.logs / "old").write_text("x")
    second, other = store.create_golden("key", "first")
    assert second.path == first.path == store.golden("key", "first").path
    assert not (second.logs / "old").exists()
    assert one != other


def test_a_run_is_opened_by_its_path_and_a_wrong_one_is_answered_with_its_neighbours(run: RunDirectory):
    with pytest.raises(UnknownNameError, match="no run directory is named"):
        open_run(run.path)
    run.write(run.scenario_path, b"{}")
    assert open_run(run.path).path == run.path
    with pytest.raises(UnknownNameError, match=run.path.name):
        open_run(run.path.with_name("20260101T000000.000Z-8"))
    with pytest.raises(UnknownNameError, match="known: none"):
        open_run(run.path / "no" / "run")


HOLD = """
with RunStore(Path(sys.argv[1]), ManualClock()).golden_lock("key"):
    print("held", flush=True)
    input()
"""


def test_a_lock_is_held_against_other_processes_and_freed_by_their_death(tmp_path: Path):
    holder, waiter = start(HOLD, tmp_path), None
    try:
        assert hear(holder) == "held"
        waiter = start(HOLD, tmp_path)
        assert waiter.stdout is not None
        assert select.select([waiter.stdout], [], [], 0.5)[0] == []
        with RunStore(tmp_path, ManualClock()).golden_lock("another key"):
            pass
        holder.kill()
        assert hear(waiter) == "held"
        tell(waiter)
    finally:
        for process in filter(None, (holder, waiter)):
            process.kill()
            process.communicate()


def test_whoever_waits_for_a_lock_is_told_for_whom(tmp_path: Path):
    holder = start(HOLD, tmp_path)
    told: list[str] = []

    def let_go(why: str) -> None:
        told.append(why)
        holder.kill()

    try:
        assert hear(holder) == "held"
        with RunStore(tmp_path, ManualClock()).golden_lock("key", waits=let_go):
            pass
        with RunStore(tmp_path, ManualClock()).golden_lock("key", waits=told.append):
            pass
    finally:
        holder.kill()
        holder.communicate()
    assert told == [f"waits for process {holder.pid}, which makes the uninterrupted run of key"]


def test_a_lock_that_a_dead_harness_has_left_to_its_worker_is_told(tmp_path: Path):
    dead = msgspec.structs.replace(identify([os.getpid()])[0], started_s=-1000.0)
    told: list[str] = []
    first, second = RunStore(tmp_path, ManualClock(), overseer=dead), RunStore(tmp_path, ManualClock())

    with contextlib.ExitStack() as held:
        held.enter_context(first.golden_lock("a-job-0123"))

        def let_go(why: str) -> None:
            told.append(why)
            held.close()

        with second.golden_lock("a-job-0123", waits=let_go):
            pass

    made = f"waits for process {os.getpid()}, which makes the uninterrupted run of a-job"
    assert told == [f"{made}, whose harness has died; `harness clean` ends it"]


def test_the_result_of_a_gate_has_a_directory_of_its_own_and_is_no_run(tmp_path):
    store = RunStore(tmp_path, ManualClock())
    first, second = store.create_gate(), store.create_gate()

    assert first != second
    assert {first.parent, second.parent} == {tmp_path / "gates"}
    assert store.runs() == []


def test_where_no_directory_of_a_gate_can_be_made_it_is_an_error_of_the_store(tmp_path):
    (tmp_path / "gates").touch()

    with pytest.raises(StoreError, match="cannot make a directory in"):
        RunStore(tmp_path, ManualClock()).create_gate()
