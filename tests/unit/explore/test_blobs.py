"""A state is made on disk as it is, or not at all, with the reason; and nothing of it outside of its directory."""

import errno
import os
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.explore.blobs import BlobStore
from harness.explore.operations import UNDECODABLE
from harness.explore.pieces import pieces_of, state_name
from harness.explore.recipe import Piece
from tests.unit.explore.recordings import ROOT, Recording


@pytest.fixture
def made(tmp_path: Path) -> tuple[BlobStore, tuple[Piece, ...]]:
    """A store with the last state of a recording, and its pieces."""
    recording = Recording(tmp_path / "log")
    recording.mkdir("d")
    recording.save_file("d/a", b"content")
    recording.save_file("b", b"content")
    recording.symlink("latest", f"{ROOT}/d")
    recording.symlink("d/up", f"{ROOT}/b")
    recording.symlink("away", "/somewhere/else")
    _, found = recording.enumerate("posix", "process")
    tree = next(each.crash.tree for each in found if len(each.crash.tree) == 6)
    store = BlobStore(tmp_path / "blobs")
    with recording.open_data() as data:
        store.keep_all(tree, data)
        return store, pieces_of(tree, data, root=ROOT)


def test_the_same_content_is_kept_once(made) -> None:
    store, pieces = made

    assert sorted(os.listdir(store.directory)) == sorted({piece.content for piece in pieces if piece.kind == "file"})
    assert [piece.path for piece in pieces] == ["away", "b", "d", "d/a", "d/up", "latest"]


def test_a_made_state_may_be_written_in_place_and_harms_nothing(made, tmp_path) -> None:
    store, pieces = made
    store.materialise(pieces, tmp_path / "first")
    (tmp_path / "first/d/a").write_bytes(b"spoiled")

    store.materialise(pieces, tmp_path / "second")

    assert (tmp_path / "second/d/a").read_bytes() == b"content"


def test_times_of_modification_are_in_the_order_of_the_last_changes(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "log")
    recording.mkdir("new")
    recording.mkdir("old")
    recording.save_file("old/a", b"1")
    recording.save_file("a", b"1")
    recording.save_file("new/z", b"1")
    recording.create("b")
    recording.close("b")
    recording.save_file("tmp", b"1")
    recording.open("a", truncates=True)  # in place, and dies here
    recording.rename("tmp", "c")  # a name of its own is no change of a file
    _, found = recording.enumerate("posix", "process")
    store = BlobStore(tmp_path / "blobs")
    with recording.open_data() as data:
        last = next(each for each in reversed(found) if "c" in each.crash.tree)
        store.keep_all(last.crash.tree, data)
        task = last.task(data, root=ROOT)

    store.materialise(task.pieces, tmp_path / "copy", changed=task.changed)

    whole_seconds = {piece.path: int((tmp_path / "copy" / piece.path).stat().st_mtime) for piece in task.pieces}
    assert sorted(whole_seconds, key=lambda path: whole_seconds[path]) == ["old", "old/a", "new", "new/z", "b", "c", "a"]
    assert len(set(whole_seconds.values())) == len(whole_seconds)


