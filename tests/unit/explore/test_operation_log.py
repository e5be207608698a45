"""A log is read as it was recorded, or refused by the line; no extent leads out of its data."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InvalidDocumentError
from harness.explore.operation_log import DEPTH_MAX, OperationLog, read_operation_log
from harness.explore.operations import DATA_NAME, LOG_NAME, Extent, MovedIn, Wrote
from tests.unit.explore.jobs import ACTIONS, perform
from tests.unit.explore.recordings import Recording, sealed


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A save with everything that has a path or an extent."""
    made = Recording(tmp_path / "log")
    made.there("old", b"before")
    made.mkdir("step_1")
    made.save_file("step_1/data", b"content", syncs=True)
    made.rename("step_1", "final")
    made.move_in("came", {"a": b"from outside"})
    made.link("final/data", "name")
    made.symlink("latest", "final")
    made.say("save.end", step=1, digests={"params": "00"})
    made.unlink("name")
    made.end()
    return made


def rewrite(recording: Recording, number: int, **fields: object) -> None:
    """Put other values into one line."""
    recording.log()
    path = recording.directory / LOG_NAME
    lines = recording.lines()
    lines[number - 1] = msgspec.json.encode({**msgspec.json.decode(lines[number - 1]), **fields})
    path.write_bytes(sealed(lines))


def test_a_log_is_read_as_it_was_recorded(recording) -> None:
    log = recording.log()

    assert list(log.entries) == recording.entries
    assert log.header.initial == tuple(recording.initial)
    assert log.is_whole


def test_a_log_without_its_end_is_read_and_says_so(recording) -> None:
    del recording.entries[-1]

    log = recording.log()

    assert list(log.entries) == recording.entries
    assert not log.is_whole


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_line_is_left_out_and_said(recording, cut) -> None:
    recording.log()
    path = recording.directory / LOG_NAME
    path.write_bytes(path.read_bytes()[:-cut])

    log = read_operation_log(recording.directory)

    assert list(log.entries) == recording.entries[:-1]
    assert not log.is_whole


