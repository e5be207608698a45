"""Content is read bounded, without blocking, and never half."""

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.checkpoints import content
from harness.checkpoints.content import Budget, LimitReachedError, fingerprint, read_small


def test_a_file_is_known_by_its_sha256(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"abc" * 700_000)  # more than one chunk

    assert fingerprint(file, file.lstat(), Budget()) == (2_100_000, hashlib.sha256(b"abc" * 700_000).hexdigest())


def test_a_file_beyond_the_limit_is_known_by_its_edges_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(bytes(5 << 20))
    budget = Budget(hash_bytes_max=1 << 20)

    _, before = fingerprint(file, file.lstat(), budget)
    with file.open("r+b") as opened:
        opened.seek(2 << 20)
        opened.write(b"unseen")
    _, middle = fingerprint(file, file.lstat(), budget)
    with file.open("r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"x")
    _, end = fingerprint(file, file.lstat(), budget)

    assert before.startswith("partial-")
    assert middle == before
    assert end != before


def test_a_terabyte_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.touch()
    os.truncate(file, 1 << 40)
    budget = Budget()

    size, found = fingerprint(file, file.lstat(), budget)

    assert size == 1 << 40
    assert found.startswith("partial-")
    assert content.LOOK_BYTES_MAX - budget.bytes_left == 2 * content.EDGE_BYTES


def test_what_the_budget_does_not_cover_has_no_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"12345")

    assert fingerprint(file, file.lstat(), Budget(bytes_left=4)) == (5, "")


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    fifo, listener, link = tmp_path / "fifo", tmp_path / "socket", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listener))
        kinds = [fingerprint(path, path.lstat(), Budget())[1] for path in (fifo, listener)]

    assert kinds == ["special-p", "special-s"]
    assert fingerprint(link, link.lstat(), Budget())[1].startswith("link-")
    assert [read_small(path, 10) for path in (fifo, listener, link)] == [None, None, None]


def test_a_fifo_put_in_the_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"1")
    status = file.lstat()
    file.unlink()
    os.mkfifo(file)

    with pytest.raises(OSError, match="no longer a regular file"):
        fingerprint(file, status, Budget())


def test_a_file_that_changes_while_it_is_read_is_not_fingerprinted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"before")
    read = content._read

    def read_and_append(descriptor: int, start: int, length: int) -> Iterator[bytes]:
        yield from read(descriptor, start, length)
        with file.open("ab") as opened:
            opened.write(b"after")

    monkeypatch.setattr(content, "_read", read_and_append)

    with pytest.raises(OSError, match="changed while it was read"):
        fingerprint(file, file.lstat(), Budget())


def test_a_file_cut_while_it_is_read_is_not_fingerprinted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"before")
    read = content._read

    def cut_and_read(descriptor: int, start: int, length: int) -> Iterator[bytes]:
        os.truncate(file, 2)
        return read(descriptor, start, length)

    monkeypatch.setattr(content, "_read", cut_and_read)

    with pytest.raises(OSError, match="became shorter"):
        fingerprint(file, file.lstat(), Budget())


def test_small_files_are_read_whole_and_larger_ones_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "w"
    file.write_bytes(b"12345")

    assert read_small(file, 5) == b"12345"
    assert read_small(file, 4) is None


def test_a_budget_of_entries_ends_with_the_limit_in_the_message() -> None:
    budget = Budget(entries_left=2)
    budget.spend_entry()
    budget.spend_entry()

    with pytest.raises(LimitReachedError, match="more than 50000 files and directories in one look") as raised:
        budget.spend_entry()
    assert raised.value.limit == content.LOOK_ENTRIES_MAX
