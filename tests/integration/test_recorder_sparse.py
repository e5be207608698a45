"""A sparse file under the recorder: its holes cost nothing."""

import sys
from pathlib import Path

from harness.explore.operation_log import read_operation_log
from harness.explore.operations import Blind
from harness.explore.recording import record

TIB = 1 << 40


def blind_of(tmp_path: Path, code: str) -> list[str]:
    root, log = tmp_path / "root", tmp_path / "log"
    root.mkdir()
    done = record(
        (sys.executable, "-S", "-c", f"import os\nroot = {str(root)!r}\n{code}"),
        root=root,
        log_directory=log,
        environment={},
        cwd=tmp_path,
        timeout_s=30.0,
    )
    assert (done.exit_code, done.timed_out) == (0, False), done.errors()
    return [entry.what for entry in read_operation_log(log).entries if isinstance(entry, Blind)]


WRITTEN = f"""
file = os.open(root + "/checkpoint", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, {TIB})
os.pwrite(file, b"x", 4096)
os.pwrite(file, b"x", {TIB} - 1)
"""


def test_a_hole_of_a_tebibyte_is_not_read(tmp_path: Path) -> None:
    assert blind_of(tmp_path, WRITTEN) == []


def test_zeros_that_were_written_are_zeros(tmp_path: Path) -> None:
    assert blind_of(tmp_path, f"{WRITTEN}os.pwrite(file, bytes(8192), {TIB} // 2)") == []
