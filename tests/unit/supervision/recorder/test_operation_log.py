"""The log is a document that its strict reader takes, and it outlives its writer."""

import json

import pytest

from harness.explore.operation_log import read_operation_log
from harness.explore.operations import DATA_NAME, LOG_NAME, LOG_SCHEMA, Ended, MadeDirectory, real_path
from harness.supervision.recorder import operation_log
from harness.supervision.recorder.operation_log import LogBrokenError, OperationLog, as_text


def test_the_two_rooms_agree_on_names_and_schema() -> None:
    ours = (operation_log.LOG_NAME, operation_log.DATA_NAME, operation_log.LOG_SCHEMA)

    assert ours == (LOG_NAME, DATA_NAME, LOG_SCHEMA)


@pytest.mark.parametrize("name", [b"plain", "\u00e9\u4e2d".encode(), b"caf\xe9", b"\xff\xfe\x80", b"a/\xc3/b", b'"\\\n'])
def test_any_name_survives_the_log(name) -> None:
    assert real_path(json.loads(json.dumps(as_text(name)))) == name


def test_an_entry_is_in_the_file_when_it_has_been_appended(tmp_path) -> None:
    log = OperationLog(str(tmp_path / "log"))
    log.begin(b"/root", ["train", "--out"], [])
    log.store(memoryview(b"content"))
    log.append("write", process=1, thread=2, node=3, handle=4, offset=0, data=(0, 7))
    header, entry = map(json.loads, (tmp_path / "log" / LOG_NAME).read_bytes().splitlines())

    assert (header["schema"], header["root"], header["command"]) == (LOG_SCHEMA, "/root", ["train", "--out"])
    assert (entry["kind"], entry["index"], entry["data"]) == ("write", 1, [0, 7])
    assert (tmp_path / "log" / DATA_NAME).read_bytes() == log.read(0, 7) == b"content"


def test_what_was_written_is_read_line_by_line(tmp_path) -> None:
    log = OperationLog(str(tmp_path / "log"))
    log.begin(b"/root", ["train"], [{"path": as_text(b"caf\xe9"), "node": 1, "kind": "directory"}])
    log.append("mkdir", path="a", node=2)
    assert not read_operation_log(tmp_path / "log").is_whole
    log.append("end", exit_code=0)

    read = read_operation_log(tmp_path / "log")

    assert [real_path(item.path) for item in read.header.initial] == [b"caf\xe9"]
    assert [type(entry) for entry in read.entries] == [MadeDirectory, Ended]
    assert read.is_whole


def test_what_cannot_be_logged_is_no_error_of_the_job(tmp_path) -> None:
    log = OperationLog(str(tmp_path / "log"))
    log._data = log._lines = -1

    with pytest.raises(LogBrokenError):
        log.store(memoryview(b"x"))
    with pytest.raises(LogBrokenError):
        log.append("end")
    assert not issubclass(LogBrokenError, OSError)
