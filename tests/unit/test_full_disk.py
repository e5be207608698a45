"""A disk that is full in the middle of a line: what was written stays readable, and so does what comes after."""

import errno
import os
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.history import Booted, HistoryWriter, RunClosed, read_history
from harness.undo import NothingToUndo, UndoJournal

ROOM_BYTES = 50
"""More than a line of these histories and less than two."""


@pytest.fixture
def fill_disk(monkeypatch: pytest.MonkeyPatch):
    """From now on ``ROOM_BYTES`` more fit; the function returned makes room again."""
    real = os.write
    room = [ROOM_BYTES]

    def write(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(data)[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    return lambda: monkeypatch.setattr(os, "write", real)


def test_a_history_is_readable_after_a_full_disk_and_holds_what_fitted(tmp_path: Path, fill_disk):
    writer = HistoryWriter(tmp_path / "history.jsonl")
    with pytest.raises(StoreError):
        writer.append([Booted(t_s=1.0, rank=1), Booted(t_s=2.0, rank=2), Booted(t_s=3.0, rank=3)])
    fill_disk()
    writer.append([RunClosed(t_s=4.0, reason="error")])
    writer.close()

    history = read_history(tmp_path / "history.jsonl")

    assert [event.t_s for event in history.events] == [1.0, 4.0]
    assert not history.is_torn


def test_an_undo_that_did_not_fit_is_refused_and_leaves_the_journal_readable(tmp_path: Path, fill_disk):
    journal = UndoJournal(tmp_path / "undo.jsonl")
    with pytest.raises(StoreError):
        journal.owe("first", NothingToUndo(why="a reason that is longer than the room that is left on this disk"))
    fill_disk()
    journal.owe("second", NothingToUndo(why="it fits"))

    assert [entry.injection for entry in journal.owed()] == ["second"]


def test_a_damaged_line_of_the_journal_keeps_no_other_undo_from_being_done(tmp_path: Path):
    path = tmp_path / "undo.jsonl"
    journal = UndoJournal(path)
    journal.owe("first", NothingToUndo(why="it is whole"))
    with path.open("ab") as file:
        file.write(b'{"injection":"sec\xff\n{"injection":"third"}\n')
    journal.owe("fourth", NothingToUndo(why="it is whole"))

    assert [entry.injection for entry in journal.owed()] == ["first", "fourth"]
