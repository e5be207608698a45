"""The page over all runs is there from the beginning and costs little."""

from pathlib import Path

import pytest

from harness.cli import standing_index
from harness.cli.standing_index import REST_RATIO, StandingIndex
from harness.clock import ManualClock
from harness.errors import StoreError
from harness.store import RunStore

WRITING_S = 0.5


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def written(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the page was written."""
    moments: list[float] = []

    def write(store: RunStore) -> Path:
        moments.append(clock.monotonic_s())
        clock.sleep(WRITING_S)
        return store.index_path

    monkeypatch.setattr(standing_index, "write_index", write)
    return moments


def test_it_is_renewed_when_a_run_has_ended_and_rests_after_it_was_written(tmp_path: Path, clock: ManualClock, written: list[float]):
    index = StandingIndex(RunStore(tmp_path, clock), clock)
    began_s = clock.monotonic_s()

    assert index.write() == tmp_path / "index.html"
    index.age()
    index.renew()
    assert len(written) == 1
    clock.sleep(REST_RATIO * WRITING_S)
    for _ in range(2):
        index.renew()
        clock.sleep(REST_RATIO * WRITING_S)
    index.write()

    assert [moment - began_s for moment in written] == [0.0, 10.5, 31.0]


def test_one_that_cannot_be_written_keeps_no_run_from_going_on_and_is_told_in_the_end(tmp_path: Path, clock: ManualClock):
    index = StandingIndex(RunStore(tmp_path / "gone", clock), clock)

    index.renew()
    with pytest.raises(StoreError):
        index.write()


def test_a_full_disk_that_was_told_is_not_told_again_at_the_end(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch):
    def refuse(store: RunStore) -> Path:
        raise StoreError(path=store.index_path, attempted="write", reason="No space left on device")

    monkeypatch.setattr(standing_index, "write_index", refuse)
    index = StandingIndex(RunStore(tmp_path, clock), clock)

    assert index.finish(is_trouble_told=True) == tmp_path / "index.html"
    with pytest.raises(StoreError, match="No space left"):
        index.finish(is_trouble_told=False)
