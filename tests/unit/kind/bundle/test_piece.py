"""A piece of the bundle is there whole or not at all, and its key changes with any input."""

from pathlib import Path

import pytest

from harness.kind.bundle import piece as piece_module
from harness.kind.bundle.piece import CacheError, DirectoryPiece, key_of, mount_points, remove_tree
from harness.kind.commands import CommandFailedError


@pytest.fixture
def piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirectoryPiece:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    return DirectoryPiece(name="p", key=key_of("a"))


def write(scratch: Path) -> None:
    (scratch / "file").write_text("whole")


def test_a_key_changes_with_any_input_and_their_order() -> None:
    keys = {key_of("a", "b"), key_of("b", "a"), key_of("ab"), key_of("a", "b", ""), key_of("a"), key_of("a", "c")}

    assert len(keys) == 6
    assert key_of("a", b"b") == key_of("a", "b")


def test_a_piece_appears_when_it_is_filled(piece: DirectoryPiece) -> None:
    piece.fill(write)

    assert [path.name for path in piece.path.parent.iterdir()] == [piece.key]
    assert (piece.path / "file").read_text() == "whole"


def test_a_failed_build_leaves_no_piece(piece: DirectoryPiece) -> None:
    def fail(scratch: Path) -> None:
        write(scratch)
        raise CommandFailedError(command=["go"], outcome="ended with 1")

    with pytest.raises(CommandFailedError):
        piece.fill(fail)
    assert not piece.path.exists()


def test_what_a_killed_build_left_is_removed_first(piece: DirectoryPiece) -> None:
    left = piece.path.parent / f".building-{piece.key}" / "module"
    left.mkdir(parents=True)
    (left / "torn").touch()
    left.chmod(0o555)

    piece.fill(write)

    assert [path.name for path in piece.path.iterdir()] == ["file"]


def test_a_folder_that_is_only_passed_through_goes(piece: DirectoryPiece) -> None:
    piece.fill_and_discard(write)

    assert list(piece.path.parent.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(piece: DirectoryPiece) -> None:
    piece.path.parent.parent.mkdir(parents=True)
    piece.path.parent.write_text("a file where a folder should be")

    with pytest.raises(CacheError, match=r"cannot build .*/p/.* set HARNESS_CACHE_DIR"):
        piece.fill(write)


def test_nothing_is_removed_or_changed_below_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    folder = tmp_path / "bundle" / "p" / "left"
    (folder / "root" / "proc").mkdir(parents=True)
    (folder / "root" / "proc").chmod(0o555)
    monkeypatch.setattr(piece_module, "mount_points", lambda: [str(folder / "root" / "proc")])

    with pytest.raises(OSError, match="root/proc is still mounted"):
        remove_tree(folder)
    assert (folder / "root" / "proc").stat().st_mode & 0o777 == 0o555


def test_the_mount_points_of_this_machine_are_read() -> None:
    assert "/proc" in mount_points()


@pytest.mark.parametrize("name", ["outside", "bundle", "bundle/p/../../../outside"])
def test_nothing_is_removed_outside_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    for folder in ("outside", "bundle/p"):
        (tmp_path / folder).mkdir(parents=True)

    with pytest.raises(OSError, match="is not in the bundle"):
        remove_tree(tmp_path / name)
    assert (tmp_path / "outside").is_dir()


def test_removing_nothing_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))

    remove_tree(tmp_path / "bundle" / "p" / "nowhere")
