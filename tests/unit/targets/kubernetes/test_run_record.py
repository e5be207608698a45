"""What a run has made is written down."""

from pathlib import Path

import pytest
from msgspec import structs

from harness.clock import ManualClock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind.cluster import state_path
from harness.targets.kubernetes.leftovers import left_behind, remove_left_behind
from harness.targets.kubernetes.run_record import (
    Replaced,
    RunRecord,
    read_record,
    record_path,
    recorded_runs,
    remove_record,
    write_record,
)
from harness.undo import NothingToUndo, RestoreCluster, UndoJournal
from tests.unit.clusters import cluster_at

RECORD = RunRecord(
    run_id="run-1",
    namespace="harness-run-1",
    directory="/shared/runs/run-1",
    checkpoint_dir="/runs/x/checkpoints",
    replaced=(Replaced(api_version="kueue.x-k8s.io/v1beta1", plural="clusterqueues", name="cluster-queue", before="{}"),),
)


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))


def test_a_record_is_read_as_it_was_written_until_it_is_removed():
    write_record("c", RECORD)
    assert read_record("c", "run-1") == RECORD
    assert read_record("c", "run-2") is None
    assert read_record("d", "run-1") is None

    remove_record("c", "run-1")
    remove_record("c", "run-1")
    assert read_record("c", "run-1") is None


def test_a_record_that_cannot_be_read_is_told_and_stays():
    write_record("chaos-harness", RECORD)
    record_path("chaos-harness", "run-1").write_bytes(b"{}")

    with pytest.raises(StoreError, match="not the record of a run"):
        read_record("chaos-harness", "run-1")
    assert "not the record of a run" in left_behind("run-1")[0]
    with pytest.raises(StoreError):
        remove_left_behind("run-1", ManualClock())
    record_path("chaos-harness", "run-1").unlink()
    record_path("chaos-harness", "run-1").mkdir()
    with pytest.raises(StoreError, match="directory"):
        read_record("chaos-harness", "run-1")
    assert recorded_runs("chaos-harness") == ["run-1"]


def test_a_cluster_whose_state_cannot_be_read_is_not_gone(tmp_path):
    write_record("chaos-harness", structs.replace(RECORD, directory=str(tmp_path / "d")))
    state_path().write_bytes(b"{}")

    with pytest.raises(StoreError, match="no state that we know"):
        remove_left_behind("run-1", ManualClock())
    assert recorded_runs("chaos-harness") == ["run-1"]


def test_of_a_cluster_that_has_another_in_its_place_the_storage_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.leftovers.find_cluster", lambda: cluster_at(tmp_path))
    (tmp_path / "d").mkdir()
    write_record("chaos-harness", structs.replace(RECORD, directory=str(tmp_path / "d"), checkpoint_dir="", cluster_uid="the one before"))

    assert left_behind("run-1") == [f"directory {tmp_path / 'd'}"]
    assert remove_left_behind("run-1", ManualClock()) == []
    assert not (tmp_path / "d").exists()
    assert recorded_runs("chaos-harness") == []


def test_what_cannot_be_removed_keeps_its_record(tmp_path, monkeypatch):
    (tmp_path / "d").mkdir()
    write_record("chaos-harness", structs.replace(RECORD, directory=str(tmp_path / "d"), checkpoint_dir=""))

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        remove_left_behind("run-1", ManualClock())
    assert recorded_runs("chaos-harness") == ["run-1"]


def test_a_record_that_cannot_be_made_durable_stops_the_run(tmp_path):
    (tmp_path / "cache").touch()

    with pytest.raises(StoreError):
        write_record("c", RECORD)


def test_where_the_cluster_is_gone_the_checkpoints_come_home(tmp_path):
    shared, own = tmp_path / "shared" / "runs" / "run-1", tmp_path / "own"
    (shared / "checkpoints").mkdir(parents=True)
    (shared / "checkpoints" / "step-1").touch()
    own.symlink_to(shared / "checkpoints")
    write_record("chaos-harness", structs.replace(RECORD, directory=str(shared), checkpoint_dir=str(own)))

    assert left_behind("run-1") == [f"directory {shared}", f"checkpoints of {own}"]
    assert remove_left_behind("run-1", ManualClock()) == [f"moved checkpoints back to {own}"]

    assert (own / "step-1").exists()
    assert not own.is_symlink()
    assert not shared.exists()
    assert left_behind("run-1") == remove_left_behind("run-1", ManualClock()) == []


def test_of_a_run_of_which_the_storage_is_all_that_is_left_the_cluster_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.leftovers.find_cluster", lambda: cluster_at(tmp_path))
    shared, own = tmp_path / "shared" / "runs" / "run-1", tmp_path / "runs" / "own"
    (shared / "checkpoints").mkdir(parents=True)
    (shared / "checkpoints" / "step-1").touch()
    write_record("chaos-harness", structs.replace(RECORD, directory=str(shared), checkpoint_dir=str(own), is_storage_only=True))

    with pytest.raises(StoreError, match=r"the run directory .* is gone.*remove .*checkpoints; then run `harness clean`"):
        remove_left_behind("run-1", ManualClock())
    assert left_behind("run-1") == [f"directory {shared}", f"checkpoints of {own}"]
    own.parent.mkdir()
    assert remove_left_behind("run-1", ManualClock()) == [f"moved checkpoints back to {own}"]
    assert recorded_runs("chaos-harness") == []


def test_of_a_cluster_that_does_not_answer_nothing_is_taken_away_and_what_is_left_is_said(tmp_path, monkeypatch):
    problem = "the control plane of the cluster c is exited; run `harness up kind`"
    monkeypatch.setattr("harness.targets.kubernetes.leftovers.find_cluster", lambda: cluster_at(tmp_path))
    monkeypatch.setattr("harness.targets.kubernetes.leftovers.lasting_problem", lambda *_: problem)
    write_record("chaos-harness", structs.replace(RECORD, directory=str(tmp_path / "d")))

    with pytest.raises(
        TargetUnavailableError,
        match=r"stays, with its storage: the control plane .* is exited; run `harness up kind`, then `harness clean`",
    ):
        remove_left_behind("run-1", ManualClock())
    assert recorded_runs("chaos-harness") == ["run-1"]


def test_of_a_run_that_nobody_knows_nothing_was_left():
    assert left_behind("run-9") == remove_left_behind("run-9", ManualClock()) == []


def test_a_run_owes_what_its_faults_did_to_the_cluster_until_that_is_undone(tmp_path):
    journal = UndoJournal(tmp_path / "undo.jsonl")
    record = structs.replace(RECORD, journal=str(journal.path))
    assert not RECORD.owes()
    assert not record.owes()
    journal.owe("kill@0", NothingToUndo(why="the platform decides what comes next"))
    assert not record.owes()
    journal.owe("loss@0", RestoreCluster(cluster="c", actions=()))
    assert record.owes()
    journal.settle("loss@0")
    assert not record.owes()


def test_a_journal_that_cannot_be_read_may_owe_something(tmp_path):
    (tmp_path / "undo.jsonl").mkdir()

    assert structs.replace(RECORD, journal=str(tmp_path / "undo.jsonl")).owes()