def test_times_of_very_many_files_lie_within_an_hour(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    pieces = [Piece(path=f"{number:05}", kind="directory") for number in range(4000)]

    store.materialise(pieces, tmp_path / "copy", changed=tuple(reversed(range(4000))))

    newest, oldest = ((tmp_path / "copy" / name).stat().st_mtime for name in ("00000", "03999"))
    assert 3000 < newest - oldest < 3600


def test_links_into_the_recorded_directory_stay_within_the_copy(made, tmp_path) -> None:
    store, pieces = made
    store.materialise(pieces, tmp_path / "copy")

    assert (tmp_path / "copy/latest").readlink() == Path("d")
    assert (tmp_path / "copy/d/up").read_bytes() == b"content"
    assert (tmp_path / "copy/away").readlink() == Path("/somewhere/else")


def test_a_state_that_is_only_looked_at_shares_its_files(made, tmp_path) -> None:
    store, pieces = made
    store.materialise(pieces, tmp_path / "look", links_files=True)

    assert (tmp_path / "look/b").stat().st_ino == (tmp_path / "look/d/a").stat().st_ino
    assert not (tmp_path / "look/b").stat().st_mode & 0o222


def test_a_name_that_is_no_text_is_made_as_it_was(made, tmp_path) -> None:
    store, pieces = made
    odd = chr(UNDECODABLE + 0xFF) + "x"
    store.materialise([Piece(path=odd, kind="file", content=pieces[1].content)], tmp_path / "copy")

    assert os.listdir(os.fsencode(tmp_path / "copy")) == [b"\xffx"]


@pytest.mark.parametrize("path", ["../out", "/out", "d/../../out", "no/such", "", "latest/out"])
def test_a_piece_that_would_be_made_elsewhere_is_refused(made, tmp_path, path) -> None:
    store, pieces = made

    with pytest.raises(StoreError, match="in no directory of the state"):
        store.materialise([*pieces, Piece(path=path, kind="file", content=pieces[1].content)], tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_state_that_is_too_large_is_refused_before_anything_is_made(made, tmp_path) -> None:
    _, pieces = made
    store = BlobStore(tmp_path / "blobs", state_bytes_max=13)

    with pytest.raises(StoreError, match="14 bytes, more than the 13"):
        store.materialise(pieces, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_full_disk_leaves_nothing_half_made_and_says_what_to_do(made, tmp_path, monkeypatch) -> None:
    store, pieces = made

    def fill(source, target):
        Path(os.fsdecode(target)).write_bytes(b"con")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copyfile", fill)

    with pytest.raises(StoreError, match="No space left on device; free some space"):
        store.materialise(pieces, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_content_that_does_not_fit_is_not_kept_in_half(tmp_path, monkeypatch) -> None:
    recording = Recording(tmp_path / "log")
    recording.save_file("a", b"content")
    _, found = recording.enumerate("posix", "process")
    store = BlobStore(tmp_path / "blobs")

    def refuse(descriptor, mode):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fchmod", refuse)
    with recording.open_data() as data, pytest.raises(StoreError, match="free some space"):
        store.keep_all(next(each.crash.tree for each in found if each.crash.at == 2), data)

    assert os.listdir(store.directory) == []


@pytest.mark.parametrize(("model", "is_one"), [("posix", True), ("object-store", False)])
def test_names_of_one_file_are_names_of_one_file_on_disk(tmp_path, model, is_one) -> None:
    recording = Recording(tmp_path / "log")
    for name in ("a", "copy"):
        recording.save_file(name, b"content")
    recording.mkdir("d")
    recording.link("a", "d/b")
    _, found = recording.enumerate(model, "process")
    store, last = BlobStore(tmp_path / "blobs"), next(each for each in found if "d/b" in each.crash.tree)
    with recording.open_data() as data:
        store.keep_all(last.crash.tree, data)
        task = last.task(data, root=ROOT)

    store.materialise(task.pieces, tmp_path / "state", changed=task.changed, links=task.links)

    assert (tmp_path / "state/a").samefile(tmp_path / "state/d/b") is is_one
    assert not (tmp_path / "state/a").samefile(tmp_path / "state/copy")


def test_a_content_that_was_never_kept_is_told(tmp_path) -> None:
    with pytest.raises(StoreError, match="read the content"):
        BlobStore(tmp_path / "blobs").materialise([Piece(path="a", kind="file", content="00")], tmp_path / "copy")


def test_a_content_that_is_not_what_its_name_says_is_refused_and_nothing_is_made(made, tmp_path) -> None:
    store, pieces = made
    content = store.directory / next(piece.content for piece in pieces if piece.kind == "file")
    content.chmod(0o644)
    content.write_bytes(b"another")

    with pytest.raises(StoreError, match="its SHA-256 is another"):
        store.materialise(pieces, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_state_is_named_by_its_pieces(made) -> None:
    _, pieces = made

    assert state_name(pieces) == state_name(tuple(pieces))
    assert len({state_name(pieces), state_name(pieces[1:]), state_name(())}) == 3
