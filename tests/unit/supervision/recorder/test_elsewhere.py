"""Of files that are written elsewhere some are left out, and none in silence."""

from pathlib import Path

import pytest

from harness.explore.operation_log import read_operation_log
from harness.explore.operations import Blind, Elsewhere
from harness.supervision.recorder import elsewhere
from harness.supervision.recorder.operation_log import OperationLog
from harness.supervision.recorder.record import Record


def test_more_files_than_are_followed_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "PATHS_MAX", 3)
    root = tmp_path / "root"
    root.mkdir()
    record = Record(bytes(root), OperationLog(str(tmp_path / "log")), {})
    record.log.begin(record.root, ["job"], [])
    noted = elsewhere.Elsewhere(record, ignored=(), events=(0, 0))

    for number in range(5):
        path = tmp_path / f"file_{number}"
        path.write_text("x")
        noted.put(bytes(path), is_quiet=number == 1)
    noted.put(bytes(tmp_path / "file_0"))
    noted.log()

    entries = read_operation_log(tmp_path / "log").entries
    assert [entry.what for entry in entries if isinstance(entry, Blind)] == ["many"]
    assert [Path(entry.path).name for entry in entries if isinstance(entry, Elsewhere)] == ["file_0", "file_2", "file_1"]
