import gzip
import io
import json

import pytest

from harness.errors import InvalidDocumentError
from harness.incidents import entries, exports, read_export
from harness.incidents.entries import TOLD_EVERY, read_entry
from harness.incidents.exports import Document, Malformed, documents_of, read_file, read_stream
from tests.unit.incidents.logs import Log, as_lines

ENTRIES = Log().lines(0, "Step 1", "Step 2", 'a } in a { string " and a \\ too').entries


def values(data: bytes) -> list[object]:
    found = list(documents_of(data))
    assert all(isinstance(each, Document) for each in found), found
    return [each.value for each in found if isinstance(each, Document)]


def places(data: bytes) -> list[str]:
    return [each.place for each in documents_of(data) if isinstance(each, Malformed)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(json.dumps(ENTRIES, indent=2).encode(), id="array of the console and of gcloud"),
        pytest.param(json.dumps(ENTRIES).encode(), id="array on one line"),
        pytest.param(as_lines(ENTRIES), id="lines"),
        pytest.param(as_lines(ENTRIES).replace(b"\n", b"\r\n\r\n"), id="lines of another system, with empty ones between"),
        pytest.param(b"\n".join(json.dumps(each, indent=4).encode() for each in ENTRIES), id="objects on several lines"),
        pytest.param(json.dumps({"entries": ENTRIES, "nextPageToken": "x"}).encode(), id="page of entries.list"),
        pytest.param(b"\xef\xbb\xbf" + as_lines(ENTRIES), id="byte order mark"),
    ],
)
def test_every_shape_of_an_export_holds_the_same_entries(data):
    assert values(data) == ENTRIES


def test_an_array_that_was_cut_off_keeps_what_is_whole():
    data = json.dumps(ENTRIES, indent=2).encode()[:-40]

    found = list(documents_of(data))

    assert [each.value for each in found[:2] if isinstance(each, Document)] == ENTRIES[:2]
    assert isinstance(found[2], Malformed)
    assert found[2].problem == "the export ends in the middle of it"
    assert found[2].place == f"line {line_of_third(data)}"


def line_of_third(data: bytes) -> int:
    return next(number for number, line in enumerate(data.split(b"\n"), start=1) if b'"train-x7k2p-2"' in line) - 1


def test_lines_that_are_no_entries_are_told_by_their_number():
    lines = as_lines(ENTRIES).splitlines()
    data = b"\n".join([lines[0], b'{"insertId": "torn', b"", lines[1], b"7", b"\xff\xfe", b'{"x": 1e999}', b"[" * 100_000, lines[2]])

    assert places(data) == ["line 2", "line 5", "line 6", "line 7", "line 8"]
    assert [each.value for each in documents_of(data) if isinstance(each, Document)] == ENTRIES


def test_members_of_an_array_that_are_no_objects_are_told_by_their_place():
    assert places(json.dumps([ENTRIES[0], 7, None, ENTRIES[1], []]).encode()) == ["entry 2", "entry 3", "entry 5"]


def test_what_is_no_export_is_malformed_and_nothing_else():
    assert places(b"\x89PNG\r\n\x1a\n\x00\x00") == ["line 1", "line 2", "line 3"]
    assert list(documents_of(b"")) == list(documents_of(b" \n\n")) == list(documents_of(b"[]")) == []


def test_what_is_packed_is_unpacked_however_it_is_given(tmp_path):
    path = tmp_path / "export.json.gz"
    path.write_bytes(gzip.compress(as_lines(ENTRIES)))

    assert values(read_file(path)) == ENTRIES
    assert values(read_stream(io.BytesIO(path.read_bytes()), "standard input")) == ENTRIES


def test_a_packed_file_that_was_cut_off_keeps_what_can_be_unpacked():
    noise = [{**ENTRIES[0], "textPayload": str(number**9)} for number in range(3000)]
    packed = gzip.compress(as_lines(noise))

    data = read_stream(io.BytesIO(packed[: len(packed) // 2]), "standard input")

    assert 0 < len(data) < len(as_lines(noise))
    assert as_lines(noise).startswith(data)


def test_a_small_file_that_unpacks_to_a_disk_is_refused(monkeypatch):
    monkeypatch.setattr(exports, "EXPORT_BYTES_MAX", 1000)

    with pytest.raises(InvalidDocumentError, match="larger than"):
        read_stream(io.BytesIO(gzip.compress(b"x" * 100_000)), "standard input")
    with pytest.raises(InvalidDocumentError, match="larger than"):
        read_stream(io.BytesIO(b"x" * 1001), "standard input")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidDocumentError, match=r"nothing\.json.*name a file"):
        read_file(tmp_path / "nothing.json")
    with pytest.raises(InvalidDocumentError):
        read_file(tmp_path)


@pytest.mark.parametrize("data", [as_lines([ENTRIES[0]] * 1000), json.dumps([ENTRIES[0]] * 1000).encode()], ids=["lines", "array"])
def test_equal_parts_after_one_another_are_read_once_and_counted(data: bytes, monkeypatch: pytest.MonkeyPatch):
    read = []
    monkeypatch.setattr(entries, "read_entry", lambda document: read.append(document) or read_entry(document))

    export = read_export(data)

    assert (len(export.entries), export.duplicates, len(read)) == (1, 999, 1)


def test_equal_parts_that_are_no_entries_are_all_counted_with_their_places():
    export = read_export(as_lines([{"logName": "l", "timestamp": "never"}] * 3) + b"torn\ntorn\n")

    assert [each.place for each in export.malformed] == ["line 1", "line 2", "line 3", "line 4", "line 5"]


def test_how_many_parts_were_read_is_told_now_and_then():
    told: list[int] = []

    read_export(as_lines([ENTRIES[0]] * (2 * TOLD_EVERY + 1)), tell=told.append)

    assert told == [TOLD_EVERY, 2 * TOLD_EVERY]
