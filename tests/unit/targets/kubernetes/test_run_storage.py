"""Checkpoints are moved to where nodes see them, and back, and are found in the run directory at any time."""

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, StoreError
from harness.targets.kubernetes.run_storage import RunStorage, give_back, move_back


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
def tmp_path() -> Iterator[Path]:
    """A short one: sockets lie in the storage, and pytest's own path leaves them little room."""
    with tempfile.TemporaryDirectory(prefix="s") as path:
        yield Path(path)


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

    with pytest.raises(StoreError, match=r"is not the link to .*where the checkpoints of the run still are"):
        give_back(str(storage.directory), storage.moved_from)
    assert (storage.checkpoints / "before").exists()
    assert list(own.iterdir()) == []


def test_another_link_in_the_place_of_ours_is_not_removed(tmp_path, own):
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    storage.prepare()
    own.unlink()
    own.symlink_to(tmp_path)

    with pytest.raises(StoreError, match="is not the link to"):
        give_back(str(storage.directory), storage.moved_from)
    assert (storage.checkpoints / "before").exists()


def test_what_cannot_be_removed_is_told(tmp_path, own, monkeypatch):
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    storage.prepare()

    def refuse(path, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        give_back(str(storage.directory), storage.moved_from)


def test_checkpoints_whose_run_directory_is_gone_stay_until_somebody_has_moved_them(tmp_path, own):
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    storage.prepare()
    shutil.rmtree(own.parent)

    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"the run directory .*/runs is gone, and its checkpoints are here; move them .*or remove .*checkpoints"
        ):
            give_back(str(storage.directory), storage.moved_from)
    assert (storage.checkpoints / "before").exists()
    shutil.rmtree(storage.checkpoints)
    assert give_back(str(storage.directory), storage.moved_from) == []
    assert not storage.directory.exists()


def test_where_a_run_directory_is_gone_that_had_no_checkpoints_nothing_is_kept(tmp_path, own):
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    (own / "before").unlink()
    storage.prepare()
    shutil.rmtree(own.parent)

    assert give_back(str(storage.directory), storage.moved_from) == []
    assert not storage.directory.exists()


def test_a_copy_that_fills_the_disk_is_told_in_words_and_does_not_stay(tmp_path, own, monkeypatch):
    Disk(monkeypatch, tmp_path / "shared", are_apart=True)
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    storage.prepare()

    def fill(source, target, **_):
        Path(target).mkdir()
        full = [(str(source / name), str(Path(target) / name), "[Errno 28] No space left on device") for name in "ab"]
        raise shutil.Error(full)

    monkeypatch.setattr(shutil, "copytree", fill)
    with pytest.raises(StoreError) as refusal:
        give_back(str(storage.directory), storage.moved_from)

    assert f"2 of its files could not be copied: [Errno 28] No space left on device ({storage.checkpoints}/a); check" in str(refusal.value)
    assert [path.name for path in own.parent.iterdir()] == ["checkpoints"]
    assert (own / "before").exists()


class KilledError(BaseException):
    """The harness dies here."""


class Disk:
    """Kills whoever changes directories at the nth step; removals and copies have a step in their middle, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shared: Path, *, are_apart: bool) -> None:
        self.steps_left = 10_000
        self._shared, self._are_apart = shared, are_apart
        for name in ("rename", "unlink", "symlink_to", "touch"):
            monkeypatch.setattr(Path, name, self._counted(getattr(Path, name), is_rename=name == "rename"))
        self._copytree, self._rmtree = shutil.copytree, shutil.rmtree
        monkeypatch.setattr(shutil, "copytree", self._copy)
        monkeypatch.setattr(shutil, "rmtree", self._remove)

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise KilledError

    def _counted(self, act: Callable[..., Any], *, is_rename: bool) -> Callable[..., Any]:
        def counted(path: Path, *arguments: Any, **options: Any) -> Any:
            self._step()
            if is_rename and self._are_apart and path.is_relative_to(self._shared) != arguments[0].is_relative_to(self._shared):
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            return act(path, *arguments, **options)

        return counted

    def _copy(self, source: Path, target: Path, **options: Any) -> None:
        self._step()
        first, *_ = sorted(source.iterdir())
        target.mkdir()
        shutil.copy2(first, target)
        self._step()
        self._copytree(source, target, dirs_exist_ok=True, **options)

    def _remove(self, path: Path) -> None:
        self._step()
        for first in sorted(path.iterdir())[:1]:
            self._rmtree(first) if first.is_dir() else first.unlink()
        self._step()
        self._rmtree(path)


CHECKPOINTS = {"before": "1", "during": "2"}


@pytest.mark.parametrize("are_apart", [False, True], ids=["one file system", "two file systems"])
def test_wherever_the_harness_is_killed_no_checkpoint_is_lost(tmp_path, monkeypatch, are_apart):
    disk = Disk(monkeypatch, tmp_path / "shared", are_apart=are_apart)
    for step in range(200):
        own = tmp_path / f"runs-{step}" / "checkpoints"
        own.mkdir(parents=True)
        for name, text in CHECKPOINTS.items():
            (own / name).write_text(text)
        storage = RunStorage(tmp_path / "shared", launch_at(own, f"run-{step}"))
        disk.steps_left = step
        try:
            storage.prepare()
            give_back(str(storage.directory), storage.moved_from)
            is_killed = False
        except KilledError:
            is_killed = True
        disk.steps_left = 10_000

        for _ in range(2):
            give_back(str(storage.directory), storage.moved_from)
            assert {path.name: path.read_text() for path in own.iterdir()} == CHECKPOINTS, step
            assert not own.is_symlink()
        assert list(own.parent.iterdir()) == [own], step
        assert not storage.directory.exists()
        if not is_killed:
            assert step >= (15 if are_apart else 7)
            return
    pytest.fail("it never came to its end")


@pytest.mark.parametrize("are_apart", [False, True], ids=["one file system", "two file systems"])
def test_one_that_is_killed_again_and_again_loses_nothing(tmp_path, monkeypatch, own, are_apart):
    disk = Disk(monkeypatch, tmp_path / "shared", are_apart=are_apart)
    storage = RunStorage(tmp_path / "shared", launch_at(own))
    (own / "during").touch()
    storage.prepare()
    for step in range(200):
        disk.steps_left = step
        try:
            give_back(str(storage.directory), storage.moved_from)
            break
        except KilledError:
            continue

    assert sorted(path.name for path in own.iterdir()) == ["before", "during"]
    assert not storage.directory.exists()


def test_a_path_too_long_for_sockets_is_refused_before_anything_is_made(tmp_path, own):
    storage = RunStorage(tmp_path / ("x" * 100), launch_at(own))

    with pytest.raises(InvalidDocumentError, match=r"too long by \d+ bytes.*HARNESS_CLUSTER_SHARED"):
        storage.prepare()
    assert not own.is_symlink()


def test_what_cannot_be_made_is_an_error_of_the_store(tmp_path, own):
    (tmp_path / "shared").touch()

    with pytest.raises(StoreError, match="prepare"):
        RunStorage(tmp_path / "shared", launch_at(own)).prepare()
