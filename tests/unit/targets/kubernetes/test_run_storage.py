"""Checkpoints are moved to where nodes see them, and back, and are found in the run directory at any time."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, StoreError
from harness.targets.kubernetes.run_storage import RunStorage, move_back


def launch_at(checkpoint_dir: Path, run_id: str = "run-1") -> Launch:
    return Launch(
        run_id=run_id,
        job="job",
        command=("job",),
        directory=Path(),
        environment={},
        checkpoint_dir=checkpoint_dir,
        logs_dir=checkpoint_dir.parent / "logs",
    )


@pytest.fixture
def own(tmp_path: Path) -> Path:
    own = tmp_path / "runs" / "checkpoints"
    own.mkdir(parents=True)
    (own / "before").touch()
    return own


def test_checkpoints_move_and_come_back(tmp_path, own):
    storage = RunStorage(tmp_path / "shared", launch_at(own))

    storage.prepare()
    (storage.checkpoints / "during").touch()

    assert storage.checkpoints.is_relative_to(tmp_path / "shared")
    assert sorted(path.name for path in own.iterdir()) == ["before", "during"]
    assert own.is_symlink()

    assert move_back(storage.checkpoints, storage.moved_from)

    assert not own.is_symlink()
    assert sorted(path.name for path in own.iterdir()) == ["before", "during"]
    assert not move_back(storage.checkpoints, storage.moved_from)


def test_checkpoints_that_nodes_see_already_stay_where_they_are(tmp_path):
    own = tmp_path / "shared" / "mine"
    own.mkdir(parents=True)
    storage = RunStorage(tmp_path / "shared", launch_at(own))

    storage.prepare()

    assert (storage.checkpoints, storage.moved_from) == (own, "")
    assert not own.is_symlink()
    assert not move_back(storage.checkpoints, storage.moved_from)


def test_another_directory_in_the_place_of_the_link_is_not_overwritten(tmp_path, own):
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    storage.prepare()
    own.unlink()
    own.mkdir()

    assert not move_back(storage.checkpoints, storage.moved_from)
    assert (storage.checkpoints / "before").exists()


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_made(tmp_path, own):
    storage = RunStorage(tmp_path / ("x" * 100), launch_at(own))

    with pytest.raises(InvalidDocumentError, match=r"too long by \d+ bytes.*HARNESS_CLUSTER_SHARED"):
        storage.prepare()
    assert not own.is_symlink()


def test_what_cannot_be_made_is_an_error_of_the_store(tmp_path, own):
    (tmp_path / "shared").touch()

    with pytest.raises(StoreError, match="prepare"):
        RunStorage(tmp_path / "shared", launch_at(own)).prepare()
