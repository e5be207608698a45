"""A history holds what was appended, whatever happens to its writer."""

import os
from pathlib import Path
from typing import get_args
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import history
from harness.errors import HistoryCorruptError, StoreError
from harness.history import AnyEvent, Booted, Event, History, HistoryWriter, LogLine, Repeated, StepDone, read_history
from tests.unit.strategies import instances

KINDS: tuple[type[Event], ...] = get_args(AnyEvent)
FULL = Path("/dev/full")


def written(path: Path, *events: Event) -> Path:
    writer = HistoryWriter(path)
    writer.append(events)
    writer.close()
    return path


def test_every_kind_of_event_can_be_read():
    leaves = {each for each in vars(history).values() if isinstance(each, type) and issubclass(each, Event)}
    leaves = {each for each in leaves if not any(other is not each and issubclass(other, each) for other in leaves)}
    assert set(KINDS) == leaves
    tags = [kind.__struct_config__.tag for kind in KINDS]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_an_event_is_read_as_it_was_written(kind: type[Event], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory):
    events = tuple(data.draw(st.lists(instances(kind), max_size=3)))
    path = tmp_path_factory.getbasetemp() / "history.jsonl"
    path.unlink(missing_ok=True)
    with patch.object(os, "fsync"):  # hundreds of histories: they need not survive the machine
        assert read_history(written(path, *events)) == History(events=events)


def test_events_stand_one_a_line_in_the_order_they_were_appended(tmp_path: Path):
    writer = HistoryWriter(tmp_path / "h")
    writer.append([StepDone(t_s=2.0, step=1)])
    writer.append([])
    writer.append([StepDone(t_s=1.0, step=2), StepDone(t_s=1.0, step=3)])
    writer.close()
    writer.close()  # once more does no harm
    assert [event.step for event in read_history(tmp_path / "h").events] == [1, 2, 3]
    assert (tmp_path / "h").read_bytes().count(b"\n") == 3


def test_a_second_writer_goes_on_after_the_first(tmp_path: Path):
    written(written(tmp_path / "h", Booted(t_s=1.0)), Booted(t_s=2.0))
    assert [event.t_s for event in read_history(tmp_path / "h").events] == [1.0, 2.0]


@given(cut=st.integers(1, 60))
def test_a_torn_last_line_is_told_and_the_whole_ones_are_kept(cut: int, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.getbasetemp() / "torn.jsonl"
    path.unlink(missing_ok=True)
    first = msgspec.json.encode(Booted(t_s=1.0)) + b"\n"
    whole = first + msgspec.json.encode(StepDone(t_s=2.0, step=7, digests={"params": "p"})) + b"\n"
    path.write_bytes(whole[: max(len(whole) - cut, len(first))])
    read = read_history(path)
    assert read.events == (Booted(t_s=1.0),)
    assert read.is_torn == (len(whole) - cut > len(first))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"null",
        b'{"kind":"boot"}',
        b'{"kind":"boom","t_s":1}',
        b'{"t_s":1}',
        b'{"kind":"boot","t_s":"x"}',
        b"\xff\xfe",
        b'{"kind":"log","t_s":1,"stream":"stdout","text":"\xff"}',
        b'{"kind":"boot","t_s":1,"more":' + b"[" * 200_000,
    ],
)
def test_a_line_that_is_no_event_is_named_by_its_number(line: bytes, tmp_path: Path):
    good = msgspec.json.encode(Booted(t_s=1.0))
    (tmp_path / "h").write_bytes(b"\n".join([good, good, line, good, b""]))
    with pytest.raises(HistoryCorruptError) as caught:
        read_history(tmp_path / "h")
    assert (caught.value.path, caught.value.line) == (tmp_path / "h", 3)


def test_lines_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history, "READ_BYTES", 64)
    path = written(tmp_path / "h", *(StepDone(t_s=float(step), step=step) for step in range(100)))
    assert [event.step for event in read_history(path).events] == list(range(100))
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(HistoryCorruptError) as caught:
        read_history(path)
    assert caught.value.line == 101


def test_a_line_of_a_hundred_megabytes_is_a_line(tmp_path: Path):
    long = LogLine(t_s=1.0, stream="stdout", text="x" * 100_000_000)
    path = written(tmp_path / "h", Booted(t_s=0.0), long, Booted(t_s=2.0))
    assert [event.t_s for event in read_history(path).events] == [0.0, 1.0, 2.0]
    with path.open("ab") as file:
        file.write(b'{"kind":"log","text":"' + b"x" * 1000)
    assert read_history(path).is_torn


def test_what_is_no_text_is_written_all_the_same(tmp_path: Path):
    name = os.fsdecode(b"step_\xff")
    path = written(tmp_path / "h", LogLine(t_s=1.0, stream="stderr", text=f"cannot open {name}"), Booted(t_s=2.0))
    assert read_history(path).events == (LogLine(t_s=1.0, stream="stderr", text="cannot open step_?"), Booted(t_s=2.0))


def test_an_empty_history_holds_nothing(tmp_path: Path):
    assert read_history(written(tmp_path / "h")) == History(events=())


def test_equal_states_of_a_step_are_kept_once(tmp_path: Path):
    events = [StepDone(t_s=float(rank), step=5, rank=rank, digests={"params": "p"}, batch_ids=(1, 2)) for rank in range(3)]
    repeated = Repeated()
    first = read_history(written(tmp_path / "h", *events), repeated=repeated).events
    second = read_history(tmp_path / "h", repeated=repeated).events
    assert first == second == tuple(events)
    assert len({id(event.digests) for event in (*first, *second)}) == 1
    assert len({id(event.batch_ids) for event in (*first, *second)}) == 1


def test_a_full_disk_is_an_error_that_names_the_file():
    writer = HistoryWriter(FULL)
    with pytest.raises(StoreError) as caught:
        writer.append([Booted(t_s=1.0)])
    assert (caught.value.path, caught.value.attempted) == (FULL, "append to the history")
    assert "No space left" in caught.value.reason
    with pytest.raises(StoreError, match="make the history durable"):
        writer.close()


def test_a_file_that_cannot_be_opened_or_read_is_an_error(tmp_path: Path):
    with pytest.raises(StoreError, match="open the history"):
        HistoryWriter(tmp_path / "missing" / "h")
    with pytest.raises(StoreError, match="read the history"):
        read_history(tmp_path / "missing")
    with pytest.raises(StoreError, match="read the history"):
        read_history(tmp_path)
