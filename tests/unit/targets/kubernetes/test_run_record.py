"""What a run has made is written down; runs take turns."""

import pytest
from msgspec import structs

from harness.clock import ManualClock
from harness.errors import StoreError, TargetUnavailableError
from harness.targets.kubernetes.leftovers import left_behind, remove_left_behind
from harness.targets.kubernetes.run_record import (
    TURN_S_MAX,
    Replaced,
    RunRecord,
    Turn,
    read_record,
    record_path,
    remove_record,
    write_record,
)

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


def test_what_is_no_record_is_none():
    write_record("c", RECORD)
    record_path("c", "run-1").write_bytes(b"{}")

    assert read_record("c", "run-1") is None


def test_a_record_that_cannot_be_made_durable_stops_the_run(tmp_path):
    (tmp_path / "cache").touch()

    with pytest.raises(StoreError):
        write_record("c", RECORD)
    with pytest.raises(StoreError):
        Turn("c").take(ManualClock())


def test_one_run_at_a_time():
    clock, first, second = ManualClock(), Turn("c"), Turn("c")

    said: list[str] = []

    assert first.take(clock, said.append) == 0.0
    assert said == []
    with pytest.raises(TargetUnavailableError, match="another run has held the cluster"):
        second.take(clock, said.append)
    assert said == ["waiting for another run on the cluster to end"]
    assert clock.monotonic_s() > TURN_S_MAX

    first.free()
    assert second.take(clock) == 0.0
    assert second.is_held
    second.free()
    second.free()


def test_another_cluster_is_another_turn():
    clock, first, second = ManualClock(), Turn("c"), Turn("d")

    first.take(clock)
    second.take(clock)

    first.free()
    second.free()


def test_a_turn_for_a_while_ends_with_it_unless_it_was_held_before():
    clock, turn = ManualClock(), Turn("c")

    with turn.held(clock):
        assert turn.is_held
    assert not turn.is_held

    turn.take(clock)
    with turn.held(clock):
        pass
    assert turn.is_held
    turn.free()


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


def test_of_a_run_that_nobody_knows_nothing_was_left():
    assert left_behind("run-9") == remove_left_behind("run-9", ManualClock()) == []