@pytest.mark.parametrize(
    ("number", "fields", "problem"),
    [
        (1, {"schema": 2}, "schema 2"),
        (1, {"root": "relative"}, "not absolute"),
        (1, {"surprise": 1}, "surprise"),
        (2, {"kind": "unheard-of"}, "unheard-of"),
        (2, {"index": 2}, "index 2 stands where 1 is due"),
        (2, {"path": "../step_1"}, "no path below"),
        (2, {"path": "/step_1"}, "no path below"),
        (2, {"path": "a//b"}, "no path below"),
        (2, {"path": ""}, "no path below"),
        (2, {"path": "a\0b"}, "no path below"),
        (2, {"path": "/".join("a" * (DEPTH_MAX + 1))}, "more than"),
        (2, {"node": -1}, "negative"),
        (4, {"offset": -1}, "offset of -1"),
        (4, {"offset": 2**63 - 1}, "offset of"),
        (4, {"data": [6, 20]}, "are not within the 25 of data"),
        (4, {"data": [-1, 1]}, "are not within"),
        (4, {"data": [0, -1]}, "are not within"),
        (7, {"to": "final/.."}, "no path below"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(recording, number, fields, problem) -> None:
    rewrite(recording, number, **fields)

    with pytest.raises(InvalidDocumentError) as caught:
        read_operation_log(recording.directory)

    assert caught.value.field == f"line {number}"
    assert problem in caught.value.problem
    assert caught.value.advice


def test_what_follows_the_end_is_refused(recording) -> None:
    recording.say("step")

    with pytest.raises(InvalidDocumentError, match="follows the end"):
        recording.log()


def test_an_empty_log_and_one_that_is_not_there_are_refused(tmp_path) -> None:
    with pytest.raises(InvalidDocumentError, match=LOG_NAME):
        read_operation_log(tmp_path)
    (tmp_path / LOG_NAME).touch()
    with pytest.raises(InvalidDocumentError, match="no header"):
        read_operation_log(tmp_path)


def test_data_that_is_gone_is_refused_where_something_points_into_it(recording) -> None:
    recording.log()
    (recording.directory / DATA_NAME).unlink()

    with pytest.raises(InvalidDocumentError, match="within the 0 of data"):
        read_operation_log(recording.directory)


PICK = st.integers(0, 9999)
"""One of the bytes or lines that are there, by its number."""
DAMAGES = st.one_of(
    st.tuples(st.just("cut"), PICK),
    st.tuples(st.just("flip"), PICK, st.integers(0, 7)),
    st.tuples(st.just("overwrite"), PICK, st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("overwrite"), PICK, st.text('0123456789-{}[]",:.\n/ab', min_size=1, max_size=9).map(str.encode)),
    st.tuples(st.just("zero"), PICK, st.integers(1, 400)),
    st.tuples(st.just("insert"), PICK, st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("delete"), PICK, st.integers(1, 400)),
    st.tuples(st.just("swap_lines"), PICK, PICK),
    st.tuples(st.just("repeat_line"), PICK, PICK),
    st.tuples(st.just("drop_line"), PICK),
    st.tuples(st.just("take_line"), PICK),
)


class Damage:
    """What can happen to a log, given another one whose lines can get into it."""

    def __init__(self, raw: bytes, other: bytes) -> None:
        self.raw, self.other = raw, other.splitlines(keepends=True)

    def do(self, name: str, where: int, *how: Any) -> None:
        lines = self.raw.splitlines(keepends=True)
        if lines and name.endswith(("line", "lines")):
            getattr(self, name)(lines, where % len(lines), *how)
            self.raw = b"".join(lines)
        elif self.raw:
            at = where % len(self.raw)
            self.raw = self.raw[:at] + getattr(self, name)(self.raw[at:], *how)

    def cut(self, rest):
        return b""

    def flip(self, rest, bit):
        return bytes((rest[0] ^ 1 << bit,)) + rest[1:]

    def overwrite(self, rest, content):
        return content + rest[len(content) :]

    def zero(self, rest, size):
        return bytes(len(rest[:size])) + rest[size:]

    def insert(self, rest, content):
        return content + rest

    def delete(self, rest, size):
        return rest[size:]

    def swap_lines(self, lines, one, other):
        lines[one], lines[other % len(lines)] = lines[other % len(lines)], lines[one]

    def repeat_line(self, lines, one, before):
        lines.insert(before % len(lines), lines[one])

    def drop_line(self, lines, one):
        del lines[one]

    def take_line(self, lines, one):
        lines[one] = self.other[min(one, len(self.other) - 1)]


def read_or_refuse(recording: Recording) -> OperationLog | None:
    """None: refused, with the line, the problem and what to do."""
    try:
        return read_operation_log(recording.directory)
    except InvalidDocumentError as refused:
        error = refused
    assert error.field.startswith("line ")
    assert error.problem
    assert error.advice
    return None


def assert_is_refused_or_a_beginning(recording: Recording, raw: bytes) -> None:
    """Whatever is in the file: a clear error, or the first entries that were recorded, and whether those are all."""
    (recording.directory / LOG_NAME).write_bytes(raw)
    if (log := read_or_refuse(recording)) is None:
        return
    assert log.header.initial == tuple(recording.initial)
    assert list(log.entries) == recording.entries[: len(log.entries)]
    assert log.is_whole == (len(log.entries) == len(recording.entries))


@given(actions=ACTIONS, others=ACTIONS, damages=st.lists(DAMAGES, min_size=1, max_size=3))
def test_a_damaged_log_is_refused_or_read_as_far_as_it_is_what_was_recorded(tmp_path_factory, actions, others, damages) -> None:
    place = tmp_path_factory.mktemp("log")
    recording, other = perform(Recording(place / "log"), actions), perform(Recording(place / "other"), others)
    recording.log()
    header, *lines = other.lines()
    begun_later = header.replace(b'"started_s":1.0', b'"started_s":2.0')  # no two recordings begin at the same moment
    assert begun_later != header
    damage = Damage((recording.directory / LOG_NAME).read_bytes(), sealed([begun_later, *lines]))
    for each in damages:
        damage.do(*each)

    assert_is_refused_or_a_beginning(recording, damage.raw)


@given(actions=ACTIONS, damages=st.lists(DAMAGES, min_size=1, max_size=3))
def test_a_log_that_was_sealed_again_is_refused_or_leads_nowhere_but_into_its_data(tmp_path_factory, actions, damages) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("log") / "log"), actions)
    recording.entries.pop()
    recording.move_in("came", {"a": b"from outside"})
    recording.end()
    recording.log()
    damage = Damage(b"".join(line + b"\n" for line in recording.lines()), b"\n")
    for each in damages:
        damage.do(*each)
    (recording.directory / LOG_NAME).write_bytes(sealed(damage.raw.splitlines()))

    if (log := read_or_refuse(recording)) is not None:
        extents = [entry.data for entry in log.entries if isinstance(entry, Wrote)]
        extents += [item.data for entry in log.entries if isinstance(entry, MovedIn) for item in entry.items]
        assert all(extent.start >= 0 and extent.size >= 0 and extent.start + extent.size <= len(recording.data) for extent in extents)
        assert [entry.index for entry in log.entries] == list(range(1, len(log.entries) + 1))


def test_a_flipped_bit_in_any_byte_is_noticed(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.create("a")
    recording.end()
    recording.log()
    raw = (recording.directory / LOG_NAME).read_bytes()

    for at in range(len(raw)):
        assert_is_refused_or_a_beginning(recording, raw[:at] + bytes((raw[at] ^ 1 << at % 8,)) + raw[at + 1 :])


@pytest.mark.parametrize("others", [b"{", b"\0" * 9, b'{"kind":"end"}'])
def test_half_a_line_after_the_end_is_refused(recording, others) -> None:
    recording.log()
    with (recording.directory / LOG_NAME).open("ab") as file:
        file.write(others)

    with pytest.raises(InvalidDocumentError, match="follows the end"):
        read_operation_log(recording.directory)


@given(st.integers(-5, 30), st.integers(-5, 30))
def test_no_extent_that_leads_out_of_the_data_is_accepted(tmp_path_factory, start, size) -> None:
    made = Recording(tmp_path_factory.mktemp("log"))
    made.create("a")
    made.write("a", b"0123456789")
    made.entries[-1] = msgspec.structs.replace(made.entries[-1], data=Extent(start, size))
    is_within = start >= 0 and size >= 0 and start + size <= 10

    if is_within:
        assert made.log().entries[-1].data == Extent(start, size)
    else:
        with pytest.raises(InvalidDocumentError):
            made.log()
