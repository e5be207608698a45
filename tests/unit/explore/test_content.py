"""A content that is told as spans has the bytes that the same writes give a real buffer."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import StoreError
from harness.explore.content import EMPTY, Content
from harness.explore.data_file import CHUNK_BYTES, DataFile

DATA = bytes(range(1, 101))

WRITES = st.tuples(st.just("write"), st.integers(0, 120), st.integers(0, 100), st.integers(0, 40))
RESIZES = st.tuples(st.just("resize"), st.integers(0, 150))


@pytest.fixture
def data(tmp_path: Path):
    (tmp_path / "data").write_bytes(DATA)
    with DataFile(tmp_path / "data") as opened:
        yield opened


def play(changes) -> list[tuple[Content, bytes]]:
    """The content, and the real bytes, after each change."""
    content, real, played = EMPTY, bytearray(), []
    for change in changes:
        if change[0] == "write":
            _, offset, start, size = change
            piece = DATA[start : start + size]
            content = content.written(offset, (start, len(piece)))
            if piece:
                real.extend(bytes(max(0, offset - len(real))))
                real[offset : offset + len(piece)] = piece
        else:
            content = content.resized(change[1])
            del real[change[1] :]
            real.extend(bytes(change[1] - len(real)))
        played.append((content, bytes(real)))
    return played


@given(st.lists(WRITES | RESIZES, max_size=12))
def test_a_content_has_the_bytes_that_the_same_changes_give_a_buffer(tmp_path_factory, changes) -> None:
    path = tmp_path_factory.mktemp("data") / "data"
    path.write_bytes(DATA)
    with DataFile(path) as data:
        for content, real in play(changes):
            assert data.read(content) == real
            assert content.size == len(real)
            assert data.digest(content) == hashlib.sha256(real).hexdigest()


def test_writes_that_go_on_where_the_last_ended_are_one_span() -> None:
    content = EMPTY.written(0, (10, 5)).written(5, (15, 5)).written(10, (20, 5))

    assert content.spans == ((10, 15),)


def test_a_file_that_grows_write_by_write_is_read_once(tmp_path, monkeypatch) -> None:
    (tmp_path / "data").write_bytes(bytes(200_000))
    read = []
    with DataFile(tmp_path / "data") as data:
        real = data._read
        monkeypatch.setattr(DataFile, "_read", lambda self, span: (read.append(span[1]), real(span))[1])
        content = EMPTY
        for index in range(100):  # two files in turn, so that spans do not join
            content = content.written(content.size, (index * 2000, 1000))
            data.digest(content)

    assert sum(read) == 100_000


def test_a_content_is_read_in_chunks(tmp_path) -> None:
    with (tmp_path / "data").open("wb") as file:
        file.truncate(3 * CHUNK_BYTES)
    with DataFile(tmp_path / "data") as data:
        sizes = [len(chunk) for chunk in data.chunks(EMPTY.written(5, (0, 3 * CHUNK_BYTES)).resized(4 * CHUNK_BYTES))]

    assert max(sizes) == CHUNK_BYTES
    assert sum(sizes) == 4 * CHUNK_BYTES


def test_data_that_was_cut_after_it_was_checked_is_told(tmp_path) -> None:
    (tmp_path / "data").write_bytes(b"short")
    with DataFile(tmp_path / "data") as data, pytest.raises(StoreError, match="5 bytes are missing at 5"):
        data.read(Content().written(0, (0, 10)))


def test_data_that_is_not_there_is_told(tmp_path) -> None:
    with pytest.raises(StoreError, match="record again"):
        DataFile(tmp_path / "data")
